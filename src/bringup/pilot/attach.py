"""Taking up a run that was launched before: watch, wait, status.

If nobody follows the run, this process becomes its follower: it reads the log again from its first byte (the
pure rooms give the same view from the same bytes), records only what is new, and goes on. If another process
follows it, its events are read as they come.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from bringup import command as commands
from bringup.engines import watching
from bringup.facts import Command
from bringup.follow import Data, Follower, processes
from bringup.launch.attempt import AttemptDir
from bringup.ledger import RunDir
from bringup.pilot.index import index
from bringup.pilot.probing import Probing, Rung
from bringup.pilot.recorder import Recorder
from bringup.pilot.session import Session, Watched
from bringup.pilot.stopmark import stop_asked
from bringup.redact import secrets_in
from bringup.report.reporter import NullReporter, Reporter
from bringup.states import State
from bringup.timeline import LineSplitter, Timeline

_READ = 1 << 20


def open_recorder(run_dir: RunDir, document: dict[str, Any], reporter: Reporter) -> Recorder:
    """A recorder that goes on where the stored events end. The caller holds the lock."""
    last = -1
    for event in run_dir.events():
        last = max(last, int(event.get("seq", -1)))
    return Recorder(document, reporter, run_dir, next_seq=last + 1)


def refresh(
    state_dir: Path, run_dir: RunDir, reporter: Reporter | None = None, *, wait_s: float = 0.0
) -> dict[str, Any]:
    """The run document as it is now: what happened since anybody looked is read, judged and recorded.

    If another process follows the run its record is taken; ``wait_s`` is how long to wait for it to end.
    """
    quiet = reporter or NullReporter()
    until = time.monotonic() + wait_s
    while True:
        document = run_dir.read()
        if document is None:
            return {}
        if State.of(document["state"]).final:
            return document
        if run_dir.lock():
            try:
                document = run_dir.read() or document
                if not State.of(document["state"]).final:
                    _resume(run_dir, document, NullReporter(), until="now", probe="none")
                    index(state_dir, run_dir, document, quiet)
                return document
            finally:
                run_dir.unlock()
        if time.monotonic() >= until:
            return document
        _next_event(run_dir, until)


def attach(
    state_dir: Path,
    run_dir: RunDir,
    reporter: Reporter,
    *,
    timeout_s: float | None = None,
    fail_on_stall: bool = False,
    probe: Rung = "completion",
    api_key: str | None = None,
    seen: int = 0,
) -> dict[str, Any]:
    """Follows *run_dir* until it is ready or over (or stalled, if asked; or the time is up); the run document.

    Events before number *seen* are not shown again.
    """
    until = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        document = run_dir.read() or {}
        if not document or _over(document, fail_on_stall) or (until is not None and time.monotonic() >= until):
            return refresh(state_dir, run_dir) if document else document
        if run_dir.lock():
            try:
                document = run_dir.read() or document
                left = None if until is None else max(0.0, until - time.monotonic())
                _resume(
                    run_dir, document, reporter, until="ready", probe=probe, deadline_s=left,
                    fail_on_stall=fail_on_stall, api_key=api_key,
                )  # fmt: skip
                index(state_dir, run_dir, document, reporter)
                return document
            finally:
                run_dir.unlock()
        seen = _follow_events(run_dir, reporter, seen, until, fail_on_stall)


def _over(document: Mapping[str, Any], fail_on_stall: bool) -> bool:
    state = State.of(document["state"])
    return state.final or state in (State.READY, State.UNHEALTHY) or (fail_on_stall and state is State.STALLED)


def _resume(
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
    """Becomes the follower of the run. *document* is changed in place."""
    recorder = open_recorder(run_dir, document, reporter)
    attempt = AttemptDir(run_dir.attempt(max(1, run_dir.last_attempt)))
    pid = attempt.read_pid()
    known = watching(document["engine"])
    command = _command(document, pid.pid if pid is not None and attempt.alive() else None)
    timeline = Timeline(known, secrets=secrets_in(command.argv, command.env))
    _replay(timeline, attempt.log, run_dir)
    pids = [(pid.pid, pid.start_ticks)] if pid is not None else []
    follower = Follower(attempt.log, offset=timeline.offset, pids=pids, exit_file=attempt.exit_file)
    probing = Probing(command, known, probe, api_key=api_key)
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


# -- reading another follower's events -------------------------------------------------------------------------


def _next_event(run_dir: RunDir, until: float | None) -> None:
    follower = Follower(run_dir.events_file, offset=_size(run_dir.events_file))
    try:
        left = 1.0 if until is None else min(1.0, max(0.0, until - time.monotonic()))
        follower.wait(left)
    finally:
        follower.close()


def _follow_events(run_dir: RunDir, reporter: Reporter, seen: int, until: float | None, fail_on_stall: bool) -> int:
    """Shows the events that the run's follower writes, until it is over or the follower is gone; the next number."""
    follower = Follower(run_dir.events_file)
    lines = LineSplitter()
    try:
        while until is None or time.monotonic() < until:
            left = 1.0 if until is None else min(1.0, max(0.0, until - time.monotonic()))
            for signal in follower.wait(left):
                if isinstance(signal, Data):
                    seen = _show(lines, signal.data, reporter, run_dir.read, seen)
            document = run_dir.read()
            if document is None or _over(document, fail_on_stall):
                return seen
            if run_dir.lock():  # the follower is gone; the caller takes over
                run_dir.unlock()
                return seen
        return seen
    finally:
        follower.close()


def _show(
    lines: LineSplitter, data: bytes, reporter: Reporter, read: Callable[[], dict[str, Any] | None], seen: int
) -> int:
    document = read() or {}
    for line in lines.feed(data):
        try:
            event = json.loads(line.text)
        except ValueError:
            continue
        if event.get("seq", -1) >= seen:
            seen = event["seq"] + 1
            reporter.event(event, document)
    return seen


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
