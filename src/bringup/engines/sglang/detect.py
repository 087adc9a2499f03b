"""How an SGLang command is recognised and read."""

from __future__ import annotations

from collections.abc import Sequence

from bringup.engines.base import Engine, Options, Words
from bringup.engines.flags import last_values, options, positionals, program
from bringup.engines.sglang.settings import parse_server_args

_FLAGS = {
    "--model-path": "model",
    "--model": "model",
    "--host": "host",
    "--port": "port",
    "--served-model-name": "name",
    "--api-key": "key",
    "--config": "config",
}


def claims(words: Words) -> tuple[str, ...] | None:
    name, args = program(words)
    if name in ("sglang.launch_server", "launch_server.py"):
        return args
    if name in ("sglang", "sglang.cli.main") and args[:1] == ("serve",):
        return args[1:]
    return None


def read(args: Sequence[str]) -> Options:
    values = last_values(args, _FLAGS)
    task = "embedding" if "--is-embedding" in args else None
    model = values.get("model")
    if model is None:
        model = next(iter(positionals(args)), None)  # `sglang serve MODEL`
    return options(values, model, task)


ENGINE = Engine(
    name="sglang",
    title="SGLang",
    package="bringup.engines.sglang",
    claims=claims,
    read=read,
    settings={"server_args": parse_server_args},
    fingerprints=(
        "server_args=",
        "sglang/srt/",
        "sglang.srt",
        "sglang.launch_server",
        "launch_server.py: error",
        "usage: launch_server.py",
        "sglang serve: error",
        "usage: sglang",
        "sglang::",
        "Load weight begin. avail mem=",
        "Scheduler hit an exception",
        "fired up and ready to roll",
    ),
)
