"""``bringup diagnose`` on files: recorded logs through the same rooms as live ones."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from bringup.diagnose import Facts, diagnose, merge, whose
from bringup.engines import all_engines, anyone, engine
from bringup.errors import UsageError
from bringup.facts import Diagnosis, Exit
from bringup.timeline import Timeline

_CHUNK = 1 << 20
_SNIFF = 1 << 18


def judge_file(
    sources: Sequence[str], *, engine_name: str | None = None, exit_: Exit | None = None, still_written: bool = False
) -> Diagnosis:
    """The diagnosis of one startup recorded in *sources* (paths, or ``-`` for standard input).

    Several sources are the ranks of one start. Raises UsageError for a source that cannot be read.
    """
    if engine_name is not None and engine_name not in all_engines():
        raise UsageError(f"there is no engine `{engine_name}`", f"engines: {', '.join(all_engines())}")
    read = [_begin(s) for s in sources]
    name = engine_name or whose(b"".join(block for head, _ in read for block in head).decode("utf-8", "replace"))
    known = engine(name) if engine_name is not None or name != "generic" else anyone()
    facts = Facts(exit=exit_, ended=not still_written)
    found: list[Diagnosis] = []
    for source, (head, rest) in zip(sources, read, strict=True):
        timeline = Timeline(known, source=_label(source, len(sources) > 1))
        for block in (*head, *rest):
            timeline.feed(block)
        timeline.flush()
        found.append(diagnose(timeline.view, known, facts))
    return found[0] if len(found) == 1 else merge(found)


def _label(source: str, several: bool) -> str:
    if source == "-":
        return "stdin"
    return Path(source).name if several else "log"


def _begin(source: str) -> tuple[list[bytes], Iterator[bytes]]:
    """The first blocks of a source, enough to tell whose log it is, and the blocks after them."""
    chunks = read_chunks(source)
    return _head(chunks), chunks


def _head(chunks: Iterator[bytes]) -> list[bytes]:
    head: list[bytes] = []
    size = 0
    for chunk in chunks:
        head.append(chunk)
        size += len(chunk)
        if size >= _SNIFF:
            break
    return head


def read_chunks(source: str) -> Iterator[bytes]:
    """The bytes of a file or of standard input. Raises UsageError at once if it cannot be read."""
    if source == "-":
        return _blocks(sys.stdin.buffer)
    path = Path(source)
    try:
        if path.is_dir():
            raise UsageError(f"`{source}` is a directory", "name the log file in it")
        file = path.open("rb")
    except FileNotFoundError:
        raise UsageError(
            f"there is no file `{source}`", "see your runs with `bringup ps`, or pass `-` for stdin"
        ) from None
    except OSError as exc:
        raise UsageError(f"cannot read `{source}`: {exc.strerror}") from None
    return _blocks(file)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while block := file.read(_CHUNK):
            yield block


def parse_exit(text: str) -> Exit:
    """``--exit``: a code (``1``), a shell's code of a signal (``137``), a negative one (``-9``), or a name.

    Raises UsageError for anything else.
    """
    word = text.strip().upper()
    try:
        number = int(word)
    except ValueError:
        name = word if word.startswith("SIG") else f"SIG{word}"
        if name in signal.Signals.__members__:
            return Exit(None, name)
        raise UsageError(
            f"`{text}` is neither an exit code nor a signal", "for example `--exit 1` or `--exit SIGKILL`"
        ) from None
    if number < 0:
        return Exit(None, signal_name(-number))
    if 128 < number < 193:
        return Exit(number, signal_name(number - 128), certain=False)
    return Exit(number, None)


def signal_name(number: int) -> str | None:
    """``SIGKILL`` for 9; None for a number that is no signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
