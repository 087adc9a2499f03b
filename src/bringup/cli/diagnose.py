"""``bringup diagnose``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from bringup import errors
from bringup.cli.options import common, state_path

EPILOG = """\b
Examples:
  bringup diagnose server.log
  bringup diagnose rank0.log rank1.log
  kubectl logs pod | bringup diagnose -
  bringup diagnose server.log --exit 137
  bringup diagnose run:chat --json
"""

_CODES = {
    "ready": errors.READY,
    "stopped": errors.STOPPED,
    "none": errors.NOTHING_TO_JUDGE,
    "starting": errors.STILL_STARTING,
}


@click.command(epilog=EPILOG)
@click.argument("what", nargs=-1, metavar="[FILE|RUN|-]...")
@click.option("--engine", metavar="E", help="Whose log it is. [default: recognised]")
@click.option("--exit", "exit_", metavar="CODE|SIGNAL", help="How the process ended, where that is known.")
@common()
def command(
    what: tuple[str, ...], engine: str | None, exit_: str | None, as_json: bool, state_dir: str | None, **given: Any
) -> int:
    """Explain a startup: what it came to, the first cause, the lines that prove it, and what to change.

    Several files are the ranks of one start. Without a FILE the newest run is explained.
    """
    from bringup.pilot.judge import judge_file, parse_exit
    from bringup.report.documents import diagnosis_document

    ended = parse_exit(exit_) if exit_ is not None else None
    files = [w for w in what if w == "-" or (not w.startswith("run:") and (_there(w) or "/" in w))]
    if what and len(files) == len(what):
        document = diagnosis_document(judge_file(files, engine_name=engine, exit_=ended))
    elif files or len(what) > 1:
        missing = next(w for w in what if w not in files)
        raise errors.UsageError(f"there is no file `{missing}`", "name files, or one run, not both")
    else:
        document = _of_run(state_path(state_dir), what[0] if what else None)
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False))
    else:
        from bringup.report.text import render_diagnosis

        click.echo(render_diagnosis(document, color=use_color(given["no_color"])))
    if document["state"] == "failed":
        return errors.FAILED_KNOWN if document["cause"] else errors.FAILED_UNKNOWN
    return _CODES[document["state"]]


def _there(word: str) -> bool:
    """Whether a file of that name exists; a directory that may not be searched hides its files."""
    try:
        return Path(word).exists()
    except OSError:
        return False


def _of_run(root: Path, word: str | None) -> dict[str, Any]:
    from bringup.ledger import find_run
    from bringup.pilot.attach import refresh
    from bringup.pilot.explain import explain

    run = find_run(root, word)
    document = refresh(root, run)
    found: dict[str, Any] | None = document.get("diagnosis")
    return found if found is not None else explain(run, document)


def use_color(no_color: bool) -> bool:
    """Whether stdout is a terminal that wants colour."""
    import os
    import sys

    return sys.stdout.isatty() and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
