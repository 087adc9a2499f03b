"""Which of the satisfied rules is the cause: first in time, most specific in its block, consequences apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bringup.timeline import Found, View

#: rules below this specificity are generic (any exception of a kind): they never beat a specific one
GENERIC = 20
#: lines that one failure's traceback and messages span: what stands this near belongs together
BLOCK = 90


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
    specific rule speaks.
    """
    satisfied = [f for f in view.found.values() if f.satisfied]
    blamed = [f for f in satisfied if not f.after_stop]
    causes = _order([f for f in blamed if f.rule.role == "cause"], view)
    fallbacks = _order([f for f in blamed if f.rule.role == "fallback"], view)
    collateral = [f for f in satisfied if f.rule.role == "collateral" or f.after_stop]
    return Ranked(tuple(causes), tuple(fallbacks), tuple(sorted(collateral, key=lambda f: f.first)))


def _order(candidates: Sequence[Found], view: View) -> list[Found]:
    out: list[Found] = []
    for group in (_tier(candidates, view, 0), _tier(candidates, view, 1), _tier(candidates, view, 2)):
        out.extend(_blocks(group))
    return out


def _tier(candidates: Iterable[Found], view: View, wanted: int) -> list[Found]:
    """0: specific and nothing moved on after it; 1: specific; 2: generic."""

    def tier(found: Found) -> int:
        if found.rule.specificity < GENERIC:
            return 2
        overcome = not found.rule.fatal and view.moved > found.order + BLOCK and not found.after_ready
        return 1 if overcome else 0

    return [f for f in candidates if tier(f) == wanted]


def _blocks(group: Sequence[Found]) -> list[Found]:
    """Earliest block first; inside a block the most specific first, then the earliest."""
    left = sorted(group, key=lambda f: f.order)
    out: list[Found] = []
    while left:
        end = left[0].order + BLOCK
        block = [f for f in left if f.order <= end]
        left = [f for f in left if f.order > end]
        out.extend(sorted(block, key=lambda f: (-f.rule.specificity, f.order)))
    return out
