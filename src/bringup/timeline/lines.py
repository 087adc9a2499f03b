"""Bytes -> lines, whatever the bytes are.

A line ends at LF, CRLF or a lone CR (progress bars rewrite themselves with CR). Bytes arrive in any chunks; half
a UTF-8 sequence, NULs, terminal escapes and lines of many MB pass without harm and with flat memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: bytes of one line that are kept; the rest is counted and dropped (a settings line is about 30 KB)
KEEP = 1 << 20

_END = re.compile(rb"\r\n|\n|\r")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class RawLine:
    """One line: byte offset of its first byte, number (from 1, counted by LF as editors do), text.

    ``bar``: it ended in a lone CR, so it is one state of a progress bar. ``cut``: longer than ``KEEP``.
    ``whole``: an end of line was seen (False only for the last line of a flush).
    """

    offset: int
    number: int
    text: str
    bar: bool = False
    cut: bool = False
    whole: bool = True


class LineSplitter:
    """Feeds on chunks, gives whole lines; ``flush`` gives what is left when no more bytes will come."""

    def __init__(self, offset: int = 0, number: int = 1) -> None:
        self._start = offset
        self._number = number
        self._kept = bytearray()
        self._length = 0
        self._held_cr = False

    @property
    def offset(self) -> int:
        """Bytes consumed so far, counted from the start of the source."""
        return self._start + self._length + (1 if self._held_cr else 0)

    def feed(self, data: bytes) -> Iterator[RawLine]:
        """The lines that *data* completes, in order."""
        if self._held_cr and data:
            # A CR at the end of a chunk may be half of a CRLF; only the next byte tells.
            self._held_cr = False
            data = b"\r" + data
        position = 0
        end = len(data)
        for match in _END.finditer(data):
            if match[0] == b"\r" and match.end() == end:
                break
            self._add(data[position : match.start()])
            position = match.end()
            yield self._line(match[0])
        rest = data[position:]
        if rest.endswith(b"\r"):
            self._held_cr = True
            rest = rest[:-1]
        self._add(rest)

    def flush(self) -> Iterator[RawLine]:
        """The last line, if bytes without an end are left."""
        held, self._held_cr = self._held_cr, False
        if self._length or held:
            yield self._line(b"\r" if held else b"")

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        room = KEEP - len(self._kept)
        if room > 0:
            self._kept += part[:room]

    def _line(self, end: bytes) -> RawLine:
        line = RawLine(
            offset=self._start,
            number=self._number,
            text=clean(bytes(self._kept)),
            bar=end == b"\r",
            cut=self._length > len(self._kept),
            whole=end != b"",
        )
        self._start += self._length + len(end)
        self._length = 0
        self._kept.clear()
        if end.endswith(b"\n"):
            self._number += 1
        return line


def clean(raw: bytes) -> str:
    """Text of a line: UTF-8 with replacement characters, without terminal escapes and control characters."""
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text or not text.isprintable():
        text = _ESCAPES.sub("", text)
    return text.rstrip()
