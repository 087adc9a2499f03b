"""Colour that can be left out, and text fitted to a width. Standard library only: these run on every command."""

from __future__ import annotations

import shutil
import textwrap
import unicodedata

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
#: columns of text where nothing says how wide the screen is, and the most that reads well
DEFAULT_WIDTH, READABLE = 100, 120
#: a space at which no line is broken
KEEP = "\u00a0"


class Paint:
    """Wraps text in a style if there is colour, else leaves it as it is."""

    def __init__(self, color: bool) -> None:
        self.on = color

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.on and text else text


def width_of(given: int | None = None) -> int:
    """Columns to write text in: *given*, else the terminal's (COLUMNS is honoured), at most what reads well."""
    found = given or shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    return max(20, min(found, READABLE if given is None else given))


def wrapped(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """*text* as lines of at most *width* columns; the first begins with *first*, the others with *rest*.

    A no-break space keeps what belongs together (a number and its unit) and comes out as a space.
    """
    hang = " " * len(first) if rest is None else rest
    found = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=hang, break_on_hyphens=False, break_long_words=True
    )
    return [line.replace(KEEP, " ") for line in found] or [first.rstrip()]


def together(text: str) -> str:
    """*text* so that ``wrapped`` does not break it."""
    return text.replace(" ", KEEP)


def columns(text: str) -> int:
    """How many columns *text* takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def padded(text: str, width: int) -> str:
    """*text* with spaces up to *width* columns."""
    return text + " " * max(0, width - columns(text))
