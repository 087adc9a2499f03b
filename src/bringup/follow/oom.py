"""Counters that prove that the kernel killed for memory: of the process's own cgroup, and of the machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bringup.targets.procfs import PROC

CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class OomCounters:
    """Kills so far, and how often the limit was met; None where there is no such counter.

    ``folder`` is the memory cgroup that was read, so that it can be read again when the process is gone.
    """

    cgroup: int | None = None
    machine: int | None = None
    limit_hits: int | None = None
    folder: Path | None = None


def snapshot(pid: int | None = None, *, folder: Path | None = None) -> OomCounters:
    """The counters now, for *pid* or (``before.folder``) for a cgroup that is known already."""
    folder = folder or (_memory_cgroup(pid) if pid else None)
    kills = hits = None
    if folder:
        events = _numbers(folder / "memory.events")
        kills = events.get("oom_kill", _numbers(folder / "memory.oom_control").get("oom_kill"))
        hits = events.get("max", _number(folder / "memory.failcnt"))
    return OomCounters(kills, _numbers(PROC / "vmstat").get("oom_kill"), hits, folder)


def killed_since(before: OomCounters, after: OomCounters) -> int | None:
    """Kills between two snapshots: in the cgroup where both know it, else on the machine, else None (unknown)."""
    for a, b in ((before.cgroup, after.cgroup), (before.machine, after.machine)):
        if a is not None and b is not None and b >= a:
            return b - a
    return None


def _memory_cgroup(pid: int) -> Path | None:
    """The folder that holds the memory counters of *pid*'s cgroup, as far as it can be seen from here."""
    try:
        lines = (PROC / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in sorted(lines, key=lambda text: text.startswith("0:")):  # v1 first: in a mixed setup it counts
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if "memory" in controllers.split(","):
            roots = [CGROUPS / "memory"]
        elif number == "0":
            roots = [CGROUPS, CGROUPS / "unified"]
        else:
            continue
        for root in roots:
            # inside a container the path may be the host's, while the container's own cgroup is mounted as root
            for folder in (root / path.lstrip("/"), root):
                if (folder / "memory.events").exists() or (folder / "memory.oom_control").exists():
                    return folder
    return None


def _numbers(path: Path) -> dict[str, int]:
    try:
        return {k: int(v) for k, v in re.findall(r"(?m)^(\w+) (\d+)$", path.read_text())}
    except OSError:
        return {}


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
