"""``bringup``: the entry point. Verbs are imported when they are asked for, so that each starts fast."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

import click

from bringup import __version__, errors

#: verb -> (module under bringup.cli, what it does); the order is the order of a day's work
VERBS: dict[str, tuple[str, str]] = {
    "up": ("up", "launch a server, follow its start, say ready or exactly why not"),
    "watch": ("watch", "follow a startup, also one that bringup did not launch"),
    "wait": ("wait", "for scripts and agents: return at ready, failure, stall or timeout"),
    "status": ("status", "what a run is doing now"),
    "ps": ("ps", "the runs, newest first"),
    "logs": ("logs", "the raw log of a run"),
    "diagnose": ("diagnose", "explain a startup log, or a run"),
    "stop": ("stop", "end a run and prove that nothing of it is left"),
}

EXAMPLES = """\b
Examples:
  bringup up                                   a small real server, to see it work
  bringup up -- vllm serve Qwen/Qwen3-8B       put it in front of the command you were about to run
  bringup wait --timeout 25s                   is it ready yet?
  bringup diagnose server.log                  why did it fail?
"""


class Verbs(click.Group):
    """Loads a verb's module only when that verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        from importlib import import_module

        found: click.Command = import_module(f"bringup.cli.{VERBS[cmd_name][0]}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl([(name, what) for name, (_, what) in VERBS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, 1)
            hint = f"did you mean `bringup {near[0]}`?" if near else f"verbs: {', '.join(VERBS)}"
            raise errors.UsageError(f"there is no verb `{args[0]}`", hint)
        return super().resolve_command(ctx, args)


@click.group(
    cls=Verbs,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(__version__, "-V", "--version", message="bringup %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Bring up LLM inference servers: put `bringup up --` in front of the command you were about to run."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(argv: Sequence[str] | None = None) -> None:
    """Console entry point; ends the process with the contract's exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    sys.exit(main(words))


def main(words: list[str]) -> int:
    """Runs one command line; the exit code. Errors become one line and a hint, or an error object with --json."""
    words, command = split_command(words)
    as_json = "--json" in words or "--jsonl" in words
    try:
        result = cli.main(args=words, prog_name="bringup", standalone_mode=False, obj={"command": command})
        return result if isinstance(result, int) else 0
    except errors.BringupError as exc:
        return _tell(exc.code, exc.message, exc.hint, as_json)
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.ClickException as exc:
        context = exc.ctx if isinstance(exc, click.UsageError) else None
        hint = f"see `{context.command_path} --help`" if context is not None else None
        return _tell(errors.USAGE, _lower(exc.format_message()), hint, as_json)
    except (KeyboardInterrupt, click.Abort):
        return _tell(errors.INTERRUPTED, "interrupted", None, as_json)
    except BrokenPipeError:
        # The reader of our output is gone; what was launched goes on.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as exc:
        where = f" `{exc.filename}`" if exc.filename else ""
        return _tell(errors.UNEXPECTED, f"{(exc.strerror or str(exc)).lower()}{where}", _disk_hint(exc), as_json)
    except Exception as exc:  # a bug of ours: one line for the user, the traceback on request
        if os.environ.get("BRINGUP_TRACEBACK"):
            raise
        text = f"unexpected {type(exc).__name__}: {exc}"
        return _tell(errors.UNEXPECTED, text, "this is a bug in bringup; BRINGUP_TRACEBACK=1 shows where", as_json)


def split_command(words: list[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """Our words, and what stands after the first ``--`` (None where there is none): that is never parsed."""
    if "--" not in words:
        return words, None
    cut = words.index("--")
    return words[:cut], tuple(words[cut + 1 :])


def _tell(code: int, message: str, hint: str | None, as_json: bool) -> int:
    from bringup.report.documents import error_document
    from bringup.report.reporter import say
    from bringup.report.text import render_error

    if as_json:
        say(sys.stdout, json.dumps(error_document(code, message, hint), ensure_ascii=False))
    say(sys.stderr, render_error(message, hint))
    return code


def _lower(text: str) -> str:
    text = text.rstrip(".")
    return text[:1].lower() + text[1:]


def _disk_hint(exc: OSError) -> str | None:
    import errno

    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some space, or point --state-dir (BRINGUP_STATE_DIR) to another disk"
    if exc.errno in (errno.EROFS, errno.EACCES):
        return "point --state-dir (BRINGUP_STATE_DIR) to a directory that can be written"
    return None


if __name__ == "__main__":
    run()
