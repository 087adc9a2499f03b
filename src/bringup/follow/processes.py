"""Who belongs to a run, who writes a file, who listens where: read from ``/proc``, once over all processes.

Zombies are dead and are in no answer. A process that vanishes while it is read, or that belongs to somebody
else, is left out and never an error.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

from bringup.targets.procfs import PROC, Stat, all_stats, is_zombie, pids, start_ticks

__all__ = [
    "descendants",
    "exe_and_cmdline",
    "family",
    "group_members",
    "is_zombie",
    "listening_ports",
    "run_members",
    "session_members",
    "start_ticks",
    "writers_of",
]

_LISTEN = "0A"


def descendants(pid: int) -> list[int]:
    """Children, their children and so on, without *pid* itself."""
    return sorted(s.pid for s in family([pid], all_stats()))


def group_members(pgid: int) -> list[int]:
    """The living processes of a process group."""
    return [s.pid for s in all_stats() if s.pgrp == pgid and not s.dead]


def session_members(sid: int) -> list[int]:
    """The living processes of a session: they may be in several groups."""
    return [s.pid for s in all_stats() if s.session == sid and not s.dead]


def run_members(run_id: str) -> list[int]:
    """The living processes with ``BRINGUP_RUN=<run_id>`` in the environment that they were started with.

    A process that renames itself may have overwritten it (``setproctitle`` does, unless ``SPT_NOENV`` is set).
    """
    wanted = b"BRINGUP_RUN=" + os.fsencode(run_id)
    return [pid for pid in pids() if wanted in _read(pid, "environ").split(b"\0") and not is_zombie(pid)]


def family(roots: Iterable[int], stats: Iterable[Stat]) -> list[Stat]:
    """The living descendants of *roots* among *stats*, without the roots."""
    children: dict[int, list[Stat]] = {}
    for s in stats:
        children.setdefault(s.ppid, []).append(s)
    queue, found, seen = list(roots), [], set(roots)
    while queue:
        for s in children.get(queue.pop(), ()):
            if s.pid not in seen:
                seen.add(s.pid)
                queue.append(s.pid)
                found.append(s)
    return [s for s in found if not s.dead]


def writers_of(path: Path) -> list[int]:
    """The processes that hold this very file open for writing."""
    try:
        wanted = path.stat()
    except OSError:
        return []
    name = os.path.basename(os.path.realpath(path))  # noqa: PTH119
    return [pid for pid in pids() if any(_writes(pid, fd, wanted) for fd, to in _fds(pid) if name in to)]


def listening_ports(of: Iterable[int]) -> list[tuple[str, int]]:
    """(host, port) of every TCP socket on which one of these processes listens, in their own network."""
    found: set[tuple[str, int]] = set()
    sockets: dict[str, tuple[int, set[str]]] = {}  # network namespace -> (a process in it, inodes)
    for pid in of:
        inodes = {to[8:-1] for _, to in _fds(pid) if to.startswith("socket:[")}
        if inodes:
            sockets.setdefault(_link(f"{PROC}/{pid}/ns/net"), (pid, set()))[1].update(inodes)
    for pid, inodes in sockets.values():
        found.update((host, port) for host, port, inode in _listeners(pid) if inode in inodes)
    return sorted(found)


def port_listened(port: int) -> bool:
    """Whether anybody listens on *port* in this process's network."""
    return any(p == port for _, p, _ in _listeners(os.getpid()))


def exe_and_cmdline(pid: int) -> tuple[str | None, list[str]]:
    """(path of the program, its argv as it shows it now); (None, []) where that cannot be read."""
    words = _read(pid, "cmdline").removesuffix(b"\0").split(b"\0")
    if not any(words[1:]):
        words = [word for word in words[:1] if word]  # a process that renamed itself fills up with zeros
    argv = [os.fsdecode(word) for word in words]
    return _link(f"{PROC}/{pid}/exe") or None, argv


def _listeners(pid: int) -> Iterator[tuple[str, int, str]]:
    for table in ("net/tcp", "net/tcp6"):
        for line in _read(pid, table).decode("ascii", "replace").splitlines()[1:]:
            f = line.split()
            if len(f) > 9 and f[3] == _LISTEN:
                host, _, port = f[1].partition(":")
                yield _host(host), int(port, 16), f[9]


def _host(text: str) -> str:
    """The kernel writes an address as 32-bit words in the machine's own byte order."""
    raw = b"".join(bytes.fromhex(text[i : i + 8])[::_ORDER] for i in range(0, len(text), 8))
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)


_ORDER = 1 if socket.htonl(1) == 1 else -1


def _read(pid: int, name: str) -> bytes:
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return ""


def _fds(pid: int) -> list[tuple[str, str]]:
    """(number, what it leads to) of each open descriptor."""
    try:
        return [(entry.name, _link(entry.path)) for entry in os.scandir(PROC / str(pid) / "fd")]
    except OSError:
        return []


def _writes(pid: int, fd: str, wanted: os.stat_result) -> bool:
    try:
        there = (PROC / str(pid) / "fd" / fd).stat()
        if (there.st_dev, there.st_ino) != (wanted.st_dev, wanted.st_ino):
            return False
        for line in (PROC / str(pid) / "fdinfo" / fd).read_text().splitlines():
            if line.startswith("flags:"):
                return int(line.split()[1], 8) & (os.O_WRONLY | os.O_RDWR) != 0
    except (OSError, ValueError, IndexError):
        pass
    return False
