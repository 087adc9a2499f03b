"""What the tests of whole verbs share: the command line as a user types it, and a real small engine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bringup.engines.llamacpp.embedded import Embedded, ensure

CACHE = Path(os.environ.get("BRINGUP_TEST_ENGINES") or Path.home() / ".cache" / "bringup-test-engines")


@dataclass
class Done:
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Cli:
    """``bringup`` with its state in a directory of the test's own."""

    state: Path
    cwd: Path

    @property
    def env(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("BRINGUP_")}
        return {**kept, "BRINGUP_STATE_DIR": str(self.state), "BRINGUP_TEST_DIR": str(self.cwd), "NO_COLOR": "1"}

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "bringup.cli.main", *words]

    def __call__(self, *words: str, stdin: bytes | None = None, limit: float = 60, **env: str) -> Done:
        done = subprocess.run(
            self.argv(*words), cwd=self.cwd, env=self.env | env, input=stdin, capture_output=True, timeout=limit,
            check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def start(self, *words: str, **env: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.argv(*words), cwd=self.cwd, env=self.env | env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip

    def attempt(self) -> Path:
        """Directory of the newest run's first attempt."""
        return max((self.state / "runs").iterdir()) / "1"


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    yield Cli(tmp_path / "state", tmp_path)
    for pid in marked(f"BRINGUP_TEST_DIR={tmp_path}\0"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def marked(mark: str) -> list[int]:
    """Living processes with *mark* in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            env = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in env and state not in "ZX":
            found.append(int(entry.name))
    return found


def eventually(check: Callable[[], Any], seconds: float = 20.0) -> Any:
    """The first true value of *check* within *seconds*; fails the test after that."""
    until = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    return number


@pytest.fixture(scope="session")
def engine() -> Embedded:
    """The real default engine: llama.cpp's server and SmolLM2, in a cached environment."""
    return ensure(CACHE, lambda _: None)
