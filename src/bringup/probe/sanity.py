"""Is this text the output of a working model?

Conservative on purpose. A working model may answer anything, and the tiny random models of test suites do. Only
a few signs count, and only when a second, different request shows the same one (see canary.py): logits that are
NaN choose the same token whatever is asked, a random model does not.
"""

from __future__ import annotations

#: characters; fewer may repeat by chance
_REPEATED = 8


def odd(text: str) -> str | None:
    """What is odd about *text*, in words that are equal for equal signs; None if nothing is."""
    if not text:
        return "empty"
    bare = "".join(text.split())
    if not bare:
        return "nothing but white space"
    if all(c == "\ufffd" or not (c.isprintable() or c.isspace()) for c in bare):
        return "nothing but undecodable bytes"
    if len(bare) >= _REPEATED and len(set(bare)) == 1:
        return f"{bare[0]!r} and nothing else"
    return None
