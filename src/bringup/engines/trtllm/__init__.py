"""TensorRT-LLM: ``trtllm-serve``."""

from __future__ import annotations

from collections.abc import Sequence

from bringup.engines.base import Engine, Options, Words
from bringup.engines.flags import last_values, options, program

__all__ = ["ENGINE"]

_FLAGS = {"--host": "host", "--port": "port", "--served_model_name": "name", "--config": "config"}


def claims(words: Words) -> tuple[str, ...] | None:
    name, args = program(words)
    if name not in ("trtllm-serve", "tensorrt_llm.commands.serve"):
        return None
    return args[1:] if args[:1] == ("serve",) else args


def read(args: Sequence[str]) -> Options:
    model = args[0] if args and not args[0].startswith("-") else None
    return options(last_values(args, _FLAGS), model)


ENGINE = Engine(
    name="trtllm",
    title="TensorRT-LLM",
    package="bringup.engines.trtllm",
    claims=claims,
    read=read,
    fingerprints=("[TRT-LLM]", "[TensorRT-LLM]", "trtllm-serve", "tensorrt_llm"),
)
