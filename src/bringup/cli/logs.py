"""``bringup logs``."""

from __future__ import annotations

import sys
from typing import Any

import click

from bringup import errors
from bringup.cli.options import state_path

EPILOG = """\b
Examples:
  bringup logs
  bringup logs chat -f
  bringup logs chat --attempt 1 | less
"""


@click.command(epilog=EPILOG)
@click.argument("run", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as the log grows, until the server ends.")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Which attempt. [default: the newest]")
@click.option("--state-dir", metavar="DIR", help="Where runs are kept.")
def command(run: str | None, follow: bool, attempt: int | None, state_dir: str | None) -> int:
    """The raw log of a run, byte for byte, on stdout."""
    from bringup.follow import Data, Follower
    from bringup.launch.attempt import AttemptDir
    from bringup.ledger import find_run

    found = find_run(state_path(state_dir), run)
    number = attempt or found.last_attempt
    folder = AttemptDir(found.attempt(number))
    if not folder.log.is_file():
        raise errors.UsageError(f"run `{found.id}` has no attempt {number} with a log")
    pid = folder.read_pid()
    pids = [(pid.pid, pid.start_ticks)] if pid is not None else []
    follower = Follower(folder.log, pids=pids, exit_file=folder.exit_file)
    out: Any = sys.stdout.buffer
    try:
        while True:
            over = not follow or not folder.alive()
            signals = follower.wait(0.0 if over else None)
            data = [s for s in signals if isinstance(s, Data)]
            for chunk in data:
                out.write(chunk.data)
            out.flush()
            if over and not data:
                return 0
    except KeyboardInterrupt:
        return errors.INTERRUPTED
    finally:
        follower.close()
