"""``bringup watch``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from bringup import errors
from bringup.cli.options import PROBES, Duration, common, key_from, state_path

EPILOG = """\b
Examples:
  bringup watch
  bringup watch chat
  bringup watch --log /var/log/sglang.log
  bringup watch --log server.log --pid 4711 --probe completion
"""


@click.command(epilog=EPILOG)
@click.argument("run", required=False)
@click.option("--log", "log", metavar="FILE", type=click.Path(), help="A log that somebody else's server writes.")
@click.option("--pid", type=int, metavar="PID", help="The server's main process. [default: who writes the log]")
@click.option("--engine", metavar="E", help="Whose log it is. [default: recognised]")
@click.option("--probe", type=PROBES, help="How far to probe. [default: completion for a run, models for a log]")
@click.option("--api-key-env", metavar="K", help="Variable that holds the server's API key.")
@click.option("--deadline", type=Duration(), metavar="D", help="Stop watching after this long.")
@click.option("--fail-on-stall", is_flag=True, help="Return when the start stalls (exit 12).")
@common(jsonl=True)
@click.option("--from", "from_", type=int, default=0, metavar="SEQ", help="With --jsonl: begin at this event.")
def command(**given: Any) -> int:
    """Follow a startup until it is ready or has failed; nothing is ended by watching."""
    from bringup.ledger import find_run
    from bringup.pilot.attach import attach
    from bringup.pilot.foreign import watch_log
    from bringup.pilot.outcome import exit_code
    from bringup.report import choose

    if given["log"] and given["run"]:
        raise errors.UsageError("name a run or a --log, not both")
    if given["pid"] and not given["log"]:
        raise errors.UsageError("--pid goes with --log FILE")
    api_key = key_from(given["api_key_env"])
    reporter = choose(
        json_mode=given["as_json"], jsonl=given["jsonl"], quiet=given["quiet"], no_color=given["no_color"]
    )
    try:
        if given["log"]:
            document = watch_log(
                Path(given["log"]),
                reporter,
                pid=given["pid"],
                engine_name=given["engine"],
                probe=given["probe"] or "models",
                api_key=api_key,
                timeout_s=given["deadline"],
                fail_on_stall=given["fail_on_stall"],
            )
        else:
            root = state_path(given["state_dir"])
            run = find_run(root, given["run"])
            if given["jsonl"]:
                for event in run.events(given["from_"]):
                    reporter.event(event, {})
            document = attach(
                root,
                run,
                reporter,
                timeout_s=given["deadline"],
                fail_on_stall=given["fail_on_stall"],
                probe=given["probe"] or "completion",
                api_key=api_key,
                seen=_last(run, given["jsonl"]),
            )
        if (document.get("diagnosis") or {}).get("state") == "none":
            raise errors.NothingToJudge("there is no startup in this log", "is it the right file?")
        reporter.finish(document)
        if given["as_json"]:
            click.echo(json.dumps(document, ensure_ascii=False))
        return exit_code(document)
    except KeyboardInterrupt:
        reporter.close()
        click.echo("interrupted; what was watched goes on", err=True)
        return errors.INTERRUPTED
    finally:
        reporter.close()


def _last(run: Any, shown: bool) -> int:
    """Number of the first event that was not shown yet."""
    return max((e["seq"] for e in run.events()), default=-1) + 1 if shown else 0
