"""Finding which of many patterns a line holds, in one pass over the line for the many lines that hold none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from bringup.rules.model import Pattern

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Hit(Generic[T]):
    """*pattern* of *owner* was found; ``groups`` are the named groups that took part."""

    owner: T
    pattern: Pattern
    groups: dict[str, str]


class Matcher(Generic[T]):
    """Many (owner, pattern) pairs behind one literal prefilter.

    A line is tried against the patterns whose own literal it holds, so a line without any costs plain substring
    searches only, and results never depend on the prefilter.
    """

    def __init__(self, pairs: Iterable[tuple[T, Pattern]]) -> None:
        self._always: list[tuple[T, Pattern]] = []
        self._by_literal: dict[str, list[tuple[T, Pattern]]] = {}
        for owner, pattern in pairs:
            if pattern.literal:
                self._by_literal.setdefault(pattern.literal, []).append((owner, pattern))
            else:
                self._always.append((owner, pattern))

    def find(self, line: str) -> Sequence[Hit[T]]:
        """Every pattern that *line* holds, in file order within one literal; empty for most lines."""
        # Measured with 480 literals: one `in` each is five times faster than one alternation of all of them.
        candidates = list(self._always)
        for literal in [text for text in self._by_literal if text in line]:
            candidates.extend(self._by_literal[literal])
        if not candidates:
            return ()
        hits: list[Hit[T]] = []
        for owner, pattern in candidates:
            found = pattern.search(line)
            if found is None:
                continue
            groups = (
                {k: v for k, v in found.groupdict().items() if v is not None} if not isinstance(found, bool) else {}
            )
            hits.append(Hit(owner, pattern, groups))
        return hits


def required_literal(source: str) -> str | None:
    """The longest text that every match of the regular expression *source* must contain, if one is plain to see.

    Only top-level literal runs count: groups, classes and anything quantified end a run; a top-level ``|`` or
    inline flags give None (the pattern is then tried on every line).
    """
    if source.startswith("(?") and not source.startswith(("(?:", "(?P<", "(?=", "(?!", "(?<")):
        return None
    runs: list[str] = [""]
    depth = 0
    i = 0
    while i < len(source):
        char = source[i]
        step = 1
        literal: str | None = None
        if char == "\\":
            step = 2
            nxt = source[i + 1 : i + 2]
            literal = nxt if nxt and not nxt.isalnum() else None
        elif char == "[":
            step = _class_end(source, i) - i
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            return None
        elif char not in ".^$*+?{}|":
            literal = char
        after = source[i + step : i + step + 1]
        if char == "{":
            step = source.find("}", i) - i + 1 or 1
        if depth == 0 and literal is not None and after not in ("*", "?", "{"):
            runs[-1] += literal
            if after == "+":
                runs.append("")
        elif runs[-1]:
            runs.append("")
        i += step
    best = max(runs, key=len)
    return best if len(best) >= 3 else None


def _class_end(source: str, start: int) -> int:
    """Index just after the character class that opens at *start*."""
    i = start + 1
    if source[i : i + 1] == "^":
        i += 1
    if source[i : i + 1] == "]":
        i += 1
    while i < len(source) and source[i] != "]":
        i += 2 if source[i] == "\\" else 1
    return i + 1
