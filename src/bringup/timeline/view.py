"""Where a start is: what the timeline knows after the bytes it has read. Plain data, bounded in size."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from bringup.facts import Line
from bringup.rules import FailureRule

#: hits kept for one pattern of one rule; a rule that keeps firing is counted, not hoarded
KEEP_HITS = 6
KEEP_TRACES = 200
KEEP_TAIL = 40


@dataclass(slots=True)
class Seen:
    """One pattern's hit: the line, its order among all lines, the figures in it."""

    line: Line
    order: int
    offset: int
    figures: dict[str, Any]


@dataclass(slots=True)
class Found:
    """A failure rule and what was seen of it so far. ``order`` is the line at which it became satisfied."""

    rule: FailureRule
    hits: dict[int, list[Seen]] = field(default_factory=dict)
    count: int = 0
    satisfied: bool = False
    order: int = 0
    after_ready: bool = False
    after_stop: bool = False
    phase: str | None = None

    def lines(self) -> list[Seen]:
        """Every kept hit in the order of the log, each line once."""
        seen = {s.order: s for hits in self.hits.values() for s in hits}
        return [seen[k] for k in sorted(seen)]

    @property
    def first(self) -> int:
        """Order of the earliest line that belongs to it."""
        return min((s.order for hits in self.hits.values() for s in hits[:1]), default=self.order)

    def figures(self) -> dict[str, Any]:
        """Figures of every kept hit; of several values of one name the first in the log."""
        found: dict[str, Any] = {}
        for seen in sorted((s for hits in self.hits.values() for s in hits), key=lambda s: s.order):
            found = {**seen.figures, **found}
        return found


@dataclass(slots=True)
class Trace:
    """A Python traceback: its exception line, and where it stands."""

    first: int
    last: int
    line: Line
    exception: str
    message: str
    rank: str | None
    offset: int
    after_stop: bool = False
    #: Python said that the traceback before it is its cause
    chained: bool = False


@dataclass(slots=True)
class Span:
    name: str
    started: float | None
    ended: float | None = None
    progress: float | None = None


@dataclass(slots=True)
class View:
    """What is known of the start that the source holds last."""

    engine: str
    version: str | None = None
    phase: str = "spawn"
    worker: str | None = None
    spans: list[Span] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    host: str | None = None
    port: int | None = None
    model: str | None = None
    #: lines read of this startup, lines that the grammar knew, and the order of the last one that moved
    lines: int = 0
    known: int = 0
    moved: int = 0
    #: line order of the log's own word that it is ready / shutting down; 0 where it said no such thing
    ready: int = 0
    stopping: int = 0
    serving: int = 0
    found: dict[str, Found] = field(default_factory=dict)
    traces: list[Trace] = field(default_factory=list)
    first_errors: list[tuple[int, Line]] = field(default_factory=list)
    tail: deque[Line] = field(default_factory=lambda: deque(maxlen=KEEP_TAIL))
    restarts: int = 0
    #: end of the last thing seen, seconds since start, where the caller gives times
    t_s: float | None = None

    @property
    def fatal(self) -> Found | None:
        """The first satisfied rule that proves by itself that the start has failed.

        What a server said before it said that it is ready was plainly not fatal.
        """
        fatal = [
            f for f in self.found.values() if f.satisfied and f.rule.fatal and not f.after_stop and f.order > self.ready
        ]
        return min(fatal, key=lambda f: f.order, default=None)

    @property
    def judged(self) -> bool:
        """Whether the source holds anything of a startup at all."""
        return bool(self.known or self.settings or self.traces or any(f.satisfied for f in self.found.values()))
