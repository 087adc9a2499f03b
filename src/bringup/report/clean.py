"""Text of others (logs, models, file names) made harmless for a terminal.

Whoever writes a log must not be able to move the cursor, change colours or titles, or hide text on the screen of
the person who reads it.
"""

from __future__ import annotations

import re

#: escape sequences: CSI, OSC and its like (to BEL or ST), two-character ones; the 8-bit forms too. One that never
#: ends loses its beginning only: a terminal would swallow the rest, and evidence must not vanish
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]{0,500}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]?"
)
#: control characters, text direction marks, invisible joiners, line separators
_CONTROLS = re.compile(
    "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u00ad\\u061c\\u200b-\\u200f\\u2028-\\u202e"
    "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]"
)
_SPACES = re.compile(r"[\r\n\t\v\f]+")
#: what is looked at of a text of which *limit* characters are shown: escapes may fill a line of many MB
_LOOK = 8


def one_line(text: object, limit: int = 2000) -> str:
    """*text* as one printable line of at most *limit* characters; an ellipsis says that it was cut."""
    raw = text if isinstance(text, str) else str(text)
    head = raw[: limit * _LOOK + 200]
    shown = _CONTROLS.sub("", _SPACES.sub(" ", _ESCAPES.sub("", head))).strip()
    if not shown.isascii():  # bytes of a file name that are no UTF-8 are shown escaped
        shown = shown.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(shown) > limit or len(head) < len(raw):
        return shown[: max(0, limit - 3)].rstrip() + "..."
    return shown
