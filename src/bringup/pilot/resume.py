"""Becoming the follower of a run that was launched before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from bringup import command as commands
from bringup.engines import watching
from bringup.facts import Command
from bringup.follow import Follower, processes
from bringup.launch.attempt import AttemptDir
from bringup.ledger import RunDir
from bringup.pilot.probing import Probing, Rung
from bringup.pilot.recorder import open_recorder
from bringup.pilot.session import Session, Watched
from bringup.pilot.stopmark import stop_asked
from bringup.redact import secrets_in
from bringup.report.reporter import Reporter
from bringup.timeline import Timeline

_READ = 1 << 20


def resume(
    run_dir: RunDir,
    document: dict[str, Any],
    reporter: Reporter,
    *,
    until: Literal["ready", "now"],
    probe: Rung,
    deadline_s: float | None = None,
    fail_on_stall: bool = False,
    api_key: str | None = None,
) -> None:
    """Becomes the follower of the run; the caller holds its lock. *document* is changed in place.

    With "now" nothing is asked of the server: what is on disk is read and judged, and a start is not called ready
    before somebody has had an answer.
    """
    recorder = open_recorder(run_dir, document, reporter)
    attempt = AttemptDir(run_dir.attempt(max(1, run_dir.last_attempt)))
    pid = attempt.read_pid()
    known = watching(document["engine"])
    command = _command(document, pid.pid if pid is not None and attempt.alive() else None)
    timeline = Timeline(known, secrets=secrets_in(command.argv, command.env))
    _replay(timeline, attempt.log, run_dir)
    pids = [(pid.pid, pid.start_ticks)] if pid is not None else []
    follower = Follower(attempt.log, offset=timeline.offset, pids=pids, exit_file=attempt.exit_file)
    probing = Probing(command, known, probe, api_key=api_key, passive=until == "now")
    watched = Watched(
        pid=pid.pid if pid is not None else None,
        read_exit=attempt.read_exit,
        stop_asked=lambda: stop_asked(attempt),
        run_id=run_dir.id,
    )
    session = Session(
        recorder,
        known,
        command,
        timeline,
        follower,
        watched,
        probing,
        deadline_s=deadline_s,
        fail_on_stall=fail_on_stall,
    )
    try:
        session.resume(alive=attempt.alive())
        session.run(until)
    finally:
        probing.stop()
        follower.close()
        recorder.close()


def _replay(timeline: Timeline, log: Path, run_dir: RunDir) -> None:
    """Reads again what was read before, with the times at which it was read; records nothing."""
    marks = [
        (e["offset"], e["t_s"]) for e in run_dir.events() if e.get("source") == "log" and e.get("offset") is not None
    ]
    end = marks[-1][0] + 1 if marks else 0
    try:
        with log.open("rb") as file:
            before: float | None = 0.0
            for offset, t_s in marks:  # the bytes up to a mark were read by the time of the mark before it
                if offset > timeline.offset:
                    timeline.feed(file.read(offset - timeline.offset), before)
                before = t_s
            while timeline.offset < end:  # the line of the last event, whole
                data = file.readline(_READ)
                if not data:
                    break
                timeline.feed(data, before)
    except OSError:
        return


def _command(document: Mapping[str, Any], pid: int | None) -> Command:
    """The command as it really runs (its key is needed to probe it), else as it was stored, redacted."""
    argv = processes.exe_and_cmdline(pid)[1] if pid is not None else None
    stored = document["attempts"][-1]["command"] if document["attempts"] else []
    found = commands.parse(argv or stored)
    if found.engine != document["engine"]:  # a process may rewrite its own title
        found = commands.parse(stored)
    return found
