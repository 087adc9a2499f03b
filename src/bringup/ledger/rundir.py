"""A run's directory: ``run.json`` (the run document), ``events.jsonl``, one folder an attempt, and a lock.

The one process that follows a run holds the lock and is the only writer of events; when it dies, however it dies,
the kernel lets the lock go and the next one goes on from what is on disk. Nothing here is ever half-written for a
reader: ``run.json`` is replaced whole, and a torn last line of ``events.jsonl`` is cut off by the next writer.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PROTOCOL = 1


class RunDir:
    """One run on disk. Making the object touches nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def events_file(self) -> Path:
        return self.path / "events.jsonl"

    def attempt(self, number: int) -> Path:
        """Folder of attempt *number* (from 1)."""
        return self.path / str(number)

    @property
    def last_attempt(self) -> int:
        """Number of the newest attempt; 0 where none was made."""
        try:
            return max((int(p.name) for p in self.path.iterdir() if p.name.isdigit()), default=0)
        except OSError:
            return 0

    # -- the lock ---------------------------------------------------------------------------------------------

    def lock(self) -> bool:
        """Becomes the run's one follower; False if another process is (or the directory cannot be written)."""
        if self._lock is not None:
            return True
        try:
            fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._lock = fd
        return True

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # -- the run document -------------------------------------------------------------------------------------

    def read(self) -> dict[str, Any] | None:
        """The run document; None where there is none or it is not whole."""
        try:
            found = json.loads((self.path / "run.json").read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "run" in found else None

    def write(self, document: Mapping[str, Any]) -> None:
        """Replaces the run document. Raises OSError (a full disk): the old one then stays whole."""
        write_atomically(self.path / "run.json", json.dumps(document, ensure_ascii=False).encode())

    # -- events -----------------------------------------------------------------------------------------------

    def events(self, start: int = 0) -> Iterator[dict[str, Any]]:
        """Stored events with ``seq`` >= *start*. A torn or foreign line is passed over."""
        try:
            with self.events_file.open("rb") as file:
                for line in file:
                    if not line.endswith(b"\n"):
                        return
                    try:
                        event = json.loads(line)
                    except ValueError:
                        continue
                    if isinstance(event, dict) and event.get("seq", -1) >= start:
                        yield event
        except OSError:
            return

    def open_events(self) -> int:
        """A descriptor to append events to, after cutting off a last line that a dead writer left torn."""
        fd = os.open(self.events_file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        size = os.fstat(fd).st_size
        end = size
        while end > 0:
            start = max(0, end - 65536)
            chunk = os.pread(fd, end - start, start)
            cut = chunk.rfind(b"\n")
            if cut >= 0:
                end = start + cut + 1
                break
            end = start
        if end < size:
            os.ftruncate(fd, end)
        return fd


def write_atomically(path: Path, data: bytes) -> None:
    """Writes *data* so that a reader sees the old file or the new one, never a part."""
    fd, temp = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        Path(temp).replace(path)
    except BaseException:
        Path(temp).unlink(missing_ok=True)
        raise
