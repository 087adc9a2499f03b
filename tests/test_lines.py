"""Bytes become lines: the same ones for any chunking, with offsets into the original bytes, in flat memory."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.timeline import LineSplitter, RawLine
from bringup.timeline.lines import KEEP, clean

BYTES = st.lists(
    st.one_of(
        st.sampled_from([b"\r", b"\n", b"\r\n", b"\r\r\n", b"\n\r", b"\x1b[31m", b"\x1b[", b"\x1b]0;t\x07", b"\x00",
                         b"\xc3", b"\xc3\xa9", b"\xe2\x96\x88", b"\xff", b"word ", b"12%"]),
        st.binary(max_size=6),
    ),
    max_size=12,
).map(b"".join)  # fmt: skip


def split(chunks: Sequence[bytes]) -> list[RawLine]:
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return [*lines, *splitter.flush()]


def chunked(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = sorted({c % (len(data) + 1) for c in cuts})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def by_hand(data: bytes) -> list[tuple[int, int, bytes, bool, bool]]:
    out, position, number = [], 0, 1
    for end in re.finditer(rb"\r\n|\n|\r", data):
        out.append((position, number, data[position : end.start()], end[0] == b"\r", True))
        position = end.end()
        number += end[0].endswith(b"\n")
    if position < len(data):
        out.append((position, number, data[position:], False, False))
    return out


@given(BYTES, st.lists(st.integers(0, 200), max_size=8))
def test_any_bytes_in_any_chunks_give_the_same_lines(data: bytes, cuts: list[int]) -> None:
    lines = split(chunked(data, cuts))
    assert [(x.offset, x.number, x.raw, x.bar, x.whole) for x in lines] == by_hand(data)
    assert all(data[x.offset : x.offset + len(x.raw)] == x.raw and x.text == clean(x.raw) for x in lines)
    assert lines == split([data[i : i + 1] for i in range(len(data))])


@given(BYTES, st.integers(0, 200))
def test_the_offset_is_what_was_consumed_and_reading_can_go_on_from_a_line(data: bytes, cut: int) -> None:
    splitter = LineSplitter()
    head = data[: cut % (len(data) + 1)]
    list(splitter.feed(head))
    assert splitter.offset == len(head)
    lines = split([data])
    for line in lines[1:]:
        again = LineSplitter(line.offset, line.number)
        rest = [*again.feed(data[line.offset :]), *again.flush()]
        assert rest == lines[lines.index(line) :]


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"no end", ["no end"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\r10%\r20%\r\n", ["", "10%", "20%"]),
        (b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\n", ["red x"]),
        (b"a\x00b\x08c\n", ["abc"]),
        (b"h\xe9llo\n", ["h\ufffdllo"]),
        ("10%|█▎   | ünï\n".encode(), ["10%|█▎   | ünï"]),
        (b"a\tb  \n", ["a\tb"]),
    ],
)
def test_what_a_line_says(data: bytes, texts: list[str]) -> None:
    assert [x.text for x in split([data])] == texts


def test_a_cr_at_the_end_of_a_chunk_waits_for_the_next_byte() -> None:
    splitter = LineSplitter()
    assert list(splitter.feed(b"a\r")) == []
    assert splitter.offset == 2
    assert [(x.text, x.bar) for x in splitter.feed(b"\nb\r")] == [("a", False)]
    assert [(x.text, x.bar) for x in splitter.feed(b"c")] == [("b", True)]
    assert [(x.text, x.whole) for x in splitter.flush()] == [("c", False)]
    assert list(splitter.flush()) == []


def test_lines_are_numbered_as_editors_do() -> None:
    assert [(x.number, x.text) for x in split([b"a\r1\r2\nb\r\n\nc"])] == [
        (1, "a"), (1, "1"), (1, "2"), (2, "b"), (3, ""), (4, "c"),
    ]  # fmt: skip


def test_a_hundred_megabytes_on_one_line_pass_in_flat_memory() -> None:
    splitter = LineSplitter()
    chunk = b"x" * (1 << 18)
    tracemalloc.start()
    try:
        for _ in range(400):
            assert list(splitter.feed(chunk)) == []
        (line,) = splitter.feed(b"end\nnext")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    assert line.cut
    assert len(line.raw) == KEEP
    assert splitter.offset == (400 << 18) + 8
    assert next(splitter.flush()).offset == (400 << 18) + 4


def test_a_long_line_within_one_chunk_is_cut_too() -> None:
    first, second = split([b"ok\n" + b"y" * (KEEP + 5) + b"\nz\n"])[1:]
    assert (first.cut, len(first.raw), first.offset) == (True, KEEP, 3)
    assert (second.text, second.offset, second.number) == ("z", KEEP + 9, 3)
