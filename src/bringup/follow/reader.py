"""Reading a log that grows, shrinks, is replaced, deleted, or not there yet. No waiting in here."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from bringup.errors import UsageError
from bringup.follow.signals import Data, Gone, Rotated, Signal, Truncated

#: A rotation leaves the place empty for a moment; only after this many seconds the log counts as gone.
GONE_AFTER_S = 0.1


class LogReader:
    """Reads *path* from *offset*. Raises ``UsageError`` for what is no plain file or may not be read."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self.fd = -1
        #: more bytes are known to wait than ``read`` was allowed to take
        self.more = False
        #: monotonic time at which ``read`` should be called again though nothing happened
        self.look_again: float | None = None
        #: identity of an empty file that stands in the log's place, while the old one is still read
        self.successor: tuple[int, int] | None = None
        self._gone_told = False
        self._open()

    def read(self, budget: int) -> list[Signal]:
        """What is new, with at most *budget* bytes of data."""
        out: list[Signal] = []
        self.more = False
        while self.fd >= 0 or self._open():
            size = os.fstat(self.fd).st_size
            if size < self.offset:
                out.append(Truncated(self.offset))
                self.offset = 0
            if budget <= 0:
                self.more = size > self.offset
                break
            data = os.pread(self.fd, min(budget, size - self.offset), self.offset) if size > self.offset else b""
            if data:
                out.append(Data(self.offset, data, time.monotonic()))
                self.offset += len(data)
                budget -= len(data)
            elif not self._replaced(out):
                break
        return out

    def close(self) -> None:
        """Let go of the file."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _open(self) -> bool:
        try:
            mode = os.stat(self.path).st_mode  # noqa: PTH116
            if not stat.S_ISREG(mode):  # looked at before opening: opening a pipe has an effect on its writer
                raise UsageError(f"cannot follow `{self.path}`: {_kind(mode)}", "name a log that is a plain file")
            self.fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        except OSError as e:
            raise UsageError(f"cannot read `{self.path}`: {e.strerror}", "name a log that you may read") from e
        return True

    def _replaced(self, out: list[Signal]) -> bool:
        """At the end of the file: whether another one stands in its place, which then is open."""
        mine = os.fstat(self.fd)
        try:
            there = os.stat(self.path)  # noqa: PTH116
        except OSError:
            self._missing(out)
            return False
        self.look_again = self.successor = None
        if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino):
            self._gone_told = False
            return False
        # An empty new file: the writer may not have moved over to it yet, and what it still writes counts.
        if there.st_size == 0 or not stat.S_ISREG(there.st_mode):
            self.successor = (there.st_dev, there.st_ino)
            return False
        old = self.fd
        try:
            self._open()
        except UsageError:
            return False
        if self.fd == old:
            return False
        os.close(old)
        self.offset, self._gone_told = 0, False
        out.append(Rotated())
        return True

    def _missing(self, out: list[Signal]) -> None:
        self.successor = None
        if self._gone_told:
            return
        now = time.monotonic()
        if self.look_again is None:
            self.look_again = now + GONE_AFTER_S
        elif now >= self.look_again:
            self.look_again, self._gone_told = None, True
            out.append(Gone())


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "it is a directory"
    if stat.S_ISFIFO(mode):
        return "it is a pipe"
    return "it is a socket" if stat.S_ISSOCK(mode) else "it is a device"
