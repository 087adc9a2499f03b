"""Failure rules against the lines of a start: which are satisfied, and by which lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bringup.rules import FailureRule, Hit, Matcher
from bringup.timeline.progress import figures
from bringup.timeline.view import KEEP_HITS, Found, Seen


class Evidence:
    """Collects hits of failure rules. Rules are searched line by line; what they add up to is asked at the end.

    ``none`` patterns are looked for like the others; one hit anywhere in the startup unsatisfies the rule.
    """

    def __init__(self, rules: Sequence[FailureRule]) -> None:
        pairs = [((rule, i), p) for rule in rules for i, p in enumerate(rule.patterns)]
        self._matcher: Matcher[tuple[FailureRule, int]] = Matcher(pairs)

    def search(self, text: str) -> Sequence[Hit[tuple[FailureRule, int]]]:
        """Hits in one message; empty if a benign rule claims it whole."""
        hits = self._matcher.find(text)
        if hits and any(h.owner[0].role == "benign" for h in hits) and self._benign(hits):
            return ()
        return [h for h in hits if h.owner[0].role != "benign"]

    @staticmethod
    def _benign(hits: Sequence[Hit[tuple[FailureRule, int]]]) -> bool:
        by_rule: dict[str, tuple[FailureRule, set[int]]] = {}
        for hit in hits:
            rule, index = hit.owner
            if rule.role == "benign":
                by_rule.setdefault(rule.id, (rule, set()))[1].add(index)
        return any(holds(rule, dict.fromkeys(seen, (0,))) for rule, seen in by_rule.values())


def record(found: dict[str, Found], hit: Hit[tuple[FailureRule, int]], seen: Seen) -> Found | None:
    """Adds a hit; the Found if this hit is what satisfied its rule, else None."""
    rule, index = hit.owner
    entry = found.setdefault(rule.id, Found(rule))
    entry.count += 1
    kept = entry.hits.setdefault(index, [])
    if len(kept) < KEEP_HITS:
        kept.append(seen)
    else:
        kept[-1] = seen  # the first ones and the newest are kept: nearness is judged on both
    was = entry.satisfied
    entry.satisfied = holds(rule, {i: [s.order for s in h] for i, h in entry.hits.items()})
    if entry.satisfied and not was:
        entry.order = seen.order
        return entry
    return None


def seen_of(hit: Hit[tuple[FailureRule, int]], seen: Seen) -> Seen:
    """*seen* with the figures of *hit*."""
    return Seen(seen.line, seen.order, seen.offset, figures(hit.groups))


def holds(rule: FailureRule, orders: Mapping[int, Sequence[int]]) -> bool:
    """Whether hits at these line *orders* (by pattern index) satisfy *rule*.

    Every ``all`` pattern and one ``any`` pattern within ``rule.within`` lines of each other, no ``none`` pattern.
    """
    n_all, n_any = len(rule.all), len(rule.any)
    if any(orders.get(i) for i in range(n_all + n_any, len(rule.patterns))):
        return False
    need = [orders.get(i) or () for i in range(n_all)]
    if n_any:
        need.append(sorted(o for i in range(n_all, n_all + n_any) for o in orders.get(i) or ()))
    if not need or not all(need):
        return False
    return any(all(any(abs(o - a) <= rule.within for o in other) for other in need[1:]) for a in need[0])
