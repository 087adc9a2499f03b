"""The small requests that prove a server: which there are, and in which order they are tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: tokens; enough to tell text from noise and to measure a speed
MAX_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Ask:
    kind: str
    path: str
    body: dict[str, Any]
    #: a generation, streamed so that its times can be taken
    generates: bool = True

    def streamed(self) -> dict[str, Any]:
        return self.body | {"stream": True, "stream_options": {"include_usage": True}}


def kinds(task: str | None, capabilities: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The kinds of request to try, best first. A known *task* is believed; else the model's *capabilities*."""
    told = {
        "completion": ("completion", "chat"),
        "embedding": ("embedding", "rerank"),  # one engine flag stands for both
        "rerank": ("rerank",),
    }
    if task in told:
        return told[task]
    every = ("chat", "completion", "embedding", "rerank")
    if task is None and not capabilities & {"chat", "completion"}:
        for kind in ("embedding", "rerank"):
            if kind in capabilities:
                return (kind, *(k for k in every if k != kind))
    return every


def asks(kind: str, model: str | None, again: bool = False) -> tuple[Ask, ...]:
    """The requests of *kind*, in the order they are tried.

    Both are sampled: some engines answer greedily from a model that cannot compute (weights never loaded), and
    die of the first sampled request. *again* gives a different question: its answer tells a model that repeats
    itself from one that cannot compute.
    """
    name = {"model": model} if model else {}
    text = "Write one sentence about the sea." if again else "Hello"
    limits = {"max_tokens": MAX_TOKENS * (2 if again else 1), "temperature": 1 if again else 0.7}
    if kind == "chat":
        messages = [{"role": "user", "content": text}]
        return (Ask(kind, "/v1/chat/completions", name | {"messages": messages} | limits),)
    if kind == "completion":
        return (Ask(kind, "/v1/completions", name | {"prompt": text} | limits),)
    if kind == "embedding":
        return (Ask(kind, "/v1/embeddings", name | {"input": text}, generates=False),)
    documents = ["hello", "goodbye"]
    pairs = {"query": text, "documents": documents}
    return (
        Ask(kind, "/v1/rerank", name | pairs, generates=False),
        Ask(kind, "/rerank", name | pairs | {"texts": documents}, generates=False),
        Ask(kind, "/score", name | {"text_1": text, "text_2": documents}, generates=False),
    )
