"""What following a start can bring: bytes, changes of the file, ends of processes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Data:
    """New bytes of the log, untouched. ``offset`` counts in the present file, ``at`` is ``time.monotonic()``."""

    offset: int
    data: bytes
    at: float


@dataclass(frozen=True, slots=True)
class Truncated:
    """The file became shorter than what was read, up to ``old_offset``; reading goes on from 0."""

    old_offset: int


@dataclass(frozen=True, slots=True)
class Rotated:
    """Another file stands in the log's place; the old one was read to its end, the new one is read from 0."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The log was deleted or moved away and nothing came in its place. What is still written to it is still read."""


@dataclass(frozen=True, slots=True)
class Exited:
    """A process that was watched has ended (or was another one than meant)."""

    pid: int


@dataclass(frozen=True, slots=True)
class ExitFile:
    """The exit file appeared."""


@dataclass(frozen=True, slots=True)
class Woken:
    """Somebody called ``wake``."""


Signal = Data | Truncated | Rotated | Gone | Exited | ExitFile | Woken
