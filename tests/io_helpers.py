"""What the tests of launch, follow and stop share: conditions with a deadline, small real programs."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
ENV = {"PATH": os.environ["PATH"], "BRINGUP_RUN": "test"}


def until(what: Callable[[], T], seconds: float = 20.0) -> T:
    """Wait for *what* to return something true, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.005)
    raise AssertionError("the deadline passed")


def py(code: str) -> list[str]:
    """The argv of a small Python program."""
    return [sys.executable, "-I", "-S", "-c", code]


def kill(pid: int) -> None:
    """SIGKILL, whether or not *pid* is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
