"""What ``/proc`` says about one process: the small part that every room with processes needs.

All of it is tolerant: a process that vanished while it was read is ``None``, never an error.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Stat:
    """One process. ``start_ticks`` is its start in clock ticks since boot: with the pid, its identity."""

    pid: int
    name: str
    state: str
    ppid: int
    pgrp: int
    session: int
    threads: int
    start_ticks: int

    @property
    def dead(self) -> bool:
        """Ended and only waiting to be reaped. A main thread that left its threads behind is no such thing."""
        return self.state in "XxZ" and self.threads <= 1


def read_stat(pid: int) -> Stat | None:
    """The process *pid*, or None where there is none (or no ``/proc``)."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
        head, _, rest = text.rpartition(")")  # the name may itself hold blanks and parentheses
        f = rest.split()
        return Stat(pid, head.partition("(")[2], f[0], int(f[1]), int(f[2]), int(f[3]), int(f[17]), int(f[19]))
    except (OSError, ValueError, IndexError):
        return None


def pids() -> list[int]:
    """All process ids that can be seen."""
    try:
        return [int(entry.name) for entry in os.scandir(PROC) if entry.name.isdigit()]
    except OSError:
        return []


def all_stats() -> list[Stat]:
    """Every process that can be seen, zombies included."""
    return [stat for stat in map(read_stat, pids()) if stat is not None]


def start_ticks(pid: int) -> int | None:
    """When *pid* was started, in clock ticks since boot; None where that is not known."""
    stat = read_stat(pid)
    return stat.start_ticks if stat else None


def is_zombie(pid: int) -> bool:
    """Whether *pid* has ended and only waits to be reaped."""
    stat = read_stat(pid)
    return stat is not None and stat.dead


def is_alive(pid: int, ticks: int | None = None) -> bool:
    """Whether *pid* runs and, where *ticks* is given, is still the process that was started then."""
    if pid <= 0:
        return False
    stat = read_stat(pid)
    if stat is not None:
        return not stat.dead and ticks in (None, stat.start_ticks)
    if (PROC / "self" / "stat").exists():
        return False
    try:  # no /proc on this system
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def boot_id() -> str | None:
    """What tells one boot of the machine from the next; None where the system has no such thing."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip() or None
    except OSError:
        return None


def started_at(pid: int) -> float | None:
    """When *pid* was started, in seconds since 1970 (10 ms steps); None where that is not known."""
    ticks = start_ticks(pid)
    try:
        lines = (PROC / "stat").read_text().splitlines()
        boot = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    except (OSError, ValueError, StopIteration, IndexError):
        return None
    return None if ticks is None else boot + ticks / os.sysconf("SC_CLK_TCK")
