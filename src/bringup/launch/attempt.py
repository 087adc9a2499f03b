"""An attempt's directory on the target: making it, and reading it while others write it.

Every file may be missing, half-written or garbage at any time; then the answer is None. Two kinds of cradle
write it: bringup's own (JSON lines) and a POSIX shell on a bare target (bare numbers).
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bringup import paths, redact
from bringup.facts import Exit
from bringup.launch import cradle
from bringup.targets import procfs

PROTOCOL = 1


@dataclass(frozen=True, slots=True)
class Pid:
    """The server's main process and the cradle that waits for it; ticks are None where they are not known."""

    pid: int
    start_ticks: int | None = None
    pgid: int | None = None
    cradle: int | None = None
    cradle_ticks: int | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """When (RFC 3339 UTC), and in which boot of the machine."""

    at: str
    boot_id: str | None = None


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """The content of ``exit``: how the main process ended, when, and which pids of the run outlived it."""

    exit: Exit
    at: str | None = None
    leftover: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AttemptDir:
    """The directory ``runs/<run>/<attempt>``."""

    path: Path
    log: Path = field(init=False)
    exit_file: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "log", self.path / "log")
        object.__setattr__(self, "exit_file", self.path / "exit")

    def read_command(self) -> dict[str, Any] | None:
        """``command.json``: protocol, argv and env (redacted), cwd, created."""
        found = self._json("command.json")
        return found if isinstance(found, dict) else None

    def read_pid(self) -> Pid | None:
        """Who was started, or None before that."""
        found = self._json("pid")
        if isinstance(found, dict):
            keys = ("start_ticks", "pgid", "cradle", "cradle_ticks")
            pid, rest = _int(found.get("pid")), {k: _int(found.get(k)) for k in keys}
        else:
            pid, rest = _int(found), {}
        return Pid(pid, **rest) if pid is not None and pid > 0 else None

    def read_started(self) -> Started | None:
        """When it was started, or None before that."""
        found = self._json("started")
        if isinstance(found, dict) and isinstance(found.get("at"), str):
            boot = found.get("boot_id")
            return Started(found["at"], boot if isinstance(boot, str) else None)
        text = self._text("started").strip()
        return Started(text) if text[:4].isdigit() and text[10:11] == "T" else None

    def read_exit(self) -> Exit | None:
        """How the main process ended, or None while that is not (yet) recorded."""
        record = self.read_exit_record()
        return record.exit if record else None

    def read_exit_record(self) -> ExitRecord | None:
        """All that ``exit`` holds."""
        found = self._json("exit")
        number = _int(found)
        if number is not None:
            return ExitRecord(shell_exit(number)) if number >= 0 else None
        if not isinstance(found, dict):
            return None
        code, name = _int(found.get("code")), found.get("signal")
        name = name if isinstance(name, str) else None
        if code is None and name is None:
            return None
        at, left = found.get("at"), found.get("leftover")
        return ExitRecord(
            Exit(code, name, found.get("certain") is not False),
            at if isinstance(at, str) else None,
            tuple(p for p in left if _int(p) is not None) if isinstance(left, list) else (),
        )

    def alive(self) -> bool:
        """Whether the main process still runs: same pid, same start, same boot, not a zombie."""
        pid = self.read_pid()
        return pid is not None and self._this_boot() and procfs.is_alive(pid.pid, pid.start_ticks)

    def cradle_alive(self) -> bool:
        """Whether somebody still waits for the main process, so that ``exit`` can still come."""
        pid = self.read_pid()
        if pid is None or pid.cradle is None or not self._this_boot():
            return False
        return procfs.is_alive(pid.cradle, pid.cradle_ticks)

    def write_command(self, argv: Sequence[str], additions: Mapping[str, str], cwd: str) -> None:
        """Record what will be run, secrets masked. Raises OSError."""
        known = redact.secrets_in(argv, additions)
        content = {
            "protocol": PROTOCOL,
            "argv": [redact.redact_text(word, known) for word in redact.redact_argv(argv)],
            "env": {k: redact.redact_text(v, known) for k, v in redact.redact_env(additions).items()},
            "cwd": redact.redact_text(cwd, known),
            "created": cradle.now(),
        }
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            cradle.write_atomic(folder, "command.json", json.dumps(content) + "\n")
        finally:
            os.close(folder)

    def _this_boot(self) -> bool:
        started = self.read_started()
        recorded = started.boot_id if started else None
        return recorded is None or recorded == procfs.boot_id()

    def _text(self, name: str) -> str:
        try:
            with (self.path / name).open(encoding="utf-8", errors="replace") as f:
                return f.read(1 << 20)
        except OSError:
            return ""

    def _json(self, name: str) -> object:
        try:
            return json.loads(self._text(name))
        except (ValueError, RecursionError):
            return None


def new_attempt(state: Path, run: str) -> AttemptDir:
    """Make the next attempt's directory of *run*: 1, 2, ... Two clients never get the same one.

    Raises ``UsageError`` where the state directory cannot be written.
    """
    folder = paths.ensure_private(paths.run_dir(state, run))
    number = max((n for n, _ in attempts(state, run)), default=0) + 1
    while True:
        path = folder / str(number)
        try:
            path.mkdir(mode=0o700)
            return AttemptDir(path)
        except FileExistsError:
            number += 1
        except OSError:
            return AttemptDir(paths.ensure_private(path))  # for its message


def attempts(state: Path, run: str) -> list[tuple[int, AttemptDir]]:
    """All attempts of *run*, by number; empty where there are none."""
    try:
        names = [entry.name for entry in paths.run_dir(state, run).iterdir()]
    except OSError:
        return []
    numbers = sorted(int(name) for name in names if name.isascii() and name.isdigit())
    return [(n, AttemptDir(paths.run_dir(state, run) / str(n))) for n in numbers]


def shell_exit(status: int) -> Exit:
    """A shell's ``$?``: above 128 it may be a signal or the process's own code."""
    try:
        return Exit(status, signal.Signals(status - 128).name, certain=False) if status > 128 else Exit(status)
    except ValueError:
        return Exit(status)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
