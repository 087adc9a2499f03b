"""``bringup status``."""

from __future__ import annotations

import json
from typing import Any

import click

from bringup.cli.options import common, state_path

EPILOG = """\b
Examples:
  bringup status
  bringup status chat --json
"""


@click.command(epilog=EPILOG)
@click.argument("run", required=False)
@common()
def command(run: str | None, as_json: bool, quiet: bool, state_dir: str | None, **_: Any) -> int:
    """What a run is doing now: its state, phase, probes, endpoint, and why it failed if it did."""
    from bringup.ledger import find_run
    from bringup.pilot.attach import refresh
    from bringup.report.text import render_status

    root = state_path(state_dir)
    document = refresh(root, find_run(root, run))
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False))
    elif quiet:
        click.echo(document["state"])
    else:
        click.echo(render_status(document))
    return 0
