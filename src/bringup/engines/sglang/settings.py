"""SGLang's settings line: the effective arguments, printed whole.

Up to 0.5.17 it is a dataclass repr (``server_args=ServerArgs(key=value, ...)``), from 0.5.23 a dict repr
(``server_args={...}``). It holds words such as ``running``, ``watchdog``, ``crash`` and ``timeout`` as names, so
it must be recognised first and kept from every other rule. Nothing in it is ever executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

_MARK = "server_args="


def parse_server_args(text: str) -> Mapping[str, Any] | None:
    """Settings from a line that holds ``server_args=``; None if it holds none.

    Values are Python literals where they are literals, else their source text (enums, objects). A line cut in
    the middle gives the settings before the cut.
    """
    start = text.find(_MARK)
    if start < 0:
        return None
    body = text[start + len(_MARK) :].strip()
    if body.startswith("ServerArgs("):
        pairs = _split(body[len("ServerArgs(") :])
        return {k: _value(v) for k, eq, v in (p.partition("=") for p in pairs) if eq and k.strip().isidentifier()}
    if body.startswith("{"):
        found: dict[str, Any] = {}
        for pair in _split(body[1:]):
            key, value = _key_value(pair)
            if key is not None:
                found[key] = _value(value)
        return found
    return None


def _key_value(pair: str) -> tuple[str | None, str]:
    pair = pair.strip()
    if not pair or pair[0] not in "'\"":
        return None, ""
    end = pair.find(pair[0], 1)
    rest = pair[end + 1 :].lstrip()
    if end < 0 or not rest.startswith(":"):
        return None, ""
    return pair[1:end], rest[1:]


def _value(source: str) -> Any:
    source = source.strip()
    try:
        return ast.literal_eval(source)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return source


def _split(body: str) -> Iterator[str]:
    """The comma-separated parts of *body* up to its closing bracket; quotes and nested brackets are respected.

    The last part is left out if the text ends inside it: half a value would be a wrong value.
    """
    depth = 0
    quote: str | None = None
    start = 0
    i = 0
    while i < len(body):
        char = body[i]
        if quote:
            if char == "\\":
                i += 1
            elif char == quote:
                quote = None
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            if depth == 0:
                if body[start:i].strip():
                    yield body[start:i].strip()
                return
            depth -= 1
        elif char == "," and depth == 0:
            yield body[start:i].strip()
            start = i + 1
        i += 1
