"""Peeling wrappers off an argv: what is really run under ``env``, ``uv run``, ``numactl``, ``bash -c`` and kin.

Only for recognising the engine: the argv that is run is never touched. A wrapper that is not known ends the
peeling, and the command is then treated as any other program.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_OPERATORS = frozenset({"&&", "||", ";", "|", "&", ";;", "|&", "(", ")", "{", "}"})

#: wrapper -> (options that take a value, positional words before the command)
_WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    "nohup": (frozenset(), 0),
    "setsid": (frozenset(), 0),
    "exec": (frozenset({"-a"}), 0),
    "command": (frozenset(), 0),
    "time": (frozenset({"-o", "-f", "--output", "--format"}), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "ionice": (frozenset({"-c", "-n", "--class", "--classdata"}), 0),
    "chrt": (frozenset({"-T", "-P", "-D"}), 1),
    "taskset": (frozenset(), 1),
    "stdbuf": (frozenset({"-i", "-o", "-e"}), 0),
    "timeout": (frozenset({"-k", "-s", "--kill-after", "--signal"}), 1),
    "numactl": (
        frozenset({"-m", "-N", "-C", "-i", "-p", "-w", "-L", "-f", "-S", "-F"}),
        0,
    ),
    "prlimit": (frozenset(), 0),
    "tini": (frozenset({"-p", "-e"}), 0),
    "dumb-init": (frozenset({"-r", "--rewrite"}), 0),
    "catchsegv": (frozenset(), 0),
    "sudo": (frozenset({"-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "--user", "--group"}), 0),
    "doas": (frozenset({"-u", "-C"}), 0),
    "unbuffer": (frozenset({"-p"}), 0),
}
_UV_VALUES = frozenset(
    {"--with", "--with-editable", "--with-requirements", "--extra", "--group", "--only-group", "--no-group", "-p",
     "--python", "--directory", "--project", "--env-file", "--index", "--default-index", "--package", "--cache-dir",
     "--config-file", "--index-url", "-i", "--extra-index-url", "--find-links", "-f", "--from", "-n", "--name",
     "--prefix", "--cwd"}
)  # fmt: skip
_RUNNERS = frozenset({"uv", "poetry", "pdm", "pipenv", "hatch", "rye", "conda", "mamba", "micromamba", "pixi"})


@dataclass(frozen=True, slots=True)
class Peeled:
    """The innermost words, the assignments met on the way, and a directory changed to on the way."""

    words: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    #: every simple command met in a shell string; the caller asks the engines which one is theirs
    alternatives: tuple[Peeled, ...] = ()


def leading_assignments(argv: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """``VAR=value`` words in front of a command, as a shell reads them, and the words after them."""
    env: dict[str, str] = {}
    for i, word in enumerate(argv):
        if not _ASSIGNMENT.match(word):
            return env, tuple(argv[i:])
        name, _, value = word.partition("=")
        env[name] = value
    return env, ()


def peel(argv: Sequence[str], depth: int = 12) -> Peeled:
    """*argv* without its wrappers. Never raises: what cannot be read is returned as it stands."""
    env, words = leading_assignments(argv)
    if not words or depth == 0:
        return Peeled(words, env)
    name = words[0].rsplit("/", 1)[-1]
    if name == "env":
        inner_env, rest, cwd = _env(words[1:])
        return _under(peel(rest, depth - 1), {**env, **inner_env}, cwd)
    if name in _SHELLS:
        script = _shell_script(words[1:])
        return _under(_from_script(script, depth - 1), env) if script is not None else Peeled(words, env)
    if name == "uvx" or (name in _RUNNERS and "run" in words[1:4]):
        start = 1 if name == "uvx" else words.index("run") + 1
        return _under(peel(_skip_options(words[start:], _UV_VALUES, 0), depth - 1), env)
    if name in _WRAPPERS:
        values, positional = _WRAPPERS[name]
        if name == "taskset" and any(w in ("-c", "--cpu-list", "-ac") for w in words[1:3]):
            values = frozenset()  # `-c` only changes how the one positional is read
        rest = _skip_options(words[1:], values, positional)
        return _under(peel(rest, depth - 1), env) if rest else Peeled(words, env)
    return Peeled(words, env)


def _under(inner: Peeled, env: dict[str, str], cwd: str | None = None) -> Peeled:
    alternatives = tuple(_under(a, env, cwd) for a in inner.alternatives)
    return Peeled(inner.words, {**env, **inner.env}, inner.cwd or cwd, alternatives)


def _env(words: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...], str | None]:
    """Arguments of ``env``: assignments, the command, and ``-C DIR``."""
    rest = list(words)
    cwd: str | None = None
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        if word in ("-u", "--unset") and rest:
            rest.pop(0)
        elif word in ("-C", "--chdir") and rest:
            cwd = rest.pop(0)
        elif word.startswith("--chdir="):
            cwd = word.partition("=")[2]
        elif word in ("-S", "--split-string") and rest:
            rest[0:1] = _split(rest[0])
        elif word.startswith("--split-string="):
            rest[0:0] = _split(word.partition("=")[2])
        elif word.startswith("-S") and len(word) > 2:
            rest[0:0] = _split(word[2:])
    env, command = leading_assignments(rest)
    return env, command, cwd


def _skip_options(words: Sequence[str], values: frozenset[str], positional: int) -> tuple[str, ...]:
    rest = list(words)
    while rest:
        word = rest[0]
        if word == "--":
            rest.pop(0)
            break
        if not word.startswith("-") or len(word) == 1:
            break
        if word in ("-m", "--module") and "--with" in values:
            return ("python", *rest)  # `uv run -m module`
        rest.pop(0)
        if word in values and rest:
            rest.pop(0)
    return tuple(rest[positional:])


def _shell_script(words: Sequence[str]) -> str | None:
    """The script of ``bash -lc SCRIPT``; None where the shell reads a file or a terminal."""
    for i, word in enumerate(words):
        if not word.startswith(("-", "+")):
            return None
        if word in ("-o", "-O", "--rcfile", "--init-file"):
            return None
        if not word.startswith("--") and "c" in word[1:]:
            return words[i + 1] if i + 1 < len(words) else None
    return None


def _from_script(script: str, depth: int) -> Peeled:
    """Simple commands of a shell script, each peeled; ``cd DIR`` and exported variables carry over."""
    env: dict[str, str] = {}
    cwd: str | None = None
    found: list[Peeled] = []
    for words in simple_commands(script):
        own, rest = leading_assignments(words)
        if not rest:
            env.update(own)
        elif rest[0] == "export":
            env.update(leading_assignments(rest[1:])[0])
        elif rest[0] == "cd" and len(rest) == 2:
            cwd = rest[1]
        else:
            found.append(_under(peel(words, depth), dict(env), cwd))
    if not found:
        return Peeled((), env, cwd)
    last = found[-1]
    return Peeled(last.words, last.env, last.cwd, tuple(found))


def simple_commands(script: str) -> list[list[str]]:
    """*script* cut at its operators into simple commands without redirections; [] if its quotes do not close."""
    lexer = shlex.shlex(script.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    commands: list[list[str]] = [[]]
    redirect = False
    try:
        for token in lexer:
            if token in _OPERATORS:
                commands.append([])
            elif token and set(token) <= set("<>&|") and ("<" in token or ">" in token):
                redirect = True
                if commands[-1] and commands[-1][-1].isdigit():
                    commands[-1].pop()  # the `2` of `2>`
            elif redirect:
                redirect = False
            else:
                commands[-1].append(token)
    except ValueError:
        return []
    return [c for c in commands if c]


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return [text]
