"""How a ``transformers serve`` command is recognised and read."""

from __future__ import annotations

from collections.abc import Sequence

from bringup.engines.base import Engine, Options, Words
from bringup.engines.flags import last_values, options, positionals, program

_FLAGS = {
    "--host": "host",
    "--port": "port",
    "--force-model": "model",
    "--force_model": "model",
}
_SWITCHES = ("--trust-remote-code", "--continuous-batching", "--enable-cors", "--non-blocking")


def claims(words: Words) -> tuple[str, ...] | None:
    name, args = program(words)
    if name in ("transformers", "transformers-cli", "transformers.cli.transformers") and args[:1] == ("serve",):
        return args[1:]
    return None


def read(args: Sequence[str]) -> Options:
    values = last_values(args, _FLAGS)
    words = positionals(args, _SWITCHES)
    return options(values, words[0] if words else None)


ENGINE = Engine(
    name="transformers",
    title="Transformers",
    package="bringup.engines.transformers",
    claims=claims,
    read=read,
    lazy=True,
    fingerprints=(
        "transformers serve",
        "transformers/cli/serv",
        "[transformers]",
        "transformers/commands/serving",
    ),
)
