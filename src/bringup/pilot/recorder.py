"""Everything that happens to a run goes through here: numbered, stored, shown.

The recorder is the only writer of a run's events and document. It refuses a change of state that the table of
states does not know, and it never loses an event to a full disk silently: it says so once and goes on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bringup.clock import now_text, seconds_of
from bringup.facts import Diagnosis, Event, Exit, Probe
from bringup.ledger import RunDir
from bringup.pilot.document import apply
from bringup.report.documents import diagnosis_document, event_document, exit_document, probe_document
from bringup.report.reporter import Reporter
from bringup.states import MOVES, State

#: kinds after which the run document is written; figures and bars would write it hundreds of times
_WRITES = frozenset({"state", "phase", "probe", "exit", "diagnosis", "settings", "link"})


class Recorder:
    """Records one run. ``run_dir`` None records nothing on disk (a log that somebody else's server writes)."""

    def __init__(
        self,
        document: dict[str, Any],
        reporter: Reporter,
        run_dir: RunDir | None = None,
        *,
        next_seq: int = 0,
        wall: Callable[[], str] = now_text,
    ) -> None:
        self.document = document
        self.reporter = reporter
        self.run_dir = run_dir
        self.attempt = len(document["attempts"]) or None
        self._seq = next_seq
        self._wall = wall
        self._fd = run_dir.open_events() if run_dir is not None else None
        self._told = False

    def close(self) -> None:
        """Writes the document a last time and lets the files go."""
        self._write()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @property
    def state(self) -> State:
        return State.of(self.document["state"])

    # -- what happened ----------------------------------------------------------------------------------------

    def move(self, to: State, why: str | None = None, t_s: float | None = None) -> None:
        """Changes the state. Raises ValueError for a change that the table of states does not know."""
        current = self.state
        if to is current:
            return
        if to not in MOVES[current]:
            raise ValueError(f"a run cannot go from {current.word} to {to.word}")
        self.add(
            Event("state", {"state": to.word, "code": int(to), "from": current.word, "why": why}, "bringup", t_s=t_s)
        )

    def probe(self, probe: Probe) -> None:
        self.add(Event("probe", probe_document(probe), "probe", t_s=probe.at_s))

    def exit(self, ended: Exit, pid: int | None, t_s: float | None) -> None:
        self.add(Event("exit", {**exit_document(ended), "pid": pid}, "process", t_s=t_s))

    def diagnosis(self, diagnosis: Diagnosis, *, provisional: bool, t_s: float | None) -> None:
        data = {"provisional": provisional, "diagnosis": diagnosis_document(diagnosis)}
        self.add(Event("diagnosis", data, "bringup", t_s=t_s))

    def add(self, event: Event) -> dict[str, Any]:
        """Numbers, stores and shows *event*; returns its document."""
        event = replace(event, seq=self._seq, run=self.document["run"], attempt=self.attempt, at=self._wall())
        self._seq += 1
        told = event_document(event)
        apply(self.document, told)
        if self._fd is not None:
            line = json.dumps(told, ensure_ascii=False).encode() + b"\n"
            self._safely(lambda: os.write(self._fd or 0, line))
        if event.kind in _WRITES:
            self._write()
        self.reporter.event(told, self.document)
        return told

    # -- the document -----------------------------------------------------------------------------------------

    def _write(self) -> None:
        if self.run_dir is not None:
            run_dir = self.run_dir
            self._safely(lambda: run_dir.write(self.document))

    def _safely(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as exc:
            if not self._told:
                self._told = True
                self.reporter.note(f"warning: cannot record this run: {exc.strerror}; going on without a record")

    def seconds_since_start(self, now: float) -> float | None:
        """Seconds from the attempt's start to *now* (seconds since 1970)."""
        attempts = self.document["attempts"]
        started = seconds_of(attempts[-1].get("started") if attempts else self.document.get("started"))
        return None if started is None else round(now - started, 3)


def open_recorder(run_dir: RunDir, document: dict[str, Any], reporter: Reporter) -> Recorder:
    """A recorder that goes on where the stored events end. The caller holds the lock."""
    last = max((int(event.get("seq", -1)) for event in run_dir.events()), default=-1)
    return Recorder(document, reporter, run_dir, next_seq=last + 1)
