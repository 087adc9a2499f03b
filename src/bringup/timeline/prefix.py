"""What stands before the message: log prefixes of the engine, and of whatever carried the log.

Everything is told as places in the line, since what is found in one line holds for all lines of its form
(``timeline.scan``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bringup.rules.match import steady_source

#: prefixes that other programs put in front of a line: container and journal timestamps, compose names, `ts`
CARRIERS: tuple[re.Pattern[str], ...] = (
    re.compile(
        r"^(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))\s+(?:(?:stdout|stderr) [FP] )?"
    ),
    re.compile(r"^(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) [\w.-]+ [\w@./-]+(?:\[\d+\])?: "),
    re.compile(r"^[\w.-]+\s+\| "),
    re.compile(r"^ {0,9}\d{1,6}\.\d{3} (?=\S)"),
)
_RANK_WORD = re.compile(r"[A-Za-z_]+")

Place = tuple[int, int]


class Piece(NamedTuple):
    """One message: where it stands in its line (characters), and where its prefix told rank, time and level."""

    start: int
    end: int
    rank: Place | None = None
    time: Place | None = None
    level: Place | None = None


class Prefixes:
    """The prefixes of one engine's lines, and how lines are cut into messages by them."""

    def __init__(self, own: Sequence[re.Pattern[str]]) -> None:
        self._all = (*own, *CARRIERS)
        #: a prefix in the middle counts only if it holds a time or a pid: words such as ``INFO:`` occur in messages
        self._anchors = [p for p in own if p.groupindex.keys() & {"time", "pid"} and not p.pattern.startswith("^")]
        self.steady = all(steady_source(p.pattern) for p in self._all)

    def pieces(self, line: str) -> Iterator[Piece]:
        """The messages of *line*: usually one; more where a progress bar or another process glued itself in front."""
        start = 0
        for cut in [*self._cuts(line), len(line)]:
            piece = self._piece(line, start, cut)
            # `[time rank] INFO: ...` is two prefixes of one message, not two messages
            if cut < len(line) and piece.start == piece.end:
                continue
            yield piece
            start = cut

    def _cuts(self, line: str) -> list[int]:
        return sorted({m.start() for p in self._anchors for m in p.finditer(line, 1) if _anchors(m)})

    def _piece(self, line: str, start: int, end: int) -> Piece:
        """The message of ``line[start:end]`` without its prefixes (up to five), and what they said."""
        rest = line[start:end]
        said: dict[str, Place] = {}
        for _ in range(5):
            match = self._prefix(rest)
            if match is None:
                break
            for key in match.groupdict():
                place = _trimmed(rest, *match.span(key))
                if place is not None:
                    said[key] = (start + place[0], start + place[1])
            start += match.end()
            rest = rest[match.end() :]
        return Piece(start, end, said.get("rank"), said.get("time"), said.get("level"))

    def _prefix(self, text: str) -> re.Match[str] | None:
        for pattern in self._all:
            match = pattern.match(text)
            if match is not None and match.end():
                return match
        return None


def _anchors(match: re.Match[str]) -> bool:
    groups = match.groupdict()
    return bool(groups.get("time") or groups.get("pid"))


def _trimmed(text: str, start: int, end: int) -> Place | None:
    """The place without spaces at its ends; None for a group that is empty or took no part."""
    while end > start and text[end - 1] == " ":
        end -= 1
    while end > start and text[start] == " ":
        start += 1
    return (start, end) if 0 <= start < end else None


def role(rank: str | None) -> str:
    """Rank without its numbers: the processes that do the same work (``TP0``, ``TP1`` -> ``TP``)."""
    return " ".join(_RANK_WORD.findall(rank)) if rank else ""
