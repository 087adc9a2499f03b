"""What every target can do: run a command there, and move small files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended: its code (negative: the signal that ended it) and its output, untouched."""

    code: int
    out: bytes
    err: bytes


class Target(Protocol):
    """A place where servers run. All methods raise ``TargetError`` where it cannot be reached.

    A command is an argv, never a shell's sentence.
    """

    #: as the user names it: ``local``, ``ssh://host/pct/129``
    name: str

    def connect(self) -> None:
        """Reach the target; calling it again is no error."""
        ...

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,  # noqa: A002
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Ran:
        """Run *argv* to its end. A program that is not there has the code 127. *env* is added to the target's own.

        Raises ``TimeoutError`` after *timeout* seconds; the program is then ended.
        """
        ...

    def stream(self, argv: Sequence[str]) -> Iterator[bytes]:
        """The standard output of *argv* as it comes; closing the iterator ends the program."""
        ...

    def put(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Write a file whole: readers see the old one or the new one."""
        ...

    def get(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        """The bytes of a file from *offset*, at most *limit*. Raises ``FileNotFoundError``."""
        ...

    def close(self) -> None:
        """Let go of the target; what runs there goes on."""
        ...
