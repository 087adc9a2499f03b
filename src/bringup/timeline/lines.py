"""Bytes -> lines, whatever the bytes are.

A line ends at LF, CRLF or a lone CR (progress bars rewrite themselves with CR). Bytes arrive in any chunks; half
a UTF-8 sequence, NULs, terminal escapes and lines of many MB pass without harm and with flat memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

#: bytes of one line that are kept; the rest is counted and dropped (a settings line is about 30 KB)
KEEP = 1 << 20

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]")


class RawLine(NamedTuple):
    """One line: byte offset of its first byte, number (from 1, counted by LF as editors do), text.

    ``bar``: it ended in a lone CR, so it is one state of a progress bar. ``cut``: longer than ``KEEP``.
    ``whole``: an end of line was seen (False only for the last line of a flush). ``raw``: its bytes as kept.
    """

    offset: int
    number: int
    text: str
    bar: bool = False
    cut: bool = False
    whole: bool = True
    raw: bytes = b""


class LineSplitter:
    """Feeds on chunks, gives whole lines; ``flush`` gives what is left when no more bytes will come.

    What ``feed`` returns must be read to its end before the next call.
    """

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
        if not data:
            return
        if self._held_cr:
            data = b"\r" + data
        # A CR at the end of a chunk may be half of a CRLF; only the next byte tells.
        self._held_cr = data.endswith(b"\r")
        end = len(data) - self._held_cr
        position = 0
        while (stop := data.find(b"\n", position, end)) >= 0:
            if self._length or stop - position > KEEP or data.find(b"\r", position, stop) >= 0:
                yield from self._bars(data, position, stop)
                crlf = stop > position and data[stop - 1] == 13
                yield self._line(b"\r\n" if crlf else b"\n")
            else:  # a whole line and nothing odd in it
                raw = data[position:stop]
                start, number = self._start, self._number
                self._start += stop - position + 1
                self._number += 1
                yield RawLine(start, number, clean(raw), raw=raw)
            position = stop + 1
        yield from self._bars(data, position, end)

    def _bars(self, data: bytes, position: int, end: int) -> Iterator[RawLine]:
        """The lines that lone CRs end in ``data[position:end]``, which holds no LF; what follows them is kept."""
        while (stop := data.find(b"\r", position, end)) >= 0:
            if data[stop + 1 : stop + 2] == b"\n":
                end = stop
                break
            self._add(data, position, stop)
            yield self._line(b"\r")
            position = stop + 1
        self._add(data, position, end)

    def flush(self) -> Iterator[RawLine]:
        """The last line, if bytes without an end are left."""
        held, self._held_cr = self._held_cr, False
        if self._length or held:
            yield self._line(b"\r" if held else b"")

    def _add(self, data: bytes, start: int, end: int) -> None:
        self._length += end - start
        room = KEEP - len(self._kept)
        if room > 0:
            self._kept += data[start : min(end, start + room)]

    def _line(self, end: bytes) -> RawLine:
        raw = bytes(self._kept)
        line = RawLine(
            offset=self._start,
            number=self._number,
            text=clean(raw),
            bar=end == b"\r",
            cut=self._length > len(raw),
            whole=end != b"",
            raw=raw,
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
    if not text.isprintable():
        text = _ESCAPES.sub("", text)
    return text.rstrip()
