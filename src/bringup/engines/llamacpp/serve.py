#!/usr/bin/env python3
"""Start llama.cpp's HTTP server, the one embedded in the xllamacpp wheel.

Runs in the engine's own environment: it needs the standard library and xllamacpp, and nothing of bringup.

    python serve.py -m MODEL.gguf [--host 127.0.0.1] [--port 8080] [-c TOKENS] [-t THREADS] [--alias NAME]

Ends with 0 on SIGTERM or SIGINT, 1 if the model does not load or the port is taken, 2 on wrong arguments.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any


def parser() -> argparse.ArgumentParser:
    """The arguments, spelt as llama-server spells them."""
    p = argparse.ArgumentParser(prog="serve.py", description="llama.cpp's HTTP server from the xllamacpp wheel")
    p.add_argument("-m", "--model", required=True, help="GGUF file")
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=8080)
    p.add_argument("-c", "--ctx-size", type=int, default=0, help="tokens; 0: what the model was trained with")
    # One thread: with more, OpenMP barriers spin while another process holds a core, and a token that takes
    # 6 ms takes 3 s.
    p.add_argument("-t", "--threads", type=int, default=1)
    p.add_argument("-np", "--parallel", type=int, default=1, help="requests served at a time")
    p.add_argument("-a", "--alias", help="name of the model in the API")
    p.add_argument("--api-key", help="key that requests must carry")
    p.add_argument("--embedding", "--embeddings", action="store_true", help="serve embeddings (mean pooling)")
    return p


def params(args: argparse.Namespace, xlc: Any) -> Any:
    """xllamacpp's parameters for *args*."""
    p = xlc.CommonParams()
    p.model.path = args.model
    p.hostnames = [args.host]
    p.port = args.port
    p.n_ctx = args.ctx_size
    p.n_parallel = args.parallel
    p.cpuparams.n_threads = args.threads
    p.cpuparams_batch.n_threads = args.threads
    if args.alias:
        p.model_alias = {args.alias}
    if args.api_key:
        p.api_keys = [args.api_key]
    if args.embedding:
        p.embedding = True
        p.pooling_type = xlc.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return p


def _await_end() -> None:
    """Return at SIGTERM or SIGINT.

    Any of the server's native threads may be the one that the kernel hands the signal to, so the main thread
    waits on the wake-up pipe and not in a lock that only its own signals would interrupt.
    """
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    os.read(woken, 1)


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    # A signal while the model loads ends the process at once: Python's own handler would run only after the
    # native call returned, minutes later with a large model.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        xlc = import_module("xllamacpp")
        server = xlc.Server(params(args, xlc))
    except (ImportError, RuntimeError, TypeError, ValueError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    # Nothing is printed here: the server's logger thread says that it listens, and would tear a second line.
    _await_end()
    del server  # its destructor finishes the requests in hand and joins the server's threads
    return 0


if __name__ == "__main__":
    sys.exit(main())
