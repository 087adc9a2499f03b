"""Text Generation Inference: ``text-generation-launcher``."""

from __future__ import annotations

from collections.abc import Sequence

from bringup.engines.base import Engine, Options, Words
from bringup.engines.flags import last_values, options, program

__all__ = ["ENGINE"]

_FLAGS = {"--model-id": "model", "--hostname": "host", "--port": "port", "-p": "port", "--api-key": "key"}


def claims(words: Words) -> tuple[str, ...] | None:
    name, args = program(words)
    return args if name == "text-generation-launcher" else None


def read(args: Sequence[str]) -> Options:
    return options(last_values(args, _FLAGS, prefixes=False))


ENGINE = Engine(
    name="tgi",
    title="TGI",
    package="bringup.engines.tgi",
    claims=claims,
    read=read,
    env={"MODEL_ID": "model", "HOSTNAME": "host", "PORT": "port", "API_KEY": "key"},
    fingerprints=(
        "text_generation_launcher",
        "text-generation-launcher",
        "text_generation_router",
        "ShardCannotStart",
    ),
)
