"""What is and what was: run directories (the truth) and the SQLite index over them."""

from bringup.ledger.find import find_run, list_runs, new_run_id
from bringup.ledger.rundir import RunDir

__all__ = ["RunDir", "find_run", "list_runs", "new_run_id"]
