"""Python tracebacks in a stream of lines, even where several processes write at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

START = "Traceback (most recent call last):"
EXCEPTION = re.compile(
    r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Timeout))(?:: (?P<message>.*)|:?)$"
)
_EXCEPTION_IN_TRACE = re.compile(r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: (?P<message>.*)|:?)$")
#: what Python writes between the tracebacks of a chain, the innermost first
CHAINED = re.compile(r"(?:direct cause of the following exception|another exception occurred):$")
#: lines after which a traceback whose last line never came is given up
_PATIENCE = 2000


@dataclass(frozen=True, slots=True)
class Raised:
    """The last line of a traceback: ``torch.OutOfMemoryError`` and its message.

    ``first``: order of the traceback's first line. ``chained``: the traceback before it is its cause.
    """

    name: str
    message: str
    first: int
    chained: bool = False


@dataclass(slots=True)
class _Open:
    first: int
    chained: bool
    frame: int


class Tracebacks:
    """Feeds on messages; gives the exception when a traceback's last line is reached.

    One traceback is followed per writer (rank), since the frames of two ranks interleave. A logger puts its prefix
    before the first line only: lines without a rank belong to the traceback that was opened last.
    """

    def __init__(self) -> None:
        self._open: dict[str | None, _Open] = {}
        self._chained: set[str | None] = set()

    @property
    def open(self) -> bool:
        """Whether a traceback's last line is still to come."""
        return bool(self._open)

    def begin(self, rank: str | None, order: int) -> None:
        """*rank* wrote the first line of a traceback."""
        self._open.pop(rank, None)
        self._open[rank] = _Open(order, rank in self._chained, order)
        self._chained.discard(rank)

    def chain(self, rank: str | None) -> None:
        """*rank* wrote that its next traceback follows from the one before."""
        self._chained.add(rank)

    def feed(self, message: str, rank: str | None, order: int, raised: tuple[str, str] | None) -> Raised | None:
        """The exception that ends with this *message*; *raised* as in ``scan.Message``, *order* its line order."""
        if rank is None and self._open:
            rank = next(reversed(self._open))
        trace = self._open.get(rank)
        if trace is None:
            return Raised(*raised, first=order) if raised is not None else None
        if not message.strip() or message[0] in " \t|+":
            trace.frame = order
            return None
        match = _EXCEPTION_IN_TRACE.match(message)
        # Right after a frame any name is an exception's; later, other processes may have written between.
        if match is not None and (raised is not None or trace.frame == order - 1):
            del self._open[rank]
            return Raised(match["name"], match["message"] or "", trace.first, trace.chained)
        if order - trace.first > _PATIENCE:
            del self._open[rank]
        return None
