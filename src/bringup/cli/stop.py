"""``bringup stop``."""

from __future__ import annotations

import json
from typing import Any

import click

from bringup.cli.options import Duration, common, state_path

EPILOG = """\b
Examples:
  bringup stop
  bringup stop chat --grace 30s
"""


@click.command(epilog=EPILOG)
@click.argument("run", required=False)
@click.option("--grace", type=Duration(), default=10.0, metavar="D", help="Before KILL. [default: 10s]")
@common()
def command(run: str | None, grace: float, as_json: bool, quiet: bool, state_dir: str | None, **_: Any) -> int:
    """End a run's whole process group and prove that it and its port are free (exit 19 if that fails)."""
    from bringup.ledger import find_run
    from bringup.pilot.stopping import stop_run
    from bringup.report.reporter import NullReporter

    root = state_path(state_dir)
    document = stop_run(root, find_run(root, run), NullReporter(), grace_s=grace)
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False))
    elif not quiet:
        click.echo(
            f"{document.get('name', '?')}: {document.get('state', '?')}; no process of it is left, its port is free"
        )
    return 0
