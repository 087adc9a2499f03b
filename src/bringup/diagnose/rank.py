"""Which of the satisfied rules is the cause: first in time, most specific in its block, consequences apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bringup.timeline import Found, Trace, View

#: rules below this specificity are generic (any exception of a kind): they never beat a specific one
GENERIC = 20
#: lines that one failure's traceback and messages span: what stands this near belongs together
BLOCK = 90
#: lines that an exception's message may go on after its first
_MESSAGE = 4


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates best first, and what only followed."""

    causes: tuple[Found, ...]
    fallbacks: tuple[Found, ...]
    consequences: tuple[Found, ...]


def rank(view: View) -> Ranked:
    """The satisfied rules of *view* in the order in which they may be blamed.

    What came after the server was told to stop is a consequence of that. A candidate after which the start moved
    on is believed only if no other is left. Of one block (the lines of one traceback and its echoes) the most
    specific rule speaks, but of exceptions that Python chained the first: the others follow from it.
    """
    satisfied = [f for f in view.found.values() if f.satisfied]
    blamed = [f for f in satisfied if not f.after_stop]
    causes = _order([f for f in blamed if f.rule.role == "cause"], view)
    fallbacks = _order([f for f in blamed if f.rule.role == "fallback"], view)
    collateral = [f for f in satisfied if f.rule.role == "collateral" or f.after_stop]
    return Ranked(tuple(causes), tuple(fallbacks), tuple(sorted(collateral, key=lambda f: f.first)))


def overcome(found: Found, view: View) -> bool:
    """Whether the start plainly went on after *found*."""
    return not found.rule.fatal and view.moved > found.order + BLOCK and not found.after_ready


def _order(candidates: Sequence[Found], view: View) -> list[Found]:
    """Specific ones after which nothing moved on, then other specific ones, then generic ones; each by blocks."""
    tiers: tuple[list[Found], list[Found], list[Found]] = ([], [], [])
    for found in candidates:
        tiers[2 if found.rule.specificity < GENERIC else int(overcome(found, view))].append(found)
    chains = _chains(view.traces)
    return [found for tier in tiers for found in _blocks(tier, chains)]


def _blocks(group: Sequence[Found], chains: Sequence[tuple[int, int, Trace]]) -> list[Found]:
    """Earliest block first; inside a block the most specific first, then the earliest."""
    left = sorted(group, key=lambda f: f.order)
    out: list[Found] = []
    while left:
        end = left[0].order + BLOCK
        block = sorted((f for f in left if f.order <= end), key=lambda f: (-f.rule.specificity, f.order))
        left = [f for f in left if f.order > end]
        first = _innermost(block, chains)
        out.extend([first, *(f for f in block if f is not first)])
    return out


def _innermost(block: Sequence[Found], chains: Sequence[tuple[int, int, Trace]]) -> Found:
    """The block's best, or one of another class in the earliest exception that led to it."""
    best = block[0]
    place = _place(best, chains)
    if place is None:
        return best
    led: list[tuple[int, int]] = []
    for i, found in enumerate(block):
        other = _place(found, chains)
        if found is best or (found.rule.class_ != best.rule.class_ and other is not None and other[0] == place[0]):
            led.append((other[1] if other else place[1], i))
    return block[min(led)[1]]


def _chains(traces: Sequence[Trace]) -> list[tuple[int, int, Trace]]:
    """(chain, place in it, traceback): tracebacks that Python said follow from each other share a chain."""
    out: list[tuple[int, int, Trace]] = []
    newest: dict[str | None, tuple[int, int]] = {}
    for number, trace in enumerate(traces):
        chain, place = newest.get(trace.rank, (number, -1)) if trace.chained else (number, -1)
        newest[trace.rank] = (chain, place + 1)
        out.append((chain, place + 1, trace))
    return out


def _place(found: Found, chains: Sequence[tuple[int, int, Trace]]) -> tuple[int, int] | None:
    for chain, place, trace in chains:
        if trace.first <= found.order <= trace.last + _MESSAGE:
            return chain, place
    return None
