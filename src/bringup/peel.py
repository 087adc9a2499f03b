"""Peeling wrappers off an argv: what is really run under ``env``, ``uv run``, ``numactl``, ``bash -c`` and kin.

Only for recognising the engine: the argv that is run is never touched. A wrapper that is not known ends the
peeling, and the command is then treated as any other program.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bringup.shellwords import simple_commands

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
#: words of a shell's own grammar that may stand before a command
_RESERVED = frozenset({"then", "do", "else", "elif", "if", "while", "until", "!", "{", "time", "builtin", "coproc"})

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
    "stdbuf": (frozenset({"-i", "-o", "-e", "--input", "--output", "--error"}), 0),
    "choom": (frozenset({"-n", "--adjust"}), 0),
    "systemd-run": (
        frozenset(
            {
                "-p",
                "--property",
                "-u",
                "--unit",
                "-E",
                "--setenv",
                "--slice",
                "--uid",
                "--gid",
                "--working-directory",
                "-M",
                "--machine",
                "--description",
            }
        ),
        0,
    ),
    "systemd-inhibit": (frozenset({"--what", "--who", "--why", "--mode"}), 0),
    "strace": (frozenset({"-o", "-e", "-s", "-p", "-a", "-u", "-E"}), 0),
    "trtllm-llmapi-launch": (frozenset(), 0),
    "mpirun": (
        frozenset(
            {
                "-n",
                "-np",
                "-c",
                "-H",
                "-host",
                "--host",
                "-hostfile",
                "--hostfile",
                "-x",
                "--map-by",
                "--bind-to",
                "--tag-output-to-file",
            }
        ),
        0,
    ),
    "mpiexec": (frozenset({"-n", "-np", "-H", "-host", "--host", "-hostfile", "--hostfile", "-x"}), 0),
    "srun": (frozenset({"-n", "-N", "-p", "-t", "-c", "-J", "-w", "-A", "-G", "-o", "-e"}), 0),
    "timeout": (frozenset({"-k", "-s", "--kill-after", "--signal"}), 1),
    "numactl": (
        frozenset(
            {
                "-m",
                "-N",
                "-C",
                "-i",
                "-p",
                "-w",
                "-L",
                "-f",
                "-S",
                "-F",
                "--membind",
                "--cpunodebind",
                "--physcpubind",
                "--interleave",
                "--preferred",
                "--weighted-interleave",
                "--length",
                "--file",
                "--shm",
            }
        ),
        0,
    ),
    "prlimit": (frozenset(), 0),
    "tini": (frozenset({"-p", "-e"}), 0),
    "dumb-init": (frozenset({"-r", "--rewrite"}), 0),
    "catchsegv": (frozenset(), 0),
    "sudo": (
        frozenset(
            {
                "-u",
                "-g",
                "-h",
                "-p",
                "-C",
                "-r",
                "-t",
                "-T",
                "-U",
                "-D",
                "--user",
                "--group",
                "--chdir",
                "--host",
                "--prompt",
                "--close-from",
                "--role",
                "--type",
            }
        ),
        0,
    ),
    "doas": (frozenset({"-u", "-C"}), 0),
    "unbuffer": (frozenset({"-p"}), 0),
}
_UV_VALUES = frozenset(
    {"--with", "--with-editable", "--with-requirements", "--extra", "--group", "--only-group", "--no-group", "-p",
     "--python", "--directory", "--project", "--env-file", "--index", "--default-index", "--package", "--cache-dir",
     "--config-file", "--index-url", "-i", "--extra-index-url", "--find-links", "-f", "--from", "-n", "--name",
     "--prefix", "--cwd"}
)  # fmt: skip
_CONDA_VALUES = frozenset(
    {"-n", "--name", "-p", "--prefix", "--cwd", "-r", "--root-prefix", "-e", "--env", "-a", "--attach"}
)
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
        return _under(_from_script(script, depth - 1, env), env) if script is not None else Peeled(words, env)
    if name == "uvx" or (name in _RUNNERS and "run" in words[1:5]):
        start = 1 if name == "uvx" else words.index("run", 1) + 1
        values = _CONDA_VALUES if name in ("conda", "mamba", "micromamba") else _UV_VALUES
        return _under(peel(_skip_options(words[start:], values, 0), depth - 1), env)
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
        name, eq, value = word.partition("=")
        if word in ("-u", "--unset", "-a", "--argv0") and rest:
            rest.pop(0)
        elif word in ("-C", "--chdir") and rest:
            cwd = rest.pop(0)
        elif name == "--chdir" and eq:
            cwd = value
        elif word.startswith("-C") and len(word) > 2:
            cwd = word[2:]
        elif word in ("-S", "--split-string", "-vS", "-iS") and rest:
            rest[0:1] = _split(rest[0])
        elif name == "--split-string" and eq:
            rest[0:0] = _split(value)
        elif word.startswith(("-S", "-vS")):
            rest[0:0] = _split(word.partition("S")[2])
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


def _from_script(script: str, depth: int, outer: Mapping[str, str]) -> Peeled:
    """Simple commands of a shell script, each peeled; ``cd DIR`` and variables that it sets carry over."""
    env: dict[str, str] = {}
    known = dict(outer)
    cwd: str | None = None
    found: list[Peeled] = []
    for words in simple_commands(script, known):
        while words and words[0] in _RESERVED:
            words = words[1:]
        own, rest = leading_assignments(words)
        if rest and rest[0] in ("export", "declare", "typeset", "readonly", "local"):
            own = dict(w.split("=", 1) for w in rest[1:] if _ASSIGNMENT.match(w))
            rest = ()
        if not rest:
            env.update(own)
            known.update(own)
        elif rest[0] in ("cd", "pushd") and len(rest) > 1:
            cwd = rest[-1] if cwd is None or rest[-1].startswith(("/", "~", "$")) else f"{cwd.rstrip('/')}/{rest[-1]}"
        else:
            found.append(_under(peel(words, depth), dict(env), cwd))
    if not found:
        return Peeled((), env, cwd)
    last = found[-1]
    return Peeled(last.words, last.env, last.cwd, tuple(found))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return [text]
