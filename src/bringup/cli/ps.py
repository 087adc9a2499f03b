"""``bringup ps``."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import click

from bringup.cli.options import common, state_path

EPILOG = """\b
Examples:
  bringup ps
  bringup ps --all --json
"""


@click.command(epilog=EPILOG)
@click.option("-a", "--all", "everything", is_flag=True, help="Also runs that are over.")
@click.option("-n", "--last", type=click.IntRange(min=1), default=50, show_default=True, help="At most this many.")
@common()
def command(everything: bool, last: int, as_json: bool, quiet: bool, state_dir: str | None, **_: Any) -> int:
    """The runs of this machine, newest first."""
    from bringup.ledger import list_runs
    from bringup.pilot.attach import refresh
    from bringup.report.documents import runs_document
    from bringup.report.text import render_runs
    from bringup.states import State

    root = state_path(state_dir)
    found = (refresh(root, run) for run in list_runs(root))
    shown = list(islice((d for d in found if d and (everything or not State.of(d["state"]).final)), last))
    if as_json:
        click.echo(json.dumps(runs_document(shown), ensure_ascii=False))
    elif quiet:
        for document in shown:
            click.echo(document["run"])
    else:
        click.echo(render_runs(shown))
    return 0
