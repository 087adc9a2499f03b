"""Failure rules against the lines of a start: which are satisfied, and by which lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bringup.rules import FailureRule, Hit, Matcher
from bringup.timeline.view import KEEP_HITS, Found, Seen

Clue = tuple[FailureRule, int]


def matcher(rules: Sequence[FailureRule]) -> Matcher[Clue]:
    """Every pattern of *rules* as (rule, index of the pattern in it)."""
    return Matcher([((rule, i), p) for rule in rules for i, p in enumerate(rule.patterns)])


def harmless(clues: Iterable[Clue]) -> bool:
    """Whether one message's *clues* satisfy a benign rule: then no other rule may see the message."""
    by_rule: dict[str, tuple[FailureRule, set[int]]] = {}
    for rule, index in clues:
        if rule.role == "benign":
            by_rule.setdefault(rule.id, (rule, set()))[1].add(index)
    return any(holds(rule, dict.fromkeys(seen, (0,))) for rule, seen in by_rule.values())


def record(found: dict[str, Found], hit: Hit[Clue], seen: Seen) -> Found | None:
    """Adds a hit; the Found if this hit is what satisfied its rule, else None.

    ``none`` patterns are looked for like the others; one hit anywhere in the startup unsatisfies the rule for good.
    """
    rule, index = hit.owner
    entry = found.get(rule.id)
    if entry is None:
        entry = found[rule.id] = Found(rule)
    entry.count += 1
    kept = entry.hits.setdefault(index, [])
    if len(kept) < KEEP_HITS:
        kept.append(seen)
    else:
        kept[-1] = seen  # the first ones and the newest are kept: nearness is judged on both
    if index >= len(rule.all) + len(rule.any):
        entry.satisfied = False
    elif not entry.satisfied and holds(rule, {i: [s.order for s in h] for i, h in entry.hits.items()}):
        entry.satisfied = True
        entry.order = seen.order
        return entry
    return None


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
