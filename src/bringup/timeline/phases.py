"""Phases of a start: each process walks through them; the start is where the slowest of the leading ones is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from bringup.rules import LineRule
from bringup.timeline.prefix import role
from bringup.timeline.view import Span, View

#: spans that are kept; a start has about ten
KEEP_SPANS = 100


class Phases:
    """Follows the phase of every writer.

    Processes that do the same work (``TP0``, ``TP1``) are one role, and a role is where its slowest member is.
    Roles differ in what they do (``APIServer`` waits in ``args`` while ``Worker`` loads): the start is where the
    furthest role is. Within a role a phase only moves on, but for a draft model that loads after the target.
    """

    def __init__(self, order: Sequence[str], view: View) -> None:
        self._index = {name: i for i, name in enumerate(order)}
        self._order = tuple(order)
        self._view = view
        self._at: dict[str, dict[str | None, int]] = {}
        self.worker: Literal["target", "draft"] | None = None
        view.spans.append(Span(order[0] if order else "spawn", 0.0))
        view.phase = view.spans[0].name

    def see(self, rule: LineRule, rank: str | None, t_s: float | None) -> Iterator[dict[str, Any]]:
        """A line of *rule* was written by *rank*: the data of a phase event, if the start moved."""
        view = self._view
        if rule.phase is None or rule.phase not in self._index:
            return
        index = self._index[rule.phase]
        name = role(rank)
        ranks = self._at.setdefault(name, {})
        again = self._second_load(rule, ranks.get(rank, -1), index)
        if rule.worker is not None:
            self.worker = rule.worker
        elif again:
            self.worker = "draft"
        elif self.worker == "draft" and index > self._index.get("graphs", index):
            self.worker = None
        view.worker = self.worker
        if index > ranks.get(rank, -1) or again:
            ranks[rank] = index
        if rule.ends:
            self._end(rule.phase, t_s)
        start = max(min(members.values()) for members in self._at.values())
        current = self._order[start]
        if current != view.phase:
            if view.spans and view.spans[-1].ended is None:
                view.spans[-1].ended = t_s
            if len(view.spans) >= KEEP_SPANS:
                del view.spans[1]
            view.spans.append(Span(current, t_s))
            view.phase = current
            yield {"name": current, "worker": self.worker}

    def _second_load(self, rule: LineRule, at: int, index: int) -> bool:
        """Whether this is the draft model's turn: weights again by a process that had its pools."""
        pools = self._index.get("kv-cache")
        weights = self._index.get("weights")
        if pools is None or index != weights:
            return False
        # Only the line that begins a load counts: bars and ends of the first load come late from slow ranks.
        return at >= pools and "begin" in rule.id

    def _end(self, phase: str, t_s: float | None) -> None:
        for span in reversed(self._view.spans):
            if span.name == phase and span.ended is None:
                span.ended = t_s
                span.progress = 1.0 if span.progress is not None else None
                return

    def progress(self, phase: str | None, fraction: float) -> None:
        """The bar of *phase* stands at *fraction* (0..1)."""
        for span in reversed(self._view.spans):
            if span.name == (phase or self._view.phase):
                span.progress = fraction
                return
