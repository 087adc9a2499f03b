"""The simple commands of a shell script, as far as they can be told without running it.

Only for recognising what a ``bash -c`` string starts. Quotes, line continuations, comments, redirections and
operators are read as POSIX has them; ``$NAME`` is filled in where the script itself, or the command around it, sets
it; anything else that a shell would expand stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_OPERATOR = re.compile(r"&&|\|\||;;|\|&|[;&|()\n]")
_REDIRECT = re.compile(r"(?:&>>|&>|\d{0,3}(?:<<<|<<-?|<>|<&|>&|>>|>\||<|>))[ \t]*")
_NAME = re.compile(r"\$(?:(?P<bare>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?::?-(?P<default>[^{}$`\"']*))?\})")
_BLANK = " \t\r"


def simple_commands(script: str, env: Mapping[str, str]) -> Iterator[list[str]]:
    """*script* cut at its operators, without redirections. Quotes that do not close end with the script.

    *env* is looked at as the words are read: who consumes this may add to it what a command before has set.
    """
    words: list[str] = []
    position, end = 0, len(script)
    while position < end:
        char = script[position]
        if char in _BLANK:
            position += 1
        elif script.startswith("\\\n", position):
            position += 2
        elif char == "#":
            stop = script.find("\n", position)
            position = end if stop < 0 else stop
        elif match := _REDIRECT.match(script, position):
            _, position = _word(script, match.end(), env)  # a file or a descriptor: not a word of the command
        elif match := _OPERATOR.match(script, position):
            position = match.end()
            if words:
                yield words
            words = []
        else:
            word, position = _word(script, position, env)
            words.append(word)
    if words:
        yield words


def _word(script: str, position: int, env: Mapping[str, str]) -> tuple[str, int]:
    """The word at *position* without its quotes, and where it ends."""
    out: list[str] = []
    start, end = position, len(script)
    while position < end:
        char = script[position]
        if char in _BLANK or _OPERATOR.match(script, position) or (char in "<>" and position > start):
            break
        if char == "\\":
            if not script.startswith("\\\n", position):
                out.append(script[position + 1 : position + 2])
            position += 2
        elif char == "'":
            stop = script.find("'", position + 1)
            stop = end if stop < 0 else stop
            out.append(script[position + 1 : stop])
            position = stop + 1
        elif char == '"':
            text, position = _quoted(script, position + 1, env)
            out.append(text)
        else:
            text, position = _plain(script, position, env)
            out.append(text)
    return "".join(out), max(position, start)


def _quoted(script: str, position: int, env: Mapping[str, str]) -> tuple[str, int]:
    out: list[str] = []
    while position < len(script) and script[position] != '"':
        if script[position] == "\\" and script[position + 1 : position + 2] in ("\\", '"', "$", "`", "\n"):
            out.append(script[position + 1].strip("\n"))
            position += 2
        else:
            text, position = _plain(script, position, env)
            out.append(text)
    return "".join(out), position + 1


def _plain(script: str, position: int, env: Mapping[str, str]) -> tuple[str, int]:
    """One character, or what a ``$`` or backquote there stands for."""
    char = script[position]
    if char == "$":
        if match := _NAME.match(script, position):
            value = env.get(match["bare"] or match["name"], match["default"])
            return (match[0] if value is None else value), match.end()
        if script.startswith("$(", position):
            stop = _closing(script, position + 1)
            return script[position:stop], stop
    if char == "`":
        stop = script.find("`", position + 1)
        stop = len(script) if stop < 0 else stop + 1
        return script[position:stop], stop
    return char, position + 1


def _closing(script: str, position: int) -> int:
    """Index just after the parenthesis that closes the one at *position*."""
    depth = 0
    for i in range(position, len(script)):
        if script[i] in "()":
            depth += 1 if script[i] == "(" else -1
            if depth == 0:
                return i + 1
    return len(script)
