"""Finding which of many patterns a line holds, in one pass over the line for the many lines that hold none.

Most lines of a log are one of a few forms with other numbers in it. A pattern whose outcome cannot depend on which
digits stand in a line is *steady*: what it finds in one line of a form holds for all of them. ``steady`` decides
that from the pattern's source, and whoever reads lines may remember the outcome by form (``timeline.scan``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bringup.rules.model import Pattern

T = TypeVar("T")

#: characters of the shortest literal that is worth looking for
_SHORTEST = 3
_COUNT = re.compile(r"\{\d*(?:,\d*)?\}")


@dataclass(frozen=True, slots=True)
class Hit(Generic[T]):
    """*pattern* of *owner* was found; ``groups`` are the named groups that took part."""

    owner: T
    pattern: Pattern
    groups: dict[str, str]


@dataclass(frozen=True, slots=True)
class Spot(Generic[T]):
    """Where a pattern was found: named groups as (name, start, end). ``index`` is its place in file order."""

    index: int
    owner: T
    pattern: Pattern
    spans: tuple[tuple[str, int, int], ...]

    def hit(self, line: str) -> Hit[T]:
        """The hit in *line*: the line that was searched, or another of its form."""
        return Hit(self.owner, self.pattern, {name: line[a:b] for name, a, b in self.spans})


@dataclass(frozen=True, slots=True)
class Candidate(Generic[T]):
    """A pattern to be tried. Unless it is ``steady`` it must be tried against each line of a form."""

    index: int
    owner: T
    pattern: Pattern
    steady: bool

    def search(self, line: str) -> Spot[T] | None:
        found = self.pattern.search(line)
        if not found:
            return None
        if isinstance(found, bool):
            return Spot(self.index, self.owner, self.pattern, ())
        spans = tuple((k, *found.span(k)) for k, v in found.groupdict().items() if v is not None)
        return Spot(self.index, self.owner, self.pattern, spans)


class Matcher(Generic[T]):
    """Many (owner, pattern) pairs behind one literal prefilter.

    A line without any of the literals costs one regular-expression search. Lines that pass are tried against
    the patterns whose own literal they hold, so results never depend on the prefilter.
    """

    def __init__(self, pairs: Iterable[tuple[T, Pattern]]) -> None:
        self._always: list[Candidate[T]] = []
        self._by_literal: dict[str, list[Candidate[T]]] = {}
        #: what has no literal of its own to look for, and what must be there for it to be tried
        self._gated: list[tuple[re.Pattern[str], Candidate[T]]] = []
        for index, (owner, pattern) in enumerate(pairs):
            candidate = Candidate(index, owner, pattern, steady(pattern))
            needed = _needed(pattern)
            parts = needed
            if not candidate.steady:  # whether it is tried may not depend on digits either
                parts = tuple(max(re.split(r"[0-9]+", n), key=len) for n in needed)
            if needed and all(len(part) >= _SHORTEST for part in parts):
                for part in parts:
                    self._by_literal.setdefault(part, []).append(candidate)
            elif needed:
                gate = "|".join(re.sub(r"[0-9]", lambda _: r"[0-9]", re.escape(n)) for n in needed)
                self._gated.append((re.compile(gate), candidate))
            else:
                self._always.append(candidate)
        self._prefilter = one_of(self._by_literal)

    def find(self, line: str) -> Sequence[Hit[T]]:
        """Every pattern that *line* holds, in file order; empty for most lines."""
        spots, moody = self.look(line)
        found = [*spots, *(s for c in moody if (s := c.search(line)) is not None)]
        return [s.hit(line) for s in sorted(found, key=lambda s: s.index)] if found else ()

    def look(self, line: str) -> tuple[list[Spot[T]], list[Candidate[T]]]:
        """What every line of the form of *line* holds, and what must be tried against each of them."""
        spots: list[Spot[T]] = []
        moody: list[Candidate[T]] = []
        for candidate in self._candidates(line):
            if not candidate.steady:
                moody.append(candidate)
            elif (spot := candidate.search(line)) is not None:
                spots.append(spot)
        if len(spots) > 1:
            spots.sort(key=lambda s: s.index)
        return spots, moody

    def _candidates(self, line: str) -> Iterable[Candidate[T]]:
        known = self._prefilter is not None and self._prefilter.search(line) is not None
        open_gates = [c for gate, c in self._gated if gate.search(line)]
        if not known and not open_gates:
            return self._always
        found = {c.index: c for c in (*self._always, *open_gates)}
        if known:
            for literal, candidates in self._by_literal.items():
                if literal in line:
                    found.update((c.index, c) for c in candidates)
        return found.values()


def one_of(literals: Iterable[str]) -> re.Pattern[str] | None:
    """A regular expression that finds any of *literals*: common beginnings are tried once; None for none."""
    tree: dict[str, Any] = {}
    for literal in literals:
        node = tree
        for char in literal:
            node = node.setdefault(char, {})
        node[""] = {}
    return re.compile(_branches(tree)) if tree else None


def _branches(tree: dict[str, Any]) -> str:
    if "" in tree:
        return ""  # a literal ends here: whatever is longer holds it
    out: list[str] = []
    for char in sorted(tree):
        text, node = re.escape(char), tree[char]
        while len(node) == 1 and "" not in node:
            ((char, node),) = node.items()
            text += re.escape(char)
        out.append(text + _branches(node))
    return out[0] if len(out) == 1 else "(?:" + "|".join(out) + ")"


def steady(pattern: Pattern) -> bool:
    """Whether *pattern* finds the same in lines that differ only in which digits they hold.

    Careful rather than clever: any digit in the source that is not part of ``[0-9]`` or a count makes a pattern
    unsteady, and so do escapes by number and references to groups.
    """
    if pattern.regex is None:
        return not re.search(r"[0-9]", pattern.text)
    return steady_source(pattern.regex.pattern)


def steady_source(source: str) -> bool:
    """``steady`` for the regular expression *source*."""
    return not re.search(r"[0-9]|\(\?P=|\(\?\(|\\[xuUN]", _without_counts(source))


def _without_counts(source: str) -> str:
    """*source* without its counts and without the ranges ``0-9`` of its classes."""
    out: list[str] = []
    i = 0
    while i < len(source):
        end = i + 1
        text = source[i]
        if text == "\\":
            end = i + 2
            text = source[i:end]
        elif text == "[":
            end = _class_end(source, i)
            text = source[i:end].replace("0-9", "")
        elif text == "{" and (count := _COUNT.match(source, i)):
            end = count.end()
            text = ""
        out.append(text)
        i = end
    return "".join(out)


def _needed(pattern: Pattern) -> tuple[str, ...]:
    """Texts of which every match holds at least one; none where that is not plain to see."""
    if pattern.literal:
        return (pattern.literal,)
    if pattern.regex is None:
        return ()
    return _alternatives(pattern.regex.pattern)


def _alternatives(source: str) -> tuple[str, ...]:
    """A literal of each branch of ``a|b|c`` or ``^(?:a|b|c)rest``; () if one branch has none."""
    branches = _split_branches(source)
    body = source.removeprefix("^")
    if len(branches) == 1 and body.startswith("(?:"):
        end = _group_end(body)
        if end < 0 or body[end : end + 1] in ("?", "*", "{"):
            return ()
        branches = _split_branches(body[3 : end - 1])
    literals = [required_literal(b) for b in branches]
    return tuple(x for x in literals if x) if len(branches) > 1 and all(literals) else ()


def _split_branches(source: str) -> list[str]:
    out, depth, start, i = [], 0, 0, 0
    while i < len(source):
        char = source[i]
        if char == "\\":
            i += 2
            continue
        if char == "[":
            i = _class_end(source, i)
            continue
        if char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            out.append(source[start:i])
            start = i + 1
        i += 1
    return [*out, source[start:]]


def _group_end(source: str) -> int:
    """Index just after the group that opens at 0; -1 if it does not close."""
    depth, i = 0, 0
    while i < len(source):
        char = source[i]
        if char == "\\":
            i += 2
            continue
        if char == "[":
            i = _class_end(source, i)
            continue
        if char in "()":
            depth += 1 if char == "(" else -1
            if depth == 0:
                return i + 1
        i += 1
    return -1


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
            nxt = source[i + 1 : i + 2]
            step = _escape_length(source, i)
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


def _escape_length(source: str, start: int) -> int:
    """Characters of the escape at *start*: ``\\.`` is 2, ``\\x1b`` is 4."""
    kind = source[start + 1 : start + 2]
    if kind == "N":
        return max(2, source.find("}", start) - start + 1)
    if kind.isdigit():
        return 2 + len(source[start + 2 : start + 4]) - len(source[start + 2 : start + 4].lstrip("0123456789"))
    return {"x": 4, "u": 6, "U": 10}.get(kind, 2)


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
