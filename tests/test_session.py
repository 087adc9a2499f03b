"""The loop that turns log bytes, deaths and silence into states, with everything around it injected."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bringup.engines import Engine, engine
from bringup.facts import Command, Exit, Probe
from bringup.follow import Follower, processes
from bringup.pilot.probing import Probing
from bringup.pilot.recorder import Recorder
from bringup.pilot.session import Session, Watched
from bringup.report import NullReporter
from bringup.report.documents import new_run_document
from bringup.states import MOVES, State
from bringup.timeline import Timeline
from tests.conftest import eventually

LOGS = Path(__file__).parent / "data" / "logs"


class Clock:
    """Monotonic time that moves only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A session over a log file that the test writes, with no process behind it."""

    def __init__(self, tmp: Path, known: Engine, probe: str = "completion") -> None:
        self.log = tmp / "log"
        self.log.touch()
        self.clock = Clock()
        self.exit: Exit | None = None
        self.stop = False
        document = new_run_document(run="r", name="n", target="local", engine=known.name, model=None)
        attempt = {"attempt": 1, "command": [], "changes": [], "state": "planned", "started": None, "seconds": None}
        document["attempts"].append(attempt)
        self.recorder = Recorder(document, NullReporter())
        self.recorder.move(State.LAUNCHING)
        self.recorder.move(State.STARTING)
        self.follower = Follower(self.log)
        self.probing = Probing(Command(argv=("x",)), known, probe)  # type: ignore[arg-type]
        watched = Watched(pid=None, read_exit=lambda: self.exit, stop_asked=lambda: self.stop)
        self.session = Session(
            self.recorder, known, Command(argv=("x",)), Timeline(known), self.follower, watched, self.probing,
            monotonic=self.clock,
        )  # fmt: skip

    def write(self, data: bytes) -> None:
        with self.log.open("ab") as out:
            out.write(data)

    def turn(self, seconds: float = 0.0) -> str:
        """Lets *seconds* pass and the loop turn until nothing more happens; the state."""
        self.clock.now += seconds
        self.session.run("now")
        return self.recorder.document["state"]

    def step(self, seconds: float = 0.0) -> str:
        """One turn of the loop, also while it is failing."""
        self.clock.now += seconds
        for told in self.follower.wait(0.05):
            self.session._signal(told)
        self.session._answered()
        self.session._tick(self.clock.now)
        return self.recorder.document["state"]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, engine("sglang"))
    yield made
    made.follower.close()


def recorded(case: str) -> bytes:
    return (LOGS / "sglang" / f"{case}.log").read_bytes()


def test_silence_is_told_after_the_phase_s_budget_and_ends_with_the_next_line(tmp_path: Path) -> None:
    known = engine("sglang")
    bench = Bench(tmp_path, known)
    whole = recorded("0523_ok_tp1")
    cut = whole.index(b"Load weight end")
    bench.write(whole[:cut])
    assert bench.turn() == "starting"
    budget = known.grammar.budgets["weights"]
    assert bench.turn(budget - 1) == "starting"
    assert bench.turn(2) == "stalled"
    bench.write(whole[cut : cut + 4000])
    assert bench.turn() == "starting"


def test_a_stall_is_no_failure_however_long(bench: Bench) -> None:
    bench.write(recorded("0523_ok_tp1")[:20000])
    bench.turn()
    for _ in range(5):
        assert bench.turn(100_000) == "stalled"


def test_fatal_line_is_failing_at_once_and_failed_two_seconds_after_the_last_evidence(bench: Bench) -> None:
    whole = recorded("0523_fail_port_in_use")
    bench.write(whole[: whole.index(b"[Errno 98]")])
    assert bench.turn() == "starting"
    bench.write(whole[whole.index(b"[Errno 98]") :])
    assert bench.step() == "failing"
    provisional = bench.recorder.document["diagnosis"]["cause"]
    assert provisional["class"] == "port-in-use"
    assert bench.step(1.9) == "failing"
    assert bench.step(0.2) == "failed"
    assert bench.recorder.document["diagnosis"]["cause"]["class"] == "port-in-use"


def test_evidence_that_keeps_coming_cannot_hold_the_verdict_back_for_ever(bench: Bench) -> None:
    whole = recorded("0523_fail_port_in_use")
    bench.write(whole)
    assert bench.step() == "failing"
    states = []
    for _ in range(20):
        bench.session.clocks.new_evidence(bench.clock.now)
        states.append(bench.step(1.0))
    assert states.index("failed") in range(13, 16)


def test_the_log_s_word_alone_is_not_ready(bench: Bench) -> None:
    bench.write(recorded("0523_ok_tp1").partition(b"SIGTERM")[0])
    assert bench.turn() == "starting"


def test_without_probes_the_log_is_believed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, engine("sglang"), "none")
    bench.write(recorded("0523_ok_tp1").partition(b"SIGTERM")[0])
    assert bench.turn() == "ready"


def test_a_failed_probe_is_a_warmup_failure(bench: Bench) -> None:
    bench.session._answer(Probe("completion", "failed", 1.0, "500 twice"))
    assert bench.step() == "failing"
    assert bench.step(2.1) == "failed"
    assert bench.recorder.document["diagnosis"]["cause"]["class"] == "warmup-failure"
    assert "500 twice" in bench.recorder.document["diagnosis"]["cause"]["summary"]


def test_vanished_child_is_told_although_the_parent_lives(bench: Bench) -> None:
    bench.session._vanished.append("sglang::scheduler (pid 7)")
    assert bench.step() == "failing"
    assert bench.step(2.1) == "failed"
    cause = bench.recorder.document["diagnosis"]["cause"]
    assert (cause["class"], "sglang::scheduler" in cause["summary"]) == ("interrupted", True)


def test_truncated_log_is_read_again(bench: Bench) -> None:
    bench.write(recorded("0523_ok_tp1")[:20000])
    bench.turn()
    os.truncate(bench.log, 0)
    bench.turn()
    bench.write(recorded("0523_fail_truncated_shard"))
    assert bench.step() in ("starting", "failing")
    assert bench.step() == "failing"


def test_deadline(tmp_path: Path) -> None:
    bench = Bench(tmp_path, engine("sglang"))
    bench.session.clocks.deadline = bench.clock.now + 5
    assert bench.session.run("now") is None
    bench.clock.now += 6
    assert bench.session.run("ready") == "deadline"
    assert bench.recorder.document["state"] == "starting"


def test_states_move_only_as_the_table_says(bench: Bench) -> None:
    with pytest.raises(ValueError, match="cannot go from starting to planned"):
        bench.recorder.move(State.PLANNED)
    for state, to in MOVES.items():
        assert state not in to
        assert not (state.final and to)


def test_a_fork_of_a_needed_process_is_not_needed_itself(tmp_path: Path) -> None:
    """A scheduler forks compilers: between fork and exec they carry its title."""
    script = (
        "import os,sys,time,subprocess\n"
        "open(sys.argv[1] + '/pid', 'w').write(str(os.getpid()))\n"
        "child = os.fork()\n"
        "time.sleep(0.3 if child == 0 else 300)\n"
    )
    program = tmp_path / "sglang::scheduler"
    program.write_text(script)
    main = subprocess.Popen([sys.executable, "-c", "import subprocess,sys; subprocess.run(sys.argv[1:])",
                             sys.executable, str(program), str(tmp_path)])  # fmt: skip
    bench = Bench(tmp_path, engine("sglang"))
    try:
        bench.session.watched.pid = main.pid
        bench.follower.add_pid(main.pid, None)
        eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        bench.session._find_essential()
        assert list(bench.session._essential) == [int((tmp_path / "pid").read_text())]
    finally:
        for pid in [*processes.descendants(main.pid), main.pid]:
            os.kill(pid, signal.SIGKILL)
        main.wait(10)
        bench.follower.close()
