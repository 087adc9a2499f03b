"""The SQLite index over run directories: runs, attempts, events, outcomes.

It is filled when a run changes state, from what is already on disk, so losing it loses nothing: it can be built
again from the directories. A ledger that cannot be written is told once and never stops a launch.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

VERSION = 1


class Ledger:
    """The ledger of one state directory. Raises sqlite3.Error where it cannot be used."""

    def __init__(self, state_dir: Path) -> None:
        self._db = sqlite3.connect(state_dir / "ledger.sqlite3", timeout=5.0, isolation_level=None)
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.execute("PRAGMA journal_mode = WAL")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            self._db.close()
            raise sqlite3.DatabaseError(
                f"the ledger is of a newer version ({version}) than this bringup knows ({VERSION})"
            )
        if version < VERSION:
            schema = (resources.files("bringup.ledger") / "schema.sql").read_text()
            self._db.executescript(f"BEGIN;{schema}PRAGMA user_version = {VERSION};COMMIT;")

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def save(self, run: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> None:
        """Stores the run document, its attempts, its outcome and *events* in one transaction."""
        diagnosis = run.get("diagnosis") or {}
        cause = diagnosis.get("cause") or {}
        exit_ = diagnosis.get("exit") or {}
        with self._transaction():
            self._db.execute(
                "INSERT INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (run) DO UPDATE SET name=excluded.name,"
                " target=excluded.target, engine=excluded.engine, model=excluded.model, state=excluded.state,"
                " after=excluded.after, cause=excluded.cause, class=excluded.class, started=excluded.started,"
                " ready_s=excluded.ready_s, document=excluded.document",
                (
                    run["run"], run["name"], run["target"], run["engine"], run.get("model"), run["state"],
                    run.get("after"),
                    cause.get("id"), cause.get("class"), run.get("started"), run.get("ready_s"),
                    json.dumps(run, ensure_ascii=False),
                ),
            )  # fmt: skip
            self._db.executemany(
                "INSERT OR REPLACE INTO attempts VALUES (?,?,?,?,?,?)",
                [
                    (run["run"], a["attempt"], a["state"], json.dumps(a["command"]), a.get("started"), a.get("seconds"))
                    for a in run.get("attempts", [])
                ],
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO events VALUES (?,?,?,?,?,?,?,?)",
                [
                    (
                        run["run"], e["seq"], e.get("attempt"), e["kind"], e.get("at"), e.get("t_s"), e.get("phase"),
                        json.dumps(e, ensure_ascii=False),
                    )
                    for e in events
                ],
            )  # fmt: skip
            if run["state"] in ("failed", "stopped", "refused", "ready"):
                self._db.execute(
                    "INSERT OR REPLACE INTO outcomes VALUES (?,?,?,?,?,?,?,?)",
                    (
                        run["run"], run["state"], run.get("after"), cause.get("class"), cause.get("id"),
                        exit_.get("code"), exit_.get("signal"), run.get("ended"),
                    ),
                )  # fmt: skip

    def last_seq(self, run: str) -> int:
        """Highest event number stored for *run*; -1 where none is."""
        row = self._db.execute("SELECT max(seq) FROM events WHERE run = ?", (run,)).fetchone()
        return -1 if row[0] is None else int(row[0])

    def _transaction(self) -> sqlite3.Connection:
        self._db.execute("BEGIN IMMEDIATE")
        return self._db
