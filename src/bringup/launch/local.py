"""Launch a server on this machine: detached, through the cradle, known to run (or not) when this returns."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bringup import paths
from bringup.errors import BringupError, UsageError
from bringup.facts import Exit
from bringup.launch.attempt import AttemptDir

CRADLE = Path(__file__).with_name("cradle.py")
#: what the cradle's own interpreter may need to start; the server's environment is handed over apart from it
_INTERPRETER_NEEDS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


@dataclass(frozen=True, slots=True)
class Launched:
    """A server that was started; ``started_at`` is RFC 3339 UTC, ticks are None where the system has none."""

    pid: int
    pgid: int
    cradle_pid: int
    started_at: str
    start_ticks: int | None
    cradle_ticks: int | None = None


class CommandNotRun(UsageError):  # noqa: N818  (a verdict, not a fault of bringup)
    """The command never became a process; ``exit`` is what the attempt's ``exit`` file holds (126 or 127)."""

    def __init__(self, message: str, code: int, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.exit = Exit(code)


def launch(
    attempt_dir: Path,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | Path | None = None,
    *,
    additions: Mapping[str, str] | None = None,
) -> Launched:
    """Start *argv* with exactly *env* in *cwd* (None: here), detached, its files in *attempt_dir*.

    Blocks until the exec has succeeded or failed. *additions* is the part of *env* that is recorded in
    ``command.json``; by default all that differs from this process's own environment.
    Raises ``CommandNotRun`` for a command that cannot be executed, ``UsageError`` for a bad cwd, argv or
    directory, ``BringupError`` where the cradle itself cannot be started.
    """
    place = record(attempt_dir, argv, env, cwd, additions)
    body = _orders(argv, env, place)
    own = {k: os.environ[k] for k in _INTERPRETER_NEEDS if k in os.environ}
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(CRADLE), str(attempt_dir.absolute())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=own,
            start_new_session=True,  # Ctrl-C at this moment must not reach it
        )
    except OSError as e:
        raise BringupError(f"cannot start the cradle: {e.strerror}", f"is `{sys.executable}` usable?") from e
    said, _ = process.communicate(str(len(body)).encode() + b"\0" + body)
    return _answer(os.fsdecode(said).strip(), attempt_dir, place)


def record(
    attempt_dir: Path,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | Path | None,
    additions: Mapping[str, str] | None,
) -> str:
    """Check what is to be run, make the directory and write ``command.json``; returns the absolute cwd."""
    if not argv or not argv[0]:
        raise UsageError("there is no command to run", "put it after `--`: bringup up -- COMMAND...")
    if any("\0" in text for pair in ([*argv], env, env.values()) for text in pair):
        raise UsageError("a command and its environment cannot hold a NUL byte")
    if bad := [name for name in env if "=" in name or not name]:
        raise UsageError(f"not a name for an environment variable: `{bad[0]}`")
    place = _working_directory(cwd)
    paths.ensure_private(attempt_dir)
    if (attempt_dir / "pid").exists() or (attempt_dir / "exit").exists():
        raise UsageError(f"`{attempt_dir}` already holds an attempt", "each launch needs a directory of its own")
    if additions is None:
        additions = {k: v for k, v in env.items() if os.environ.get(k) != v}
    try:
        AttemptDir(attempt_dir).write_command(argv, additions, place)
    except OSError as e:
        raise unwritable(attempt_dir, e.strerror or str(e)) from e
    return place


def unwritable(attempt_dir: Path, why: str) -> UsageError:
    """The error for a directory that cannot be written (any more)."""
    hint = "free some space, or choose another place with --state-dir DIR or BRINGUP_STATE_DIR=DIR"
    return UsageError(f"cannot write to `{attempt_dir}`: {why}", hint)


def _working_directory(cwd: str | Path | None) -> str:
    try:
        path = Path(cwd).expanduser().absolute() if cwd is not None else Path.cwd()
    except (OSError, RuntimeError) as e:
        raise UsageError("the working directory is gone", "name another one with --cwd DIR") from e
    if not path.exists():
        raise UsageError(f"no such working directory: `{path}`", "name an existing one with --cwd DIR")
    if not path.is_dir():
        raise UsageError(f"not a directory: `{path}`", "name a directory with --cwd DIR")
    return str(path)


def _orders(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> bytes:
    fields = [cwd, str(len(argv)), *argv, *(f"{k}={v}" for k, v in env.items())]
    return b"".join(os.fsencode(text) + b"\0" for text in fields)


def _answer(said: str, attempt_dir: Path, cwd: str) -> Launched:
    kind, _, rest = said.partition(" ")
    words = rest.split(" ", 4)
    if kind == "ok" and len(words) == 5:
        pid, ticks, cradle, cradle_ticks = map(int, words[:4])
        return Launched(pid, pid, cradle, words[4], ticks or None, cradle_ticks or None)
    if kind == "exec":
        _, code, text = rest.split(" ", 2)
        raise not_run(text, int(code))
    if kind == "fail":
        why = rest.partition(" ")[2]
        recorded = (attempt_dir / "exit").exists()  # only where the server's own side failed
        raise (
            CommandNotRun(f"cannot enter the working directory `{cwd}`: {why}", 126)
            if recorded
            else unwritable(attempt_dir, why)
        )
    last = said.splitlines()[-1:] or ["it ended without a word"]
    raise BringupError(f"the cradle failed: {last[0]}", "please report this")


def not_run(text: str, code: int) -> CommandNotRun:
    """The error for a command that could not be executed, in the cradle's own words."""
    if code == 127:
        return CommandNotRun(text, code, "is it installed, and on the PATH that the command is given?")
    return CommandNotRun(text, code, "is the file executable, and made for this machine?")
