"""``bringup watch --log FILE``: following a startup that somebody else launched.

Nothing is ended, and nothing is asked of the server beyond its model list unless the user wants more.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from bringup import command as commands
from bringup.clock import now_text
from bringup.diagnose import whose
from bringup.engines import all_engines, watching
from bringup.errors import UsageError
from bringup.facts import Command, Event, Exit
from bringup.follow import Follower, processes
from bringup.ledger import new_run_id
from bringup.pilot.probing import Probing, Rung
from bringup.pilot.recorder import Recorder
from bringup.pilot.session import Session, Watched
from bringup.redact import redact_argv
from bringup.report.documents import new_run_document, safe
from bringup.report.reporter import Reporter
from bringup.states import State
from bringup.targets import procfs
from bringup.timeline import Timeline

_SNIFF = 1 << 18


def watch_log(
    log: Path,
    reporter: Reporter,
    *,
    pid: int | None = None,
    engine_name: str | None = None,
    probe: Rung = "models",
    api_key: str | None = None,
    timeout_s: float | None = None,
    fail_on_stall: bool = False,
) -> dict[str, Any]:
    """Follows the last startup in *log*; returns the run document. Raises UsageError for a log that is none.

    The process is the one given, else whoever holds the log open for writing; if there is none the log is taken
    as finished and judged by what it says.
    """
    _check(log)
    if pid is not None and not procfs.is_alive(pid, None):
        raise UsageError(f"there is no process {pid}", "leave --pid out to find the writer of the log")
    main = pid if pid is not None else _writer(log)
    argv = processes.exe_and_cmdline(main)[1] if main is not None else None
    command = commands.parse(argv) if argv else Command(argv=(str(log),))
    known = watching(_engine_name(log, engine_name, command))
    document = new_run_document(run=new_run_id(), name=log.name, target="local", engine=known.name, model=command.model)
    started = procfs.started_at(main) if main is not None else None
    document["started"] = None if started is None else now_text(started)
    document["pid"] = main
    document["attempts"].append(
        {
            "attempt": 1, "command": safe(redact_argv(command.argv)), "changes": [], "state": "planned",
            "started": document["started"] or now_text(), "seconds": None,
        }
    )  # fmt: skip
    recorder = Recorder(document, reporter)
    recorder.move(State.LAUNCHING)
    recorder.move(State.STARTING, None, 0.0)
    recorder.add(Event("phase", {"name": "spawn", "worker": None}, "bringup", t_s=0.0, phase="spawn"))
    timeline = Timeline(known, source=str(log.name))
    pids = [(main, procfs.start_ticks(main))] if main is not None else []
    follower = Follower(log, pids=pids)
    effective: Rung = probe if main is not None else "none"
    probing = Probing(command, known, effective, api_key=api_key)
    watched = Watched(pid=main, read_exit=lambda: Exit(None, None, certain=False), stop_asked=lambda: False)
    session = Session(
        recorder, known, command, timeline, follower, watched, probing,
        deadline_s=timeout_s, fail_on_stall=fail_on_stall,
    )  # fmt: skip
    try:
        if main is None:
            session.run("now")
            session.conclude()
        else:
            session.run("ready")
            if recorder.state is State.FAILED and procfs.is_alive(main, None):
                reporter.note(f"the process {main} is still there and hangs; bringup ends nothing it did not launch")
    finally:
        probing.stop()
        follower.close()
        recorder.close()
    return document


def _check(log: Path) -> None:
    try:
        mode = log.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UsageError(f"`{log}` is a directory", "name the log file in it")
        with log.open("rb"):
            pass
    except FileNotFoundError:
        raise UsageError(f"there is no file `{log}`") from None
    except OSError as exc:
        raise UsageError(f"cannot read `{log}`: {exc.strerror}") from None


def _writer(log: Path) -> int | None:
    """The process that the log is about: of all that hold it open for writing, the first ancestor."""
    writers = set(processes.writers_of(log))
    tops = [p for p in writers if not any(p in processes.descendants(q) for q in writers if q != p)]
    return min(tops, key=lambda p: (procfs.start_ticks(p) or 0, p), default=None)


def _engine_name(log: Path, asked: str | None, command: Command) -> str:
    if asked is not None:
        if asked not in all_engines():
            raise UsageError(f"there is no engine `{asked}`", f"engines: {', '.join(all_engines())}")
        return asked
    if command.engine != "generic":
        return command.engine
    with log.open("rb") as file:
        return whose(file.read(_SNIFF).decode("utf-8", "replace"))
