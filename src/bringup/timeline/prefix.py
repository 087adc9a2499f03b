"""What stands before the message: log prefixes of the engine, and of whatever carried the log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

#: prefixes that other programs put in front of a line: container and journal timestamps, compose names, `ts`
_CARRIERS: tuple[re.Pattern[str], ...] = (
    re.compile(
        r"^(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))\s+(?:(?:stdout|stderr) [FP] )?"
    ),
    re.compile(r"^(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) [\w.-]+ [\w@./-]+(?:\[\d+\])?: "),
    re.compile(r"^[\w.-]+\s+\| "),
    re.compile(r"^ {0,9}\d{1,6}\.\d{3} (?=\S)"),
)
_RANK_WORD = re.compile(r"[A-Za-z_]+")


@dataclass(frozen=True, slots=True)
class Message:
    """One message: where in its line it begins (characters), and what its prefix said."""

    text: str
    start: int = 0
    rank: str | None = None
    time: str | None = None
    level: str | None = None
    pid: int | None = None


def split_messages(line: str, prefixes: Sequence[re.Pattern[str]]) -> Iterator[Message]:
    """The messages of *line*: usually one; more where a progress bar or another process glued itself in front.

    A prefix in the middle counts only if it holds a time or a pid: words such as ``INFO:`` occur in messages.
    """
    start = 0
    cuts = sorted({m.start() for p in prefixes for m in p.finditer(line, 1) if _anchors(m)})
    for cut in [c for c in cuts if c > 0] + [len(line)]:
        piece = line[start:cut]
        message = strip(piece, prefixes)
        # `[time rank] INFO: ...` is two prefixes of one message, not two messages
        if start == 0 and cut < len(line) and not message.text:
            continue
        yield replace(message, start=message.start + start)
        start = cut


def _anchors(match: re.Match[str]) -> bool:
    groups = match.groupdict()
    return bool(groups.get("time") or groups.get("pid")) and match.end() > match.start()


def strip(line: str, prefixes: Sequence[re.Pattern[str]]) -> Message:
    """*line* without its prefixes (up to five, carriers first), and what they said."""
    rest = line
    said: dict[str, str] = {}
    rank: str | None = None
    for _ in range(5):
        match = next((m for p in (*prefixes, *_CARRIERS) if (m := p.match(rest)) and m.end()), None)
        if match is None:
            break
        for key, value in match.groupdict().items():
            if value and key == "rank":
                rank = value.strip()
            elif value:
                said[key] = value
        rest = rest[match.end() :]
    pid = said.get("pid")
    return Message(
        text=rest,
        start=len(line) - len(rest),
        rank=rank,
        time=said.get("time"),
        level=said.get("level"),
        pid=int(pid) if pid and pid.isdigit() else None,
    )


def role(rank: str | None) -> str:
    """Rank without its numbers: the processes that do the same work (``TP0``, ``TP1`` -> ``TP``)."""
    return " ".join(_RANK_WORD.findall(rank)) if rank else ""
