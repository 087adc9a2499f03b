"""Following one attempt: the loop that turns log bytes, deaths and answers into states.

One thread, one loop. Log bytes and deaths come from the follower; answers come from the prober's thread through a
queue that wakes the loop. What a line means is not known here.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from bringup.diagnose import Facts, diagnose
from bringup.engines import Engine
from bringup.facts import Command, Diagnosis, Exit, Probe
from bringup.follow import Data, Exited, ExitFile, Follower, Gone, Rotated, Truncated, processes
from bringup.follow import oom as oom_counters
from bringup.follow.oom import OomCounters
from bringup.pilot.probing import Probing
from bringup.pilot.recorder import Recorder
from bringup.pilot.watchdog import Clocks
from bringup.redact import redact_argv
from bringup.remedy import with_commands
from bringup.states import State
from bringup.targets import procfs
from bringup.timeline import Timeline

Ending = Literal["ready", "failed", "stopped", "stalled", "deadline"]

#: how often processes and sockets are looked at while nothing else wakes the loop
TICK_S = 0.5
#: how long a dead process's exit status may take to be written before the death is told without it
EXIT_GRACE_S = 2.0


@dataclass(slots=True)
class Watched:
    """The processes of an attempt: the main one, how to learn how it ended, and who else belongs to the run."""

    pid: int | None
    read_exit: Callable[[], Exit | None]
    stop_asked: Callable[[], bool]
    run_id: str | None = None
    oom_before: OomCounters | None = None


class Session:
    """Watches one attempt until it is ready, failed or stopped. The caller owns what is passed in."""

    def __init__(
        self,
        recorder: Recorder,
        engine: Engine,
        command: Command,
        timeline: Timeline,
        follower: Follower,
        watched: Watched,
        probing: Probing,
        *,
        deadline_s: float | None = None,
        fail_on_stall: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.recorder = recorder
        self.engine = engine
        self.command = command
        self.timeline = timeline
        self.follower = follower
        self.watched = watched
        self.probing = probing
        self.fail_on_stall = fail_on_stall
        self._monotonic = monotonic
        now = monotonic()
        self._base = now - (recorder.seconds_since_start(time.time()) or 0.0)
        budgets = engine.grammar.budgets
        self.clocks = Clocks(moved=now, budgets=budgets, deadline=None if deadline_s is None else now + deadline_s)
        self._answers: queue.SimpleQueue[Probe] = queue.SimpleQueue()
        self._exit: Exit | None = None
        self._dead_at: float | None = None
        self._essential: dict[int, str] = {}
        self._vanished: list[str] = []
        self._warmup: str | None = None
        self._was_ready = recorder.state in (State.READY, State.UNHEALTHY) or recorder.document["ready_s"] is not None
        self._last_tick = 0.0
        self._moved = self._lines = 0
        self._drained = False
        self._closed = False
        probing.start(self._answer, self.t_s)

    def t_s(self) -> float:
        """Seconds since the attempt was started."""
        return round(self._monotonic() - self._base, 3)

    def resume(self, *, alive: bool) -> None:
        """Takes up an attempt whose log was read before: the view is there, nothing was acted on yet."""
        view = self.timeline.view
        self._lines, self._moved = view.lines, self.timeline.movement
        if self.recorder.state is State.LAUNCHING:
            self.recorder.move(State.STARTING, None, self.t_s())
        if self.recorder.state is State.FAILING:
            self.clocks.failing = self.clocks.evidence = self._monotonic()
        if not alive:
            self._main_ended()
        for known in self.recorder.document.get("processes", []):
            if alive and not procfs.is_alive(known["pid"], known.get("start_ticks")):
                self._vanished.append(f"{known['title']} (pid {known['pid']})")
            else:
                self.follower.add_pid(known["pid"], known.get("start_ticks"))
                self._essential[known["pid"]] = known["title"]
        self._after_read()
        self._find_essential()

    # -- the loop ---------------------------------------------------------------------------------------------

    def run(self, until: Literal["ready", "end", "now"] = "ready") -> Ending | None:
        """Follows until ready (or, with "end", until the server is gone; with "now", until what is there is read).

        Returns how it ended; None only for "now" where nothing is decided yet.
        """
        while True:
            now = self._monotonic()
            ending = self._ending(until, now)
            if ending is not None:
                return ending
            timeout = 0.0 if until == "now" else max(0.0, self._due(until) - now)
            signals = self.follower.wait(timeout)
            got_data = False
            for signal in signals:
                got_data |= self._signal(signal)
            self._drained = not got_data
            self._answered()
            self._tick(self._monotonic())
            if until == "now" and self._drained and self._settled():
                return self._ending("ready", self._monotonic())

    def _settled(self) -> bool:
        """With "now": nothing more can be learnt without waiting for something new to happen."""
        return self.recorder.state is not State.FAILING and (self._dead_at is None or self.recorder.state.final)

    def _ending(self, until: str, now: float) -> Ending | None:
        state = self.recorder.state
        if state is State.FAILED:
            return "failed"
        if state is State.STOPPED:
            return "stopped"
        if state is State.READY and until != "end":
            return "ready" if until == "ready" else None
        if state is State.STALLED and self.fail_on_stall:
            return "stalled"
        waiting = state < State.READY and state is not State.FAILING
        if self.clocks.deadline is not None and now >= self.clocks.deadline and waiting:
            return "deadline"
        return None

    def _due(self, until: str) -> float:
        """When the loop must wake even if nothing happens."""
        now = self._monotonic()
        times = [now + TICK_S]
        if self.recorder.state is State.FAILING:
            times = [now + 0.05]
        if self.recorder.state is State.READY:
            times = [now + 2.0]
        if self.clocks.deadline is not None and until != "end":
            times.append(self.clocks.deadline)
        return min(times)

    # -- what comes in ----------------------------------------------------------------------------------------

    def _signal(self, signal: object) -> bool:
        if isinstance(signal, Data):
            self._read(signal.data)
            return True
        if isinstance(signal, Exited):
            self._exited(signal.pid)
        elif isinstance(signal, ExitFile):
            self._main_ended()
        elif isinstance(signal, (Truncated, Rotated)):
            self.recorder.reporter.note("the log was cut or replaced; reading it from its beginning")
            self.timeline.restart()
        elif isinstance(signal, Gone):
            self.recorder.reporter.note("the log file is gone")
        return False

    def _read(self, data: bytes) -> None:
        for event in self.timeline.feed(data, self.t_s()):
            self.recorder.add(event)
            if event.kind == "symptom":
                self.clocks.new_evidence(self._monotonic())
        self._after_read()

    def _after_read(self) -> None:
        view, now = self.timeline.view, self._monotonic()
        if view.lines != self._lines:
            if view.tail and view.lines != self._lines:
                self.recorder.reporter.tail(view.tail[-1].text)
            self._lines = view.lines
        if self.timeline.movement != self._moved:
            self._moved = self.timeline.movement
            self.clocks.moved = now
            if self.recorder.state is State.STALLED:
                self.recorder.move(State.STARTING, "it moves again", self.t_s())
        if self.probing.heard(view):
            self._look()
        if not self.probing.decides and view.ready and self.recorder.state in (State.STARTING, State.STALLED):
            self._ready()
        fatal = view.fatal
        if fatal is not None and self._living() and (not self._was_ready or fatal.order > view.ready):
            self._failing(f"{fatal.rule.id}: {fatal.lines()[0].line.text[:200]}")

    def _living(self) -> bool:
        return self.recorder.state in (State.STARTING, State.STALLED, State.READY, State.UNHEALTHY)

    def _answer(self, probe: Probe) -> None:
        """Called by the prober's thread."""
        self._answers.put(probe)
        self.follower.wake()

    def _answered(self) -> None:
        while True:
            try:
                probe = self._answers.get_nowait()
            except queue.Empty:
                return
            self.recorder.probe(probe)
            if self.probing.endpoint is not None:
                self.recorder.document["endpoint"] = self.probing.endpoint.url
            if probe.status == "failed" and self._living():
                self._warmup = probe.why or f"the {probe.rung} probe failed"
                self._failing(f"probe {probe.rung}: {self._warmup}")
            elif self.probing.satisfied(probe) and self.recorder.state in (State.STARTING, State.STALLED):
                self._ready()

    def _ready(self) -> None:
        self._was_ready = True
        self.recorder.move(State.READY, None, self.t_s())
        self._diagnose(provisional=False)
        self._find_essential()

    # -- deaths -----------------------------------------------------------------------------------------------

    def _exited(self, pid: int) -> None:
        if pid == self.watched.pid:
            self._main_ended()
        elif pid in self._essential:
            name = self._essential.pop(pid)
            self._vanished.append(f"{name} (pid {pid})")

    def _main_ended(self) -> None:
        if self._dead_at is None:
            self._dead_at = self._monotonic()
            self.probing.stop()

    def _tick(self, now: float) -> None:
        state = self.recorder.state
        if state.final:
            return
        if self._dead_at is not None and self._exit is None:
            self._take_exit(now)
        elif self._vanished and self._living() and self._dead_at is None:
            # The parent usually tells or follows at once; give its own words the first say.
            self.clocks.new_evidence(now)
            self._failing(f"a child process is gone: {', '.join(self._vanished)}")
        if now - self._last_tick >= TICK_S:
            self._last_tick = now
            self._look()
        if self.recorder.state is State.FAILING:
            self._judge(now)
        elif self.recorder.state is State.STARTING and now >= self.clocks.stalls_at(self.timeline.view.phase):
            silent = now - self.clocks.moved
            self.recorder.move(
                State.STALLED, f"no progress in {self.timeline.view.phase} for {silent:.0f} s", self.t_s()
            )

    def _look(self) -> None:
        """What only looking tells: sockets that listen, and children without which the server is dead."""
        if self._dead_at is not None:
            return
        members = self._members()
        if self.recorder.state in (State.STARTING, State.STALLED):
            sockets = processes.listening_ports(members) if members else []
            self.probing.listening(sockets, known=bool(members))
            if not self.probing.decides and sockets and not self.engine.grammar.rules:
                self._ready()
                return
        self._find_essential(members)

    def _find_essential(self, members: Sequence[int] | None = None) -> None:
        titles = self.engine.grammar.processes
        if not titles or self.watched.pid is None:
            return
        for pid in self._members() if members is None else members:
            if pid in self._essential or pid == self.watched.pid:
                continue
            shown = " ".join(processes.exe_and_cmdline(pid)[1])
            title = next((t for t in titles if t in shown), None)
            if title is not None and not _same_as_parent(pid):
                self.follower.add_pid(pid, procfs.start_ticks(pid))
                self._essential[pid] = title
                known = {"pid": pid, "start_ticks": procfs.start_ticks(pid), "title": title}
                self.recorder.document.setdefault("processes", []).append(known)

    def _members(self) -> list[int]:
        watched = self.watched
        found = set(processes.run_members(watched.run_id)) if watched.run_id else set()
        if watched.pid is not None:
            found.add(watched.pid)
            found.update(processes.descendants(watched.pid))
        return sorted(p for p in found if procfs.is_alive(p))

    def _take_exit(self, now: float) -> None:
        ended = self.watched.read_exit()
        if ended is None:
            if self._dead_at is not None and now - self._dead_at < EXIT_GRACE_S:
                return
            ended = Exit(None, None, certain=False)
        self._exit = ended
        self.clocks.new_evidence(now)
        self.recorder.exit(ended, self.watched.pid, self.t_s())
        state = self.recorder.state
        if state is State.FAILING:
            return
        if self.watched.stop_asked():
            if state is not State.STOPPING:
                self.recorder.move(State.STOPPING, "stopped through bringup", self.t_s())
            self._finish(State.STOPPED)
        else:
            self._failing(f"the server ended: {ended.text()}")

    def conclude(self) -> None:
        """No process is left to watch and nothing more will be written: the log alone is judged."""
        for event in self.timeline.flush(self.t_s()):
            self.recorder.add(event)
        if self.recorder.state.final:
            return
        self._closed = True
        diagnosis = self.diagnosis()
        if diagnosis.state == "ready" and diagnosis.after is None:
            self.recorder.move(State.READY, None, self.t_s())
        elif diagnosis.state == "stopped" or diagnosis.after == "stopped":
            self.recorder.move(State.STOPPED, "the log says that it was stopped", self.t_s())
        elif diagnosis.state == "failed" or diagnosis.after == "died":
            self.recorder.move(State.FAILING, "the log ends in a failure", self.t_s())
            self.recorder.move(State.FAILED, None, self.t_s())
        self.recorder.diagnosis(diagnosis, provisional=False, t_s=self.t_s())

    # -- the verdict ------------------------------------------------------------------------------------------

    def _failing(self, why: str) -> None:
        now = self._monotonic()
        self.clocks.failing = now
        self.clocks.new_evidence(now)
        self.recorder.move(State.FAILING, why, self.t_s())
        self._diagnose(provisional=True)
        self.probing.stop()

    def _judge(self, now: float) -> None:
        gone = self._exit is not None and self._drained and not self._members_left()
        due = self.clocks.judged_at()
        if not gone and (due is None or now < due):
            return
        if self._dead_at is not None and self._exit is None:
            return  # the exit status is about to be known
        for event in self.timeline.flush(self.t_s()):
            self.recorder.add(event)
        diagnosis = self.diagnosis()
        self._finish(State.STOPPED if diagnosis.state == "stopped" or diagnosis.after == "stopped" else State.FAILED)

    def _members_left(self) -> bool:
        return any(p != self.watched.pid for p in self._members())

    def _finish(self, state: State) -> None:
        self._diagnose(provisional=False)
        self.recorder.move(state, None, self.t_s())

    def _diagnose(self, *, provisional: bool) -> None:
        self.recorder.diagnosis(self.diagnosis(), provisional=provisional, t_s=self.t_s())

    def diagnosis(self) -> Diagnosis:
        """What is known now. Pure but for the out-of-memory counters."""
        before = self.watched.oom_before
        kills = None
        if before is not None and self._exit is not None:
            kills = oom_counters.killed_since(before, oom_counters.snapshot(folder=before.folder))
        facts = Facts(
            exit=self._exit,
            ended=self._closed or self._exit is not None,
            probed=True if self._was_ready else (False if self.probing.decides and not self.probing.passive else None),
            oom_kills=kills,
            vanished=tuple(self._vanished),
            warmup=self._warmup,
            stopped=self.watched.stop_asked(),
        )
        return with_commands(diagnose(self.timeline.view, self.engine, facts), redact_argv(self.command.argv))


def _same_as_parent(pid: int) -> bool:
    """Whether a process still looks like its parent: a fork on its way to something else (a compiler, a worker).

    It carries the title of a process that is needed and is none itself; its end means nothing.
    """
    stat = procfs.read_stat(pid)
    return stat is not None and processes.exe_and_cmdline(stat.ppid)[1] == processes.exe_and_cmdline(pid)[1]
