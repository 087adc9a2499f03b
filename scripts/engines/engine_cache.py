"""Where the engine lab keeps what it installs and generates."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """The cache's directory, outside the working tree so that a fresh clone finds what an older one made."""
    own = os.environ.get("BRINGUP_TEST_ENGINES")
    if own:
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "bringup-test-engines"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let one process at a time make things in the cache; the lock goes with its holder."""
    directory = cache_dir()
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / f".lock-{name}", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another process that uses the cache", file=sys.stderr, flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
