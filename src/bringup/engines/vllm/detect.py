"""How a vLLM command is recognised and read."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from bringup.engines.base import Engine, Options, Words
from bringup.engines.flags import last_values, options, positionals, program

_FLAGS = {
    "--model": "model",
    "--host": "host",
    "--port": "port",
    "--served-model-name": "name",
    "--api-key": "key",
    "--config": "config",
    "--runner": "runner",
    "--task": "task",
}
_MANY = ("--served-model-name", "--served_model_name", "--api-key", "--api_key", "--lora-modules", "--middleware")
_TASKS = {
    "embed": "embedding",
    "embedding": "embedding",
    "pooling": "embedding",
    "score": "rerank",
    "rerank": "rerank",
}


def claims(words: Words) -> tuple[str, ...] | None:
    name, args = program(words)
    if name in ("vllm", "vllm.entrypoints.cli.main") and args[:1] == ("serve",):
        return args[1:]
    if name in ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server"):
        return args
    if name == "api_server.py" and any(w.endswith("vllm/entrypoints/openai/api_server.py") for w in words[:6]):
        return args
    return None


def read(args: Sequence[str]) -> Options:
    values = last_values(args, _FLAGS, underscores=True)
    task = _TASKS.get(values.get("task", "")) or _TASKS.get(values.get("runner", ""))
    words = positionals(args, many=_MANY)
    if words:
        values["model"] = words[0]  # `vllm serve MODEL` wins over --model
    return options(values, task=task)


def parse_non_default_args(text: str) -> Mapping[str, Any] | None:
    """Settings from ``non-default args: {...}``; None if the line holds none or is cut."""
    _, mark, body = text.partition("non-default args:")
    if not mark:
        return None
    try:
        found = ast.literal_eval(body.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


ENGINE = Engine(
    name="vllm",
    title="vLLM",
    package="bringup.engines.vllm",
    claims=claims,
    read=read,
    env={"VLLM_API_KEY": "key"},
    settings={"non_default_args": parse_non_default_args},
    fingerprints=(
        "vllm/",
        "(APIServer pid=",
        "(EngineCore",
        "vLLM API server",
        "vLLM server",
        "VLLM_",
        "vllm serve",
        "usage: vllm",
        "vllm: error:",
        "vllm.entrypoints",
    ),
)
