"""``bringup up``: launch a command detached, follow it, and say ready or exactly why not."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bringup import command as commands
from bringup import errors
from bringup.checkpoint import missing_shards
from bringup.clock import now_text
from bringup.engines import watching
from bringup.facts import Command, Event
from bringup.follow import Follower, oom
from bringup.launch.attempt import AttemptDir
from bringup.launch.local import CommandNotRun, Launched, launch
from bringup.ledger import RunDir, new_run_id
from bringup.names import name_for
from bringup.paths import ensure_private
from bringup.peel import leading_assignments
from bringup.pilot.foreground import Foreground
from bringup.pilot.index import index
from bringup.pilot.probing import Probing, Rung
from bringup.pilot.recorder import Recorder
from bringup.pilot.session import Session, Watched
from bringup.pilot.stopmark import stop_asked
from bringup.pilot.stopping import stop_attempt
from bringup.plan import plan_line
from bringup.preflight import Check, program_found, shards_there
from bringup.redact import redact_argv, redact_env, redact_text, secrets_in
from bringup.report.documents import new_run_document, safe
from bringup.report.reporter import Reporter
from bringup.states import State
from bringup.timeline import Timeline


@dataclass(frozen=True)
class UpOptions:
    """What the user asked of one ``up``. ``env`` is added to the target's own environment."""

    argv: tuple[str, ...]
    name: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    venv: str | None = None
    probe: Rung = "completion"
    api_key: str | None = None
    deadline_s: float | None = None
    fail_on_stall: bool = False
    force: bool = False
    foreground: bool = False
    plan: bool = True
    env_additions: bool = True
    grace_s: float = 10.0


@dataclass(frozen=True)
class Result:
    """The exit code of the contract and the run document."""

    code: int
    document: dict[str, Any]


def bring_up(options: UpOptions, state_dir: Path, reporter: Reporter, foreground: Foreground | None = None) -> Result:
    """Runs one attempt. KeyboardInterrupt leaves the server running and passes through."""
    run_dir = RunDir(ensure_private(state_dir / "runs") / new_run_id())
    environ = _environment(options, run_dir.id)
    cwd = str(Path(options.cwd or ".").resolve())
    secrets = secrets_in(options.argv, environ)
    command = commands.parse(options.argv, environ=environ, cwd=cwd, read_text=_reader(cwd))
    if not commands.runnable(command):
        raise errors.UsageError("there is no command to run", "write it after `--`: `bringup up -- COMMAND...`")
    ensure_private(run_dir.path)
    run_dir.lock()
    document = new_run_document(
        run=run_dir.id,
        name=name_for(options.name, command, state_dir),
        target="local",
        engine=command.engine,
        model=safe(redact_text(command.model, secrets)) if command.model else None,
    )
    recorder = Recorder(document, reporter, run_dir)
    try:
        with foreground or contextlib.nullcontext():
            code = _attempt(options, command, environ, cwd, run_dir, recorder, foreground, secrets)
        return Result(code, recorder.document)
    finally:
        recorder.close()
        index(state_dir, run_dir, recorder.document, reporter)
        run_dir.unlock()


def _attempt(
    options: UpOptions,
    command: Command,
    environ: dict[str, str],
    cwd: str,
    run_dir: RunDir,
    recorder: Recorder,
    foreground: Foreground | None,
    secrets: frozenset[str],
) -> int:
    reporter, document = recorder.reporter, recorder.document
    known = watching(command.engine)
    if options.plan:
        reporter.note(plan_line(command))
    check = program_found(commands.runnable(command)[0], _which(environ, cwd)) or _shards(command, cwd)
    if check is not None and not options.force:
        recorder.move(State.REFUSED, check.summary)
        raise errors.RefusedError(check.summary, check.fix)
    document["attempts"].append(
        {
            "attempt": 1, "command": _shown_argv(options.argv, secrets), "changes": [], "state": State.PLANNED.word,
            "started": None, "seconds": None,
        }
    )  # fmt: skip
    recorder.attempt = 1
    document["environment"] = safe(_shown_environment(options, command, run_dir.id))
    recorder.move(State.LAUNCHING)
    attempt = AttemptDir(ensure_private(run_dir.attempt(1)))
    started = _launched(attempt, command, environ, cwd, document["environment"])
    before = oom.snapshot(started.pid if started else None)
    document["pid"] = started.pid if started else None
    document["started"] = document["attempts"][-1]["started"] = started.started_at if started else now_text()
    recorder.move(State.STARTING, None, 0.0)
    recorder.add(Event("phase", {"name": "spawn", "worker": None}, "bringup", t_s=0.0, phase="spawn"))
    timeline = Timeline(known, secrets=secrets)
    follower = Follower(attempt.log, pids=_pids(started), exit_file=attempt.exit_file)
    probing = Probing(command, known, options.probe, api_key=options.api_key)
    watched = Watched(
        pid=started.pid if started else None, read_exit=attempt.read_exit, stop_asked=lambda: stop_asked(attempt),
        run_id=run_dir.id, oom_before=before,
    )  # fmt: skip
    session = Session(
        recorder, known, command, timeline, follower, watched, probing,
        deadline_s=options.deadline_s, fail_on_stall=options.fail_on_stall,
    )  # fmt: skip
    try:
        if started is None:
            session.resume(alive=False)
        if foreground is not None and started is not None:
            return foreground.follow(session, attempt, started.pgid)
        ending = session.run()
        if ending == "failed" and started is not None:
            _end_group(attempt, run_dir.id, options.grace_s, reporter)
        return CODES[ending or "deadline"](document)
    finally:
        probing.stop()
        follower.close()


#: how one watch ended -> the exit code, given the run document
CODES: dict[str, Callable[[Mapping[str, Any]], int]] = {
    "ready": lambda _: errors.READY,
    "failed": lambda run: errors.FAILED_KNOWN if (run.get("diagnosis") or {}).get("cause") else errors.FAILED_UNKNOWN,
    "stopped": lambda _: errors.STOPPED,
    "stalled": lambda _: errors.STALLED,
    "deadline": lambda _: errors.STILL_STARTING,
}


def _launched(
    attempt: AttemptDir, command: Command, environ: Mapping[str, str], cwd: str, additions: Mapping[str, str]
) -> Launched | None:
    """The launched server; None if its exec failed (the attempt's log and exit then say why)."""
    try:
        return launch(attempt.path, commands.runnable(command), environ, cwd, additions=additions)
    except CommandNotRun:
        return None


def _shown_argv(argv: Sequence[str], secrets: frozenset[str]) -> list[str]:
    """The argv as it may be stored: secrets masked wherever they stand, bytes that are no text escaped."""
    shown: list[str] = safe([redact_text(word, secrets) for word in redact_argv(argv)])
    return shown


def _pids(started: Launched | None) -> list[tuple[int, int | None]]:
    return [(started.pid, started.start_ticks)] if started else []


def _end_group(attempt: AttemptDir, run_id: str, grace: float, reporter: Reporter) -> None:
    """Ends what is left of a failed start, so that its memory and port are free for the next one."""
    proof = stop_attempt(attempt, run_id, (), grace)
    if not proof.stopped:
        names = ", ".join(f"{name} ({p})" for p, name in proof.leftover)
        reporter.note(f"warning: processes of the failed start are still there: {names}")


def _environment(options: UpOptions, run_id: str) -> dict[str, str]:
    environ = dict(os.environ)
    if options.venv:
        bin_dir = str(Path(options.venv).resolve() / "bin")
        environ["VIRTUAL_ENV"] = str(Path(options.venv).resolve())
        environ["PATH"] = bin_dir + os.pathsep + environ.get("PATH", os.defpath)
        environ.pop("PYTHONHOME", None)
    environ.update(options.env)
    environ.update(leading_assignments(options.argv)[0])
    environ["BRINGUP_RUN"] = run_id
    if options.env_additions:
        environ.setdefault("PYTHONUNBUFFERED", "1")
    return environ


def _shown_environment(options: UpOptions, command: Command, run_id: str) -> dict[str, str]:
    shown = {**redact_env({**options.env, **command.env}), "BRINGUP_RUN": run_id}
    if options.env_additions:
        shown["PYTHONUNBUFFERED"] = "1"
    return shown


def _shards(command: Command, cwd: str) -> Check | None:
    if not command.model:
        return None
    missing = missing_shards(Path(cwd) / Path(command.model).expanduser())
    return shards_there(command.model, command.args, missing)


def _which(environ: Mapping[str, str], cwd: str) -> Callable[[str], bool]:
    def found(program: str) -> bool:
        if "/" in program:
            return (Path(cwd) / program).exists()
        return shutil.which(program, path=environ.get("PATH", os.defpath)) is not None

    return found


def _reader(cwd: str) -> Callable[[str], str | None]:
    def read(name: str) -> str | None:
        try:
            path = Path(cwd) / name
            return path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size < 1 << 20 else None
        except OSError:
            return None

    return read
