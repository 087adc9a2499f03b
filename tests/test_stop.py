"""Ending a run: everything of it, nothing else, and proven."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bringup.follow import processes
from bringup.follow.stop import StopProof, port_busy, stop
from bringup.launch.attempt import AttemptDir
from bringup.launch.local import Launched, launch
from bringup.targets import procfs
from tests.io_helpers import ENV, kill, py, until

RUN = f"stop-{os.getpid()}"
IGNORE = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
LISTEN = (
    "import socket, sys, time; s = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); "
    "print('ready', flush=True); time.sleep(60)"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path)
    yield one
    for pid in processes.run_members(RUN):
        kill(pid)
    for launched in one.begun:
        for stat in procfs.all_stats():
            if stat.session == launched.pid:
                kill(stat.pid)


class Server:
    """Launches through the cradle and stops with what the attempt directory would tell."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.begun = folder, list[Launched]()

    @property
    def attempt(self) -> AttemptDir:
        return AttemptDir(self.folder / str(len(self.begun)))

    def start(self, argv: list[str], ready: str = "ready\n") -> Launched:
        path = self.folder / str(len(self.begun) + 1)
        self.begun.append(launch(path, argv, {**ENV, "BRINGUP_RUN": RUN}))
        until(lambda: self.attempt.log.read_text().count("\n") >= ready.count("\n"))
        return self.begun[-1]

    def stop(self, **more: object) -> StopProof:
        one = self.begun[-1]
        known: dict[str, object] = {
            "start_ticks": one.start_ticks,
            "boot_id": procfs.boot_id(),
            "cradle": (one.cradle_pid, one.cradle_ticks),
            **more,
        }
        return stop(one.pid, one.pgid, RUN, **known)  # type: ignore[arg-type]


@contextlib.contextmanager
def deaf(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No signal has an effect, as for a process that hangs in a driver's call."""
    real = os.killpg
    with monkeypatch.context() as m:
        m.setattr(signal, "pidfd_send_signal", lambda fd, number: None)
        m.setattr(os, "killpg", lambda pgid, number: real(pgid, 0))
        yield


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.mark.parametrize("use_pidfd", [True, False])
def test_a_server_that_obeys(server: Server, use_pidfd: bool) -> None:
    one = server.start(py("import time; print('ready', flush=True); time.sleep(60)"))
    proof = server.stop(use_pidfd=use_pidfd)
    assert proof.stopped and proof.killed == [] and proof.leftover == [] and proof.seconds < 5
    assert not procfs.is_alive(one.pid)
    assert until(server.attempt.read_exit).signal == "SIGTERM"  # type: ignore[union-attr]


@pytest.mark.parametrize("use_pidfd", [True, False])
def test_a_server_that_ignores_term(server: Server, use_pidfd: bool) -> None:
    one = server.start(py(IGNORE))
    proof = server.stop(grace=0.3, use_pidfd=use_pidfd)
    assert proof.stopped and proof.killed == [one.pid] and 0.3 <= proof.seconds < 5
    assert until(server.attempt.read_exit).signal == "SIGKILL"  # type: ignore[union-attr]


def test_no_grace_at_all(server: Server) -> None:
    one = server.start(py(IGNORE))
    assert server.stop(grace=0).killed == [one.pid]


def test_a_child_that_ignores_term_when_its_parent_has_ended(server: Server) -> None:
    code = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {IGNORE!r}]); p.wait()"
    one = server.start(py(code))
    (child,) = processes.descendants(one.pid)
    proof = server.stop(grace=0.3)
    assert proof.stopped and proof.killed == [child]


def test_a_stopped_process_sees_its_term(server: Server) -> None:
    one = server.start(py("import time; print('ready', flush=True); time.sleep(60)"))
    os.kill(one.pid, signal.SIGSTOP)
    until(lambda: (s := procfs.read_stat(one.pid)) and s.state == "T")
    proof = server.stop()
    assert proof.stopped and proof.killed == []


def _daemon(env: str) -> str:
    """A grandchild that left group, session and parent, as a daemon does; it prints its pid."""
    inner = f"import os; print(os.getpid(), flush=True); {IGNORE.replace(chr(34), '')}"
    return (
        "import os, subprocess, sys\n"
        f"argv = [sys.executable, '-I', '-S', '-c', {inner!r}]\n"
        f"if not os.fork(): subprocess.Popen(argv, start_new_session=True, env={env}); os._exit(0)\n"
        "import time; time.sleep(60)"
    )


@pytest.mark.parametrize("cradle_known", [True, False])
def test_a_grandchild_that_left_the_session_is_found_by_its_environment(server: Server, cradle_known: bool) -> None:
    one = server.start(py(_daemon("dict(os.environ)")), "pid\nready\n")
    daemon = int(server.attempt.log.read_text().split()[0])
    assert procfs.read_stat(daemon).session == daemon != one.pid  # type: ignore[union-attr]
    assert daemon in processes.run_members(RUN)
    proof = server.stop(grace=0.3, **({} if cradle_known else {"cradle": None}))
    assert proof.stopped and proof.killed == [daemon]


def test_a_grandchild_without_the_environment_is_found_by_its_cradle(server: Server) -> None:
    server.start(py(_daemon("{}")), "pid\nready\n")
    daemon = int(server.attempt.log.read_text().split()[0])
    assert daemon not in processes.run_members(RUN)
    proof = server.stop(grace=0.3)
    assert proof.stopped and proof.killed == [daemon]


def test_children_outlive_a_main_process_that_was_killed(server: Server) -> None:
    code = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {IGNORE!r}]); p.wait()"
    one = server.start(py(code))
    (child,) = processes.descendants(one.pid)
    kill(one.pid)
    record = until(server.attempt.read_exit_record)
    assert record and record.leftover == (child,)
    until(lambda: procfs.read_stat(one.pid) is None)
    proof = stop(one.pid, one.pgid, None, grace=0.2, start_ticks=one.start_ticks)  # by its group alone
    assert proof.stopped and proof.killed == [child]


def test_who_forks_while_it_is_killed(server: Server) -> None:
    code = (
        "import os, signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('ready', flush=True)\n"
        "for n in range(300):\n    if os.fork(): os._exit(0)\n    time.sleep(0.01)\n"  # always another pid
    )
    server.start(py(code))
    proof = server.stop(grace=0.1)
    assert proof.stopped, proof
    assert processes.run_members(RUN) == []


def test_nothing_is_left_to_stop(server: Server) -> None:
    server.start(["sh", "-c", "echo ready"])
    until(server.attempt.read_exit)
    proof = server.stop()
    assert proof == StopProof(True, [], [], [], proof.seconds) and proof.seconds < 1
    assert stop(None, None, None).stopped and stop(None, None, "no-such-run").stopped


def test_a_pid_that_belongs_to_another_now_is_not_touched(server: Server) -> None:
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    ticks = procfs.start_ticks(bystander.pid)
    assert ticks
    try:
        proof = stop(bystander.pid, bystander.pid, "another-run", grace=0.1, start_ticks=ticks - 5)
        assert proof.stopped and proof.killed == []
        proof = stop(None, bystander.pid, "another-run", grace=0.1, start_ticks=ticks - 5)
        assert proof.stopped and bystander.poll() is None
        proof = stop(bystander.pid, bystander.pid, None, grace=0.1, start_ticks=ticks, boot_id="another-boot")
        assert proof.stopped and bystander.poll() is None
        proof = stop(bystander.pid, bystander.pid, None, grace=5, start_ticks=ticks)
        assert proof.stopped and bystander.wait(5) == -signal.SIGTERM
    finally:
        bystander.kill()
        bystander.wait()


def test_an_older_group_of_the_same_number_is_not_touched() -> None:
    """Its leader is gone and its members began before our main process did."""
    process = subprocess.Popen(["sh", "-c", "sleep 60 >&- & echo $!"], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout
    member = int(process.stdout.read())
    process.wait()
    stat = procfs.read_stat(member)
    assert stat and stat.pgrp == process.pid
    try:
        proof = stop(process.pid, process.pid, None, grace=0.1, start_ticks=stat.start_ticks + 1)
        assert proof.stopped and procfs.is_alive(member)
    finally:
        kill(member)


def test_the_caller_its_group_and_its_ancestors_are_never_signalled(tmp_path: Path) -> None:
    """A process of the run that itself stops the run: the rest ends, it lives to tell."""
    code = (
        f"import os, subprocess, sys; sys.path[:0] = {sys.path!r}\n"
        "from bringup.follow.stop import stop\n"
        "other = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"proof = stop(os.getpid(), os.getpgrp(), {RUN!r}, grace=2)\n"
        "print(proof.stopped, proof.leftover, other.wait(5))"
    )
    wrapper = ["sh", "-c", '"$@"; echo wrapper lives', "sh", sys.executable, "-c", code]
    done = subprocess.run(
        wrapper, env={**ENV, "BRINGUP_RUN": RUN}, capture_output=True, text=True, start_new_session=True, timeout=60
    )
    assert done.stdout == "True [] -15\nwrapper lives\n", done


def test_what_does_not_end_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    one = server.start(py(IGNORE))
    with deaf(monkeypatch):
        proof = server.stop(grace=0.05, kill_wait=0.2)
    assert not proof.stopped and proof.leftover == [(one.pid, sys.executable)]
    assert server.stop(grace=0.05).stopped


def test_a_zombie_does_not_count(server: Server) -> None:
    code = "import subprocess, time; p = subprocess.Popen(['true']); print('ready', flush=True); time.sleep(60)"
    one = server.start(py(code))
    until(lambda: [s for s in procfs.all_stats() if s.ppid == one.pid and s.dead])
    assert processes.descendants(one.pid) == [] and processes.group_members(one.pgid) == [one.pid]
    proof = server.stop()
    assert proof.stopped and proof.killed == []


def test_a_zombie_that_nobody_reaps_does_not_count() -> None:
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    proof = stop(process.pid, process.pid, None, grace=5, start_ticks=procfs.start_ticks(process.pid))
    assert proof.stopped and procfs.is_zombie(process.pid)
    process.wait()


def test_the_port_is_free_afterwards(server: Server) -> None:
    port = free_port()
    one = server.start([*py(LISTEN), str(port)])
    assert processes.listening_ports([one.pid]) == [("127.0.0.1", port)]
    assert port_busy("127.0.0.1", port) and port_busy("0.0.0.0", port) and port_busy("", port)
    proof = server.stop(port_hosts=[("127.0.0.1", port)])
    assert proof.stopped and proof.ports_busy == [] and not port_busy("127.0.0.1", port)


def test_a_port_that_somebody_else_holds_is_told(server: Server) -> None:
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        proof = server.start(["sh", "-c", "echo ready; exec sleep 60"]) and server.stop(
            port_hosts=[("127.0.0.1", port), ("localhost", port)], port_wait=0.1
        )
        assert not proof.stopped and proof.ports_busy == [port] and proof.leftover == []


def test_a_port_that_becomes_free_a_little_later(server: Server) -> None:
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen()
    threading.Timer(0.1, s.close).start()
    server.start(["sh", "-c", "echo ready; exec sleep 60"])
    assert server.stop(port_hosts=[("127.0.0.1", s.getsockname()[1])]).stopped


def test_time_wait_is_no_busy_port() -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = listener.accept()
        accepted.close()  # the server's side closes first: TIME_WAIT stays at the server's port
        client.close()
    assert not port_busy("127.0.0.1", port)


def test_a_leftover_with_the_port_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    one = server.start([*py(LISTEN), str(port)])
    with deaf(monkeypatch):
        proof = server.stop(grace=0.05, kill_wait=0.1, port_hosts=[("127.0.0.1", port)])
    assert proof.ports_busy == [port] and [pid for pid, _ in proof.leftover] == [one.pid] and not proof.stopped


def test_an_address_that_is_not_ours() -> None:
    port = free_port()
    assert not port_busy("192.0.2.1", port)  # cannot be bound, and nobody listens
    assert not port_busy("no-such-host.invalid", port)
    with socket.socket() as s:
        s.bind(("127.0.0.1", port))
        s.listen()
        assert port_busy("192.0.2.1", port) and port_busy("no-such-host.invalid", port)


def test_ipv6(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        s = stack.enter_context(socket.socket(socket.AF_INET6))
        try:
            s.bind(("::1", 0))
        except OSError:
            pytest.skip("no IPv6 here")
        s.listen()
        port = s.getsockname()[1]
        assert port_busy("::1", port) and port_busy("::", port)
        assert ("::1", port) in processes.listening_ports([os.getpid()])
    assert not port_busy("::1", port)


def test_stopping_is_fast(server: Server) -> None:
    server.start(py("import time; print('ready', flush=True); time.sleep(60)"))
    before = time.monotonic()
    assert server.stop(port_hosts=[("127.0.0.1", free_port())]).stopped
    assert time.monotonic() - before < 1
