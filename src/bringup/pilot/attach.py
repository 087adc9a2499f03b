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
from typing import TYPE_CHECKING, Any, Literal

from bringup.follow import Data, Follower
from bringup.launch.attempt import AttemptDir
from bringup.ledger import RunDir
from bringup.pilot.index import index
from bringup.report.reporter import NullReporter, Reporter
from bringup.states import State
from bringup.targets import procfs

if TYPE_CHECKING:
    from bringup.timeline import LineSplitter

Rung = Literal["none", "health", "models", "completion"]


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
        state = State.of(document["state"])
        if state.final or (state is State.READY and _still_there(run_dir, document)):
            return document
        if run_dir.lock():
            try:
                document = run_dir.read() or document
                if not State.of(document["state"]).final:
                    from bringup.pilot.resume import resume

                    resume(run_dir, document, NullReporter(), until="now", probe="completion")
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
                from bringup.pilot.resume import resume

                resume(
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


def _still_there(run_dir: RunDir, document: Mapping[str, Any]) -> bool:
    """Whether a server that was ready still has every process it needs; its log need not be read for that."""
    attempt = AttemptDir(run_dir.attempt(max(1, run_dir.last_attempt)))
    needed = document.get("processes") or []
    return attempt.alive() and all(procfs.is_alive(p["pid"], p.get("start_ticks")) for p in needed)


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
    from bringup.timeline import LineSplitter

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
