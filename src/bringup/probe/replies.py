"""What a server answers to the canary request: JSON bodies and SSE streams, to text, counts and speeds."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bringup.probe.wire import Live, NoAnswer


@dataclass(slots=True)
class Reply:
    """A generation as it was received. Times in seconds; ``error`` is an error that came inside a 200."""

    text: str = ""
    #: whether the answer had the shape that was asked for
    shaped: bool = False
    tokens: int | None = None
    counted: str | None = None
    ttft_s: float | None = None
    tokens_per_s: float | None = None
    error: Mapping[str, Any] | None = None
    #: the deadline came after some text had
    slow: bool = False


class Sse:
    """Server-sent events from bytes cut anywhere, in the middle of a character too."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[str]:
        """The ``data:`` payloads that *data* completes."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip().decode("utf-8", "replace")


@dataclass(slots=True)
class _Stream:
    started: float
    pieces: list[str] = field(default_factory=list)
    first: float | None = None
    last: float | None = None
    usage: int | None = None
    shaped: bool = False
    ended: bool = False
    error: Mapping[str, Any] | None = None

    def take(self, payload: str) -> None:
        """Read one event."""
        if payload == "[DONE]":
            self.ended = True
            return
        try:
            event = json.loads(payload)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        if isinstance(event.get("error"), (dict, str)):
            self.error = _error(event["error"])
            return
        self.usage = _usage(event) or self.usage
        choice = _choice(event)
        if choice is None:
            return
        self.shaped = True
        self.ended = self.ended or bool(choice.get("finish_reason"))
        if piece := _text(choice):
            self.last = time.monotonic()
            self.first = self.first or self.last
            self.pieces.append(piece)

    def reply(self, slow: bool = False) -> Reply:
        """What came so far."""
        tokens = self.usage or len(self.pieces) or None
        reply = Reply("".join(self.pieces), self.shaped, tokens, error=self.error, slow=slow)
        if tokens:
            reply.counted = "usage" if self.usage else "chunks"
        if self.first and self.last and tokens:
            reply.ttft_s = round(self.first - self.started, 4)
            reply.tokens_per_s = _speed(tokens, self.last - self.first, self.last - self.started)
        return reply


def read_stream(live: Live, started: float) -> Reply:
    """The generation that *live* streams; *started* is when it was asked for (monotonic).

    Raises NoAnswer if the connection ends before the generation does, or nothing comes in time.
    """
    stream, sse = _Stream(started), Sse()
    try:
        for data in live.chunks():
            for payload in sse.feed(data):
                stream.take(payload)
        for payload in sse.feed(b"\n"):  # a last line without its end
            stream.take(payload)
    except NoAnswer as lost:
        if lost.kind == "timeout" and stream.pieces:
            return stream.reply(slow=True)
        # Some servers end the connection without the last chunk's mark: what had ended, has.
        if not (lost.kind == "closed" and stream.ended):
            raise
    if not (stream.ended or live.framed or stream.error):
        raise NoAnswer("closed", "connection closed")
    return stream.reply()


def read_body(body: Any, seconds: float) -> Reply:
    """The generation in an answer that came whole after *seconds*."""
    if not isinstance(body, dict):
        return Reply()
    if isinstance(body.get("error"), (dict, str)):
        return Reply(error=_error(body["error"]))
    choice = _choice(body)
    if choice is None:
        return Reply()
    reply = Reply(_text(choice), shaped=True, tokens=_usage(body))
    if reply.tokens:
        reply.counted = "usage"
        reply.tokens_per_s = _speed(reply.tokens, 0, seconds)
    return reply


def vector(body: Any) -> list[Any] | None:
    """The first embedding in an answer; None if it has not that shape."""
    try:
        found = body["data"][0]["embedding"]
    except (KeyError, IndexError, TypeError):
        return None
    return found if isinstance(found, list) and found else None


def scores(body: Any) -> list[Any] | None:
    """The scores in an answer of a reranker, in any of the shapes in use; None if there are none."""
    rows = body
    if isinstance(body, dict):
        rows = body.get("results") or body.get("data")
    if not isinstance(rows, list) or not rows:
        return None
    found = [_score(row) for row in rows]
    return None if any(s is None for s in found) else found


def finite(numbers: list[Any]) -> bool:
    """Whether all of *numbers* are finite numbers."""
    return all(isinstance(n, (int, float)) and math.isfinite(n) for n in numbers)


def _score(row: Any) -> Any:
    if not isinstance(row, dict):
        return None
    return row.get("relevance_score", row.get("score"))


def _choice(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return None


def _text(choice: Mapping[str, Any]) -> str:
    """The text of a choice: reasoning counts, it is generated all the same."""
    if isinstance(choice.get("text"), str):
        return str(choice["text"])
    said = choice.get("delta") or choice.get("message")
    if not isinstance(said, dict):
        return ""
    thought = said.get("reasoning_content") or said.get("reasoning")
    return "".join(part for part in (thought, said.get("content")) if isinstance(part, str))


def _usage(body: Mapping[str, Any]) -> int | None:
    usage = body.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def _error(error: Any) -> Mapping[str, Any]:
    return error if isinstance(error, dict) else {"message": str(error)}


def _speed(tokens: int, span: float, whole: float) -> float | None:
    """Tokens a second after the first; over the whole time where they came all at once."""
    if tokens > 2 and span > 0.002:
        return round((tokens - 1) / span, 2)
    return round(tokens / whole, 2) if whole > 0 else None
