"""``bringup up``."""

from __future__ import annotations

import json
import shlex
from typing import Any

import click

from bringup import errors
from bringup.cli.options import PROBES, Duration, common, env_pairs, key_from, state_path

EPILOG = """\b
Examples:
  bringup up
  bringup up -- python -m sglang.launch_server --model-path /models/Qwen3-8B --port 30000
  bringup up --name chat --deadline 20m -- vllm serve Qwen/Qwen3-8B --max-model-len 32768
  bringup up --json -- llama-server -m model.gguf --port 8080
  bringup up --foreground -- vllm serve Qwen/Qwen3-8B      (under a supervisor)
"""


@click.command(epilog=EPILOG)
@click.option("--name", metavar="N", help="Name of the run. [default: from the model]")
@click.option("--env", "env", multiple=True, metavar="K=V", help="Set a variable for the server.")
@click.option("--pass-env", multiple=True, metavar="K", help="Pass a variable of this shell on, by name.")
@click.option("--cwd", metavar="DIR", type=click.Path(exists=True, file_okay=False), help="Where the server runs.")
@click.option("--venv", metavar="DIR", type=click.Path(exists=True, file_okay=False), help="Virtual environment.")
@click.option("--probe", type=PROBES, default="completion", show_default=True, help="How far ready must be proven.")
@click.option("--api-key-env", metavar="K", help="Variable that holds the server's API key.")
@click.option("--deadline", type=Duration(), metavar="D", help="Stop waiting after this long; the server goes on.")
@click.option("--fail-on-stall", is_flag=True, help="Return when the start stalls (exit 12).")
@click.option("--no-plan", is_flag=True, help="Do not predict before the launch.")
@click.option("--force", is_flag=True, help="Launch although a check refuses.")
@click.option("--foreground", is_flag=True, help="Stay, forward signals, end with the server's own code.")
@click.option("--no-env-additions", is_flag=True, help="Do not add PYTHONUNBUFFERED=1 for the server.")
@common(jsonl=True)
@click.argument("stray", nargs=-1, metavar="[-- COMMAND...]")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    """Launch a server detached, follow its start, and say that it is ready or exactly why it failed.

    The command stands after `--` and is run as typed. Without one, a small real server is brought up: llama.cpp
    with SmolLM2-135M, in an environment of its own. Closing the terminal leaves the server running.
    """
    from bringup.pilot.foreground import Foreground
    from bringup.pilot.up import UpOptions, bring_up
    from bringup.report import choose

    if given["stray"]:
        words = shlex.join([*given["stray"], *(ctx.obj["command"] or ())])
        raise errors.UsageError("the command must stand after `--`", f"write `bringup up -- {words}`")
    root = state_path(given["state_dir"])
    argv = ctx.obj["command"]
    api_key = key_from(given["api_key_env"])
    env = env_pairs(given["env"], given["pass_env"])
    reporter = choose(
        json_mode=given["as_json"],
        jsonl=given["jsonl"],
        quiet=given["quiet"] or given["foreground"],
        no_color=given["no_color"],
    )
    try:
        name = given["name"]
        if argv is None:
            from bringup.cli.embedded import default_command

            argv = default_command(reporter)
        elif not argv:
            raise errors.UsageError("there is no command after `--`", "for example `bringup up -- vllm serve MODEL`")
        options = UpOptions(
            argv=argv,
            name=name,
            env=env,
            cwd=given["cwd"],
            venv=given["venv"],
            probe=given["probe"],
            api_key=api_key,
            deadline_s=given["deadline"],
            fail_on_stall=given["fail_on_stall"],
            force=given["force"],
            foreground=given["foreground"],
            plan=not given["no_plan"],
            env_additions=not given["no_env_additions"],
        )
        result = bring_up(options, root, reporter, Foreground() if given["foreground"] else None)
        reporter.finish(result.document)
        if given["as_json"]:
            click.echo(json.dumps(result.document, ensure_ascii=False))
        return result.code
    except KeyboardInterrupt:
        reporter.close()
        click.echo("interrupted; what was launched goes on: see `bringup status`, end it with `bringup stop`", err=True)
        return errors.INTERRUPTED
    finally:
        reporter.close()
