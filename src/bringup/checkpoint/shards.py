"""Shards that a checkpoint's index names and that are not there."""

from __future__ import annotations

import json
from pathlib import Path

_INDEX = "model.safetensors.index.json"
#: an index larger than this is none (the largest known are some 20 MB)
_LARGEST = 256 << 20


def missing_shards(folder: Path) -> tuple[str, ...]:
    """Names of the files that *folder*'s safetensors index names and that do not exist, sorted.

    Empty where there is no index, where it cannot be read or is not of that form, and where other weight files lie
    beside it that the engine may take instead: then nothing is certain.
    """
    try:
        index = folder / _INDEX
        if not folder.is_dir() or index.stat().st_size > _LARGEST:
            return ()
        named = json.loads(index.read_bytes())["weight_map"].values()
        files = {entry.name for entry in folder.iterdir()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return ()
    wanted = {name for name in named if isinstance(name, str) and "/" not in name}
    others = [f for f in files - wanted if f.endswith((".safetensors", ".bin", ".gguf", ".pt", ".pth"))]
    return () if others else tuple(sorted(wanted - files))
