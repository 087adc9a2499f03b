"""The matcher finds exactly what its patterns find one by one; its shortcuts never show."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.engines import all_engines
from bringup.rules import Matcher, Pattern
from bringup.rules.load import pattern
from bringup.rules.match import one_of, required_literal, steady

ENGINES = sorted(all_engines())


@cache
def patterns(name: str) -> tuple[Pattern, ...]:
    known = all_engines()[name]
    return (*(r.pattern for r in known.grammar.rules), *(p for r in known.failures for p in r.patterns))


@cache
def samples(name: str) -> tuple[str, ...]:
    known = all_engines()[name]
    rules = (*known.grammar.rules, *known.failures)
    return tuple(line for r in rules for s in (*r.samples, *r.not_samples) for line in s.splitlines())


@cache
def matcher(name: str) -> Matcher[int]:
    return Matcher(enumerate(patterns(name)))


def one_by_one(name: str, line: str) -> list[tuple[int, dict[str, str]]]:
    out = []
    for i, p in enumerate(patterns(name)):
        found = p.search(line)
        if found:
            groups = {} if isinstance(found, bool) else found.groupdict()
            out.append((i, {k: v for k, v in groups.items() if v is not None}))
    return out


@pytest.mark.parametrize("name", ENGINES)
def test_every_sample_of_every_rule_is_found_as_by_hand(name: str) -> None:
    for line in samples(name):
        for text in (line, line.partition("] ")[2], line.partition(": ")[2]):
            assert [(h.owner, h.groups) for h in matcher(name).find(text)] == one_by_one(name, text)


@given(st.data())
def test_other_digits_in_a_line_change_nothing_for_steady_patterns(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(ENGINES))
    if not samples(name):
        return
    line = data.draw(st.sampled_from(samples(name)))
    other = re.sub("[0-9]", lambda _: data.draw(st.sampled_from("0123456789")), line[:400])
    spots, moody = matcher(name).look(line[:400])
    found = [*spots, *(s for c in moody if (s := c.search(other)) is not None)]
    got = [(s.owner, s.hit(other).groups) for s in sorted(found, key=lambda s: s.index)]
    assert got == one_by_one(name, other)


@given(st.lists(st.text(alphabet="ab0 .", min_size=1, max_size=5), max_size=8), st.text(alphabet="ab0 .", max_size=20))
def test_any_literals_are_found(literals: list[str], line: str) -> None:
    found = Matcher(enumerate(map(pattern, literals))).find(line)
    assert [h.owner for h in found] == [i for i, x in enumerate(literals) if x in line]
    tree = one_of(literals)
    assert (tree is not None and tree.search(line) is not None) == any(x in line for x in literals)


def test_nothing_is_found_by_no_patterns() -> None:
    nothing: Matcher[int] = Matcher([])
    assert list(nothing.find("anything")) == []


@pytest.mark.parametrize(
    ("source", "literal"),
    [
        (r"^Load weight begin\. avail mem=(?P<x>\d+)", "Load weight begin. avail mem="),
        (r"abc?def", "def"),
        (r"ab*cde+fg", "cde"),
        (r"abc|def", None),
        (r"(?:abc|def)ghi", "ghi"),
        (r"(?i)abc", None),
        (r"[abc]def[^]x]ghij", "ghij"),
        (r"\x1b\[31mERR", "[31mERR"),
        (r"\u2588abc", "abc"),
        (r"\bword\b", "word"),
        (r"a{3}bcd", "bcd"),
        (r"\dab", None),
        (r"(?P<a>abc)(?=def)xyz", "xyz"),
    ],
)
def test_the_literal_that_every_match_holds(source: str, literal: str | None) -> None:
    assert required_literal(source) == literal


@pytest.mark.parametrize(
    ("text", "is_steady"),
    [
        ("out of memory", True),
        ("HTTP/1.1 200", False),
        (r"re:^\[rank\d+\]: (?P<x>[0-9.]+) of \d{1,4}", True),
        (r"re:[1-9]\d*", False),
        (r"re:(?!1,)\d+", False),
        (r"re:(?P<a>\w)(?P=a)", False),
        (r"re:(\w)\1", False),
        (r"re:ranks 0-9", False),
        (r"re:x\{3\}", False),
        (r"re:[^0-9]x", True),
        (r"re:\x31", False),
    ],
)
def test_whether_digits_decide(text: str, is_steady: bool) -> None:
    assert steady(pattern(text)) is is_steady


def test_a_line_of_a_megabyte_is_read_in_bounded_time() -> None:
    import time

    for name in ENGINES:
        started = time.process_time()
        for line in ("x" * 16384, "[" * 16384, " ." * 8192, "0" * 16384, "a: " * 5000):
            matcher(name).find(line)
        assert time.process_time() - started < 5, name
