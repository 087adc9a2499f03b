"""Any other command: ready by port and HTTP; failures of the stack below it are known all the same."""

from __future__ import annotations

from collections.abc import Sequence

from bringup.engines.base import Engine, Options, Words
from bringup.engines.flags import last_values, options

__all__ = ["ENGINE"]

_FLAGS = {"--host": "host", "--port": "port", "--model": "model", "--api-key": "key", "--hostname": "host"}


def claims(words: Words) -> tuple[str, ...] | None:
    return tuple(words[1:])


def read(args: Sequence[str]) -> Options:
    return options(last_values(args, _FLAGS, prefixes=False))


ENGINE = Engine(
    name="generic", title="generic", package="bringup.engines.generic", openai=False, claims=claims, read=read
)
