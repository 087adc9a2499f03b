"""End a run and prove it: TERM, a grace, KILL, then nobody of the run is left and its ports are free.

Who belongs to a run: the main process's group, session and descendants, the cradle's descendants (orphans are
handed to it), and whoever carries ``BRINGUP_RUN`` in its environment: engines leave children when their parent
dies. Each process is signalled through its own descriptor after its start was compared, so never another one
that was given the same pid; and never the caller or its group.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bringup.follow import processes
from bringup.targets import procfs
from bringup.targets.procfs import Stat

#: After SIGKILL a process may still hang in a driver call; that long it is waited for, in seconds.
KILL_WAIT_S = 5.0
PORT_WAIT_S = 2.0
_TICK_S = 0.02
_LOOKS = 6


@dataclass(frozen=True, slots=True)
class StopProof:
    """What stopping came to. ``stopped``: nothing is left and every port is free; ``seconds`` is what it took."""

    stopped: bool
    killed: list[int] = field(default_factory=list)
    leftover: list[tuple[int, str]] = field(default_factory=list)
    ports_busy: list[int] = field(default_factory=list)
    seconds: float = 0.0


def stop(
    pid: int | None,
    pgid: int | None,
    run_id: str | None,
    port_hosts: Sequence[tuple[str, int]] = (),
    grace: float = 10.0,
    *,
    start_ticks: int | None = None,
    boot_id: str | None = None,
    cradle: tuple[int, int | None] | None = None,
    kill_wait: float = KILL_WAIT_S,
    port_wait: float = PORT_WAIT_S,
    use_pidfd: bool = True,
) -> StopProof:
    """End everything of a run; *port_hosts* are the (host, port) that must be free afterwards.

    *start_ticks* is the start of *pid* as recorded; where another process has the pid now, it and its group are
    not touched. Where *boot_id* is not the present one the pids mean nothing any more. *cradle* is (pid, start
    ticks) of the process that waits for it. Blocks for at most grace + kill_wait + port_wait seconds. Never
    raises for what it finds.
    """
    began = time.monotonic()
    if boot_id is not None and boot_id != procfs.boot_id():
        pid = pgid = cradle = None
    run = _Run(pid, pgid, run_id, start_ticks, cradle, use_pidfd)
    run.end(signal.SIGTERM, began + grace)
    killed = run.end(signal.SIGKILL, time.monotonic() + kill_wait)
    left = [(s.pid, _name(s)) for s in run.certain_members()]
    busy = _busy_ports(port_hosts, time.monotonic() + (0.0 if left else port_wait))
    seconds = round(time.monotonic() - began, 3)
    return StopProof(not left and not busy, sorted(killed), left, busy, seconds)


def port_busy(host: str, port: int) -> bool:
    """Whether a server could not listen on *host*:*port* now. Connections in TIME_WAIT do not count."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return processes.port_listened(port)
    answers = [_bind_fails(family, address, port) for family, *_, address in found]
    return any(answers)


class _Run:
    """The processes of a run, looked up anew each time."""

    def __init__(
        self,
        pid: int | None,
        pgid: int | None,
        run_id: str | None,
        ticks: int | None,
        cradle: tuple[int, int | None] | None,
        use_pidfd: bool,
    ) -> None:
        self.run_id, self.use_pidfd = run_id, use_pidfd
        self.pid, self.pgid = pid, pgid
        self.ticks = ticks if ticks is not None or not pid else procfs.start_ticks(pid)
        self.cradle = cradle if cradle and procfs.is_alive(*cradle) else None

    def certain_members(self) -> list[Stat]:
        """``members``, and nobody only after several looks.

        One look at ``/proc`` is no snapshot: who forks and ends at the right moment is missed by it.
        """
        for _ in range(_LOOKS):
            if members := self.members():
                return members
            time.sleep(_TICK_S / 4)
            if not self._group_exists():
                return self.members()
        return []

    def members(self) -> list[Stat]:
        """All living processes of the run, but for the caller, its group and its ancestors."""
        stats = procfs.all_stats()
        self._forget_reused(stats)
        roots = [p for p in (self.pid, self.cradle[0] if self.cradle else None) if p]
        mine = {s.pid for s in processes.family(roots, stats)}
        mine.update(s.pid for s in stats if self._ours(s))
        if self.run_id:
            mine.update(processes.run_members(self.run_id))
        mine -= self._never(stats)
        return [s for s in stats if s.pid in mine and not s.dead]

    def end(self, number: signal.Signals, deadline: float) -> set[int]:
        """Send *number* to each member once and wait until all are gone or it is too late; who was signalled."""
        told: set[tuple[int, int]] = set()
        while members := self.certain_members():
            if number is signal.SIGKILL:
                self._kill_group(members)
            for s in members:
                if (s.pid, s.start_ticks) not in told:
                    told.add((s.pid, s.start_ticks))
                    self._signal(s, number)
            if time.monotonic() >= deadline:
                break
            self._wait(members, deadline)
        return {pid for pid, _ in told}

    def _forget_reused(self, stats: list[Stat]) -> None:
        """The kernel gives no pid away while a group or session of that number lives: reused means all gone."""
        leader = self.pid or self.pgid  # the main process leads its group
        if any(s.pid == leader and self.ticks not in (None, s.start_ticks) for s in stats):
            if self.pgid == leader:
                self.pgid = None
            self.pid = None

    def _group_exists(self) -> bool:
        """The kernel's own word on the group, which no fork can slip past; zombies count here."""
        if not self.pgid or self.pgid == os.getpgrp():
            return False
        try:
            os.killpg(self.pgid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def _kill_group(self, members: list[Stat]) -> None:
        """Atomic for the whole group, as single signals are not; *members* show that the group is ours."""
        if self.pgid and self.pgid != os.getpgrp() and any(s.pgrp == self.pgid for s in members):
            try:
                os.killpg(self.pgid, signal.SIGKILL)
            except OSError:
                pass

    def _ours(self, s: Stat) -> bool:
        if self.ticks is not None and s.start_ticks < self.ticks:
            return False  # older than the main process: of another group that once had this number
        if self.pid is not None and self.pid in (s.pid, s.session):
            return True
        return self.pgid is not None and s.pgrp == self.pgid

    def _never(self, stats: list[Stat]) -> set[int]:
        me, group = os.getpid(), os.getpgrp()
        by_pid = {s.pid: s for s in stats}
        never = {s.pid for s in stats if s.pgrp == group} | {0, 1, me}
        while me in by_pid and by_pid[me].ppid not in never | {0}:
            me = by_pid[me].ppid
            never.add(me)
        if self.cradle:
            never.add(self.cradle[0])  # it has to write the exit down
        return never

    def _signal(self, s: Stat, number: signal.Signals) -> None:
        fd = self._open(s)
        try:
            if procfs.start_ticks(s.pid) != s.start_ticks:
                return
            self._send(s.pid, fd, number)
            if s.state == "T" and number is not signal.SIGKILL:
                self._send(s.pid, fd, signal.SIGCONT)  # a stopped process would not see its TERM
        except OSError:
            pass  # it ended meanwhile, or is not ours to signal: the proof will tell
        finally:
            if fd is not None:
                os.close(fd)

    def _send(self, pid: int, fd: int | None, number: signal.Signals) -> None:
        if fd is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(fd, number)

    def _open(self, s: Stat) -> int | None:
        if not self.use_pidfd or not hasattr(os, "pidfd_open"):
            return None
        try:
            return os.pidfd_open(s.pid)
        except OSError:
            return None

    def _wait(self, members: list[Stat], deadline: float) -> None:
        """Sleep until one of *members* has ended, on their descriptors where there are any."""
        fds = [self._open(s) for s in members]
        open_fds = [fd for fd in fds if fd is not None]
        try:
            if len(open_fds) < len(members):  # one of them is gone already, or there are no such descriptors
                time.sleep(min(_TICK_S, max(0.0, deadline - time.monotonic())))
                return
            waiting = select.poll()
            for fd in open_fds:
                waiting.register(fd, select.POLLIN)
            waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
        finally:
            for fd in open_fds:
                os.close(fd)


def _busy_ports(port_hosts: Sequence[tuple[str, int]], deadline: float) -> list[int]:
    while True:
        busy = sorted({port for host, port in port_hosts if port_busy(host, port)})
        if not busy or time.monotonic() >= deadline:
            return busy
        time.sleep(_TICK_S)


def _bind_fails(family: int, address: tuple[object, ...], port: int) -> bool:
    """SO_REUSEADDR lets pass what is in TIME_WAIT; a socket that listens is in the way all the same."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(address)
    except OSError as e:
        return e.errno == errno.EADDRINUSE or processes.port_listened(port)
    return False


def _name(s: Stat) -> str:
    _, argv = processes.exe_and_cmdline(s.pid)
    return argv[0] if argv else s.name
