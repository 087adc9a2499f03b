"""Run directory -> ledger. The index may fail; the run never does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bringup.ledger import RunDir
from bringup.report.reporter import Reporter


def index(state_dir: Path, run_dir: RunDir, document: Mapping[str, Any], reporter: Reporter) -> None:
    """Stores the run and its new events in the ledger; a ledger that cannot be used is told, not raised."""
    import sqlite3

    from bringup.ledger.store import Ledger

    try:
        with Ledger(state_dir) as ledger:
            ledger.save(document, run_dir.events(ledger.last_seq(run_dir.id) + 1))
    except (sqlite3.Error, OSError) as exc:
        reporter.note(f"warning: the ledger cannot be written: {exc}; the run itself is kept in `{run_dir.path}`")
