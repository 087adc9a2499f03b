"""``bringup stop``: end the whole run and prove that nothing of it is left."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bringup.errors import StopNotProven
from bringup.follow.stop import StopProof, stop
from bringup.launch.attempt import AttemptDir
from bringup.ledger import RunDir
from bringup.pilot.attach import refresh
from bringup.pilot.index import index
from bringup.pilot.recorder import open_recorder
from bringup.pilot.stopmark import ask_stop
from bringup.report.reporter import Reporter
from bringup.states import State


def stop_run(state_dir: Path, run_dir: RunDir, reporter: Reporter, *, grace_s: float = 10.0) -> dict[str, Any]:
    """Stops *run_dir*'s newest attempt and returns the run document.

    Raises StopNotProven if a process of the run or its port is still there afterwards.
    """
    attempt = AttemptDir(run_dir.attempt(run_dir.last_attempt))
    ask_stop(attempt)  # whoever follows the run must know that the coming death is wanted
    held = run_dir.lock()
    try:
        document = run_dir.read() or {}
        if held and document and not State.of(document["state"]).final:
            recorder = open_recorder(run_dir, document, reporter)
            recorder.move(State.STOPPING, "stopped through bringup", recorder.seconds_since_start(time.time()))
            recorder.close()
        proof = stop_attempt(attempt, run_dir.id, _ports(document), grace_s)
    finally:
        run_dir.unlock()
    document = refresh(state_dir, run_dir, reporter, wait_s=2.0)
    index(state_dir, run_dir, document, reporter)
    _told(proof, document)
    return document


def stop_attempt(attempt: AttemptDir, run_id: str, ports: Sequence[tuple[str, int]], grace_s: float) -> StopProof:
    """Ends everything of an attempt: its group, whoever carries the run's mark, and the cradle's orphans."""
    pid, started = attempt.read_pid(), attempt.read_started()
    if pid is None:
        return stop(None, None, run_id, ports, grace_s)
    return stop(
        pid.pid,
        pid.pgid,
        run_id,
        ports,
        grace_s,
        start_ticks=pid.start_ticks,
        boot_id=started.boot_id if started else None,
        cradle=(pid.cradle, pid.cradle_ticks) if pid.cradle is not None else None,
    )


def _ports(document: Mapping[str, Any]) -> list[tuple[str, int]]:
    endpoint = document.get("endpoint")
    parts = urlsplit(endpoint) if isinstance(endpoint, str) else None
    return [(parts.hostname or "127.0.0.1", parts.port)] if parts is not None and parts.port else []


def _told(proof: StopProof, document: Mapping[str, Any]) -> None:
    if proof.stopped:
        return
    left = [f"process {name} ({pid})" for pid, name in proof.leftover] + [f"port {p}" for p in proof.ports_busy]
    raise StopNotProven(
        f"stop of `{document.get('name', '?')}` could not be proven: still there: {', '.join(left)}",
        "see who holds it with `ss -ltnp` or `ps`, then run `bringup stop` again",
    )
