"""How a llama.cpp server command is recognised and read."""

from __future__ import annotations

from collections.abc import Sequence

from bringup.engines.base import Engine, Options, Words
from bringup.engines.flags import last_values, options, program

_FLAGS = {
    "-m": "model",
    "--model": "model",
    "-mu": "url",
    "--model-url": "url",
    "-hf": "hub",
    "-hfr": "hub",
    "--hf-repo": "hub",
    "--host": "host",
    "--port": "port",
    "-a": "name",
    "--alias": "name",
    "--api-key": "key",
}
_PROGRAMS = frozenset(
    {
        "llama-server",
        "llama-server.exe",
        "bringup.engines.llamacpp.serve",
        "xllama_serve.py",
        "xllamacpp.server",
    }
)


def claims(words: Words) -> tuple[str, ...] | None:
    name, args = program(words)
    if name in _PROGRAMS:
        return args
    if name == "serve.py" and any("llamacpp" in w and w.endswith("serve.py") for w in words):
        return args  # the embedded launcher, run by its path in an engine's own environment
    if name == "llama" and args[:1] == ("server",):
        return args[1:]
    return None


def read(args: Sequence[str]) -> Options:
    values = last_values(args, _FLAGS, prefixes=False)
    task = "rerank" if {"--reranking", "--rerank"} & set(args) else None
    if task is None and {"--embedding", "--embeddings"} & set(args):
        task = "embedding"
    return options(values, values.get("hub") or values.get("url"), task)


ENGINE = Engine(
    name="llamacpp",
    title="llama.cpp",
    package="bringup.engines.llamacpp",
    claims=claims,
    read=read,
    env={
        "LLAMA_ARG_MODEL": "model",
        "LLAMA_ARG_HOST": "host",
        "LLAMA_ARG_PORT": "port",
        "LLAMA_API_KEY": "key",
    },
    fingerprints=(
        "llama_model",
        "llama_context",
        "llama_kv",
        "llama_server",
        "llama_init",
        "llama_params",
        "ggml_",
        "gguf_init",
        "llama.cpp",
        "srv  ",
        "llama-server",
        "common_param",
        "common_init",
        "xllama_serve",
        "xllamacpp",
        "error while handling argument",
    ),
)
