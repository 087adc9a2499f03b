"""JSON Schemas (2020-12) of what bringup prints, one file for each kind of object.

The files refer to each other by ``$id``; ``load`` gives one self-contained document. New keys may be added to
any object, so unknown keys are allowed; the keys of the contract are required, their types and words are strict.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

#: kinds that stand on their own, as ``"schema": "bringup.<kind>/1"`` names them
KINDS: tuple[str, ...] = ("run", "runs", "diagnosis", "event", "error")
_REFERENCE = "urn:bringup:schema:"


def load(kind: str) -> dict[str, Any]:
    """The schema of ``bringup.<kind>/1`` with everything it refers to inside. Raises KeyError for another kind."""
    if kind not in KINDS:
        raise KeyError(kind)
    schema = _read(kind)
    bundled: dict[str, Any] = {}
    left = _referred(schema)
    while left:
        other = left.pop()
        if other != kind and other not in bundled:
            bundled[other] = _read(other)
            left |= _referred(bundled[other])
    if bundled:
        schema["$defs"] = {**schema.get("$defs", {}), **{f"bringup-{k}": v for k, v in sorted(bundled.items())}}
    return schema


def _read(name: str) -> dict[str, Any]:
    file = resources.files(__name__) / f"{name}.schema.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _referred(node: Any) -> set[str]:
    """Names of the files that *node* refers to."""
    if isinstance(node, dict):
        own = node.get("$ref")
        names = {_file_of(own)} if isinstance(own, str) and own.startswith(_REFERENCE) else set()
        return names.union(*(_referred(v) for v in node.values()))
    if isinstance(node, list):
        return set[str]().union(*(_referred(v) for v in node))
    return set()


def _file_of(reference: str) -> str:
    return reference.removeprefix(_REFERENCE).split(":")[0]
