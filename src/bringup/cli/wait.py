"""``bringup wait``."""

from __future__ import annotations

import json
from typing import Any

import click

from bringup import errors
from bringup.cli.options import Duration, common, state_path

EPILOG = """\b
Examples:
  bringup wait --timeout 25s && curl ...
  bringup wait chat --timeout 10m --json
"""


@click.command(epilog=EPILOG)
@click.argument("run", required=False)
@click.option("--timeout", type=Duration(), metavar="D", help="Return after this long (exit 13).")
@common()
def command(run: str | None, timeout: float | None, as_json: bool, quiet: bool, state_dir: str | None, **_: Any) -> int:
    """Return when the run is ready, failed, stalled or stopped, or when the time is up: one line, one exit code."""
    from bringup.ledger import find_run
    from bringup.pilot.attach import attach
    from bringup.pilot.outcome import exit_code
    from bringup.report.reporter import NullReporter
    from bringup.report.text import render_verdict

    root = state_path(state_dir)
    try:
        document = attach(root, find_run(root, run), NullReporter(), timeout_s=timeout, fail_on_stall=True)
    except KeyboardInterrupt:
        return errors.INTERRUPTED
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False))
    elif not quiet:
        click.echo(render_verdict(document))
    return exit_code(document)
