"""Python tracebacks in a stream of lines, even where several processes write at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

_START = "Traceback (most recent call last):"
_EXCEPTION = re.compile(
    r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Timeout))(?:: (?P<message>.*)|:?)$"
)
_EXCEPTION_IN_TRACE = re.compile(r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: (?P<message>.*)|:?)$")


@dataclass(frozen=True, slots=True)
class Raised:
    """The last line of a traceback: ``torch.OutOfMemoryError`` and its message."""

    name: str
    message: str
    first: int


class Tracebacks:
    """Feeds on messages; gives the exception when a traceback's last line is reached.

    One traceback is followed per writer (rank), since the frames of two ranks interleave.
    """

    def __init__(self) -> None:
        self._open: dict[str | None, int] = {}

    def feed(self, message: str, rank: str | None, order: int) -> Raised | None:
        """The exception that ends with this *message* of *rank*; *order* is its line order."""
        if _START in message:
            self._open.setdefault(rank, order)
            return None
        first = self._open.get(rank)
        if first is not None:
            if not message.strip() or message[0] in " \t|+":
                return None
            match = _EXCEPTION_IN_TRACE.match(message)
            if match:
                del self._open[rank]
                return Raised(match["name"], match["message"] or "", first)
            if order - first > 2000:
                del self._open[rank]
            return None
        match = _EXCEPTION.match(message)
        return Raised(match["name"], match["message"] or "", order) if match else None
