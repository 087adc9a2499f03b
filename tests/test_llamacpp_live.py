"""The real llama.cpp server through every failure that was recorded for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bringup.engines.llamacpp.embedded import Embedded
from tests.conftest import Cli, eventually, marked

MAKE = Path(__file__).resolve().parents[1] / "scripts/engines/make_gguf.py"


def model(kind: str, folder: Path) -> Path:
    path = folder / f"{kind}.gguf"
    subprocess.run([sys.executable, str(MAKE), kind, str(path)], check=True, capture_output=True)
    return path


def argv(engine: Embedded, port: int, path: Path | str, *more: str) -> list[str]:
    words = [*engine.argv(port), *more]
    words[words.index("-m") + 1] = str(path)
    return words


def test_tiny_random_model_is_ready(cli: Cli, engine: Embedded, port: int, tmp_path: Path) -> None:
    up = cli("up", "--json", "--", *argv(engine, port, model("tiny", tmp_path)))
    assert (up.code, up.json["state"]) == (0, "ready"), up.err + cli("logs").out
    assert cli("stop").code == 0


@pytest.mark.parametrize(
    ("kind", "class_"),
    [
        ("truncated", "corrupt-weights"),
        ("garbage", "corrupt-or-wrong-model-file"),
        ("unknown-architecture", "unsupported-architecture"),
    ],
)
def test_broken_model(cli: Cli, engine: Embedded, port: int, tmp_path: Path, kind: str, class_: str) -> None:
    up = cli("up", "--json", "--", *argv(engine, port, model(kind, tmp_path)))
    assert (up.code, up.json["diagnosis"]["cause"]["class"]) == (10, class_), cli("logs").out


@pytest.mark.parametrize("more", [("--no-such-flag",), ("-c", "banana")])
def test_flag_that_it_does_not_accept(cli: Cli, engine: Embedded, port: int, more: tuple[str, ...]) -> None:
    up = cli("up", "--json", "--", *engine.argv(port), *more)
    assert (up.code, up.json["diagnosis"]["cause"]["class"]) == (10, "invalid-flag"), cli("logs").out


def test_context_that_memory_cannot_hold(cli: Cli, engine: Embedded, port: int) -> None:
    words = engine.argv(port)
    words[words.index("-c") + 1] = "100000000"
    up = cli("up", "--json", "--", *words)
    assert (up.code, up.json["diagnosis"]["cause"]["class"]) == (10, "host-oom-killed"), cli("logs").out


def test_killed_group_during_load(cli: Cli, engine: Embedded, port: int) -> None:
    gate = cli.cwd / "gate"
    script = 'while [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"'
    up = cli.start("up", "--json", "--", "sh", "-c", script, str(gate), *engine.argv(port))
    pid = eventually(lambda: next(iter((cli.state / "runs").glob("*/1/pid")), None))
    run = pid.parent.parent.name
    members = eventually(lambda: marked(f"BRINGUP_RUN={run}\0"))
    os.killpg(os.getpgid(members[0]), signal.SIGKILL)
    up.communicate(timeout=30)
    assert up.returncode == 10
    cause = cli("status", "--json").json["diagnosis"]["cause"]
    assert (cause["class"], cause["confidence"] < 0.6) == ("interrupted", True)
