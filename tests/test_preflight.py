"""What is certain before a launch, and only that, refuses it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bringup.checkpoint import missing_shards
from bringup.preflight import shards_there
from tests.conftest import Cli

MAKE = Path(__file__).resolve().parents[1] / "scripts/engines/make_models.py"


def checkpoint(folder: Path, kind: str) -> Path:
    subprocess.run([sys.executable, str(MAKE), kind, str(folder)], check=True, capture_output=True)
    return folder


def test_a_missing_shard_is_refused_before_the_launch(cli: Cli, tmp_path: Path) -> None:
    """SGLang 0.5.9 starts with it and answers from memory that nobody filled."""
    model = checkpoint(tmp_path / "model", "qwen3-missing-shard")
    argv = ("python3", "-m", "sglang.launch_server", "--model-path", str(model))
    refused = cli("up", "--json", "--", *argv)
    assert (refused.code, refused.json["schema"]) == (14, "bringup.error/1")
    assert "which its index names" in refused.err
    assert cli("status", "--json").json["state"] == "refused"
    assert cli("up", "--json", "--", *argv, "--load-format", "dummy").code != 14
    assert cli("up", "--json", "--force", "--", *argv).code != 14


@pytest.mark.parametrize("kind", ["qwen3", "qwen3-truncated-shard", "qwen3-config-not-json"])
def test_what_is_not_certain_is_not_refused(tmp_path: Path, kind: str) -> None:
    assert missing_shards(checkpoint(tmp_path / "model", kind)) == ()


@pytest.mark.parametrize("index", [b"", b"[]", b"{}", b'{"weight_map": []}', b'{"weight_map": {"a": 1}}', b"\xff"])
def test_an_index_that_is_none_proves_nothing(tmp_path: Path, index: bytes) -> None:
    (tmp_path / "model.safetensors.index.json").write_bytes(index)
    assert missing_shards(tmp_path) == ()


def test_other_weights_beside_the_index_may_be_what_is_loaded(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert missing_shards(tmp_path) == tuple(sorted(index["weight_map"].values()))
    (tmp_path / "consolidated.safetensors").write_bytes(b"")
    assert missing_shards(tmp_path) == ()


def test_no_folder_no_certainty(tmp_path: Path) -> None:
    assert missing_shards(tmp_path / "nothing") == missing_shards(Path("org/model")) == ()
    assert shards_there("m", (), ()) is None
