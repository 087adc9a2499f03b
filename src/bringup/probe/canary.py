"""The last rung: one real request, its answer checked for shape and sense.

What a server refuses because it is of another kind (400 on chat from a base or an embedding model) leads to the
request that fits. A 5xx is given a second chance, then it is a failed warm-up.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from bringup.facts import Probe
from bringup.probe.asks import Ask, asks, kinds
from bringup.probe.replies import Reply, finite, read_body, read_stream, scores, vector
from bringup.probe.sanity import odd
from bringup.probe.wire import Answer, Live, NoAnswer

Post = Callable[[str, Any], AbstractContextManager[Live]]
#: makes the rung's Probe: status, why, data
Tell = Callable[..., Probe]

_OTHER_KIND = frozenset({400, 404, 405, 422, 501})
_NO_SUCH_PATH = frozenset({404, 405, 501})
_BUSY = frozenset({429, 503})
_NO_CHAT = re.compile(r"(?i)chat.?template|does not support (?:the )?chat|expected peg-native format")
#: times that a connection may break in the middle of an answer before that is the answer
_BREAKS = 3


@dataclass(slots=True)
class Canary:
    """Sends the request; keeps what earlier tries came to."""

    post: Post
    tell: Tell
    task: str | None
    #: whether the command is known to serve an API that takes one of our requests
    openai: bool
    timeout_s: float
    keyed: bool
    server_errors: int = field(default=0, init=False)
    timeouts: int = field(default=0, init=False)
    breaks: int = field(default=0, init=False)

    def send(self, model: str | None, capabilities: frozenset[str]) -> Probe:
        """One try; ``waiting`` means that another is worth it."""
        refusals: list[Answer] = []
        try:
            for ask in (a for k in kinds(self.task, capabilities) for a in asks(k, model)):
                got = self._exchange(ask)
                if isinstance(got, Answer) and got.status >= 300:
                    if not self._fits_not(ask, got):
                        return self._refused(got)
                    refusals.append(got)
                else:
                    return self._judge(ask, got, model)
        except NoAnswer as lost:
            return self._lost(lost)
        return self._nobody(refusals)

    def _exchange(self, ask: Ask) -> Reply | Answer:
        """The reply to a generation; the whole answer to anything else and to every refusal."""
        started = time.monotonic()
        with self.post(ask.path, ask.streamed() if ask.generates else ask.body) as live:
            if live.status < 300 and "text/event-stream" in live.headers.get("content-type", ""):
                return read_stream(live, started)
            answer = live.whole()
        if ask.generates and answer.status in (400, 422) and "stream" in answer.text.lower():
            started = time.monotonic()
            with self.post(ask.path, ask.body) as live:
                answer = live.whole()
        if ask.generates and answer.status < 300:
            return read_body(answer.json(), time.monotonic() - started)
        return answer

    def _fits_not(self, ask: Ask, answer: Answer) -> bool:
        """Whether the server is fine and this is not its kind of request."""
        if answer.status in _OTHER_KIND:
            return True
        return ask.kind == "chat" and answer.status == 500 and bool(_NO_CHAT.search(answer.text))

    def _refused(self, answer: Answer) -> Probe:
        status, said = answer.status, message(answer)
        if status in (401, 403):
            if self.keyed:
                return self.tell("failed", f"the server refuses the API key ({status})")
            return self.tell("skipped", f"the server wants an API key that is not known ({status})")
        if status in _BUSY:
            return self.tell("waiting", f"not yet: {status} {said}")
        if status < 500:
            return self.tell("failed", f"refused: {status} {said}", status=status, body=answer.text)
        return self._server_error(status, said, answer.text)

    def _server_error(self, status: int, said: str, body: str) -> Probe:
        self.server_errors += 1
        if self.server_errors < 2:
            return self.tell("waiting", f"the first request failed: {status} {said}", status=status, body=body)
        why = f"the first requests failed, twice: {status} {said}"
        return self.tell("failed", why, status=status, body=body, **{"class": "warmup-failure"})

    def _lost(self, lost: NoAnswer) -> Probe:
        if lost.kind == "timeout":
            self.timeouts += 1
            why = f"no answer to a request within {self.timeout_s:g} s"
            return self.tell("failed", f"{why}, twice") if self.timeouts > 1 else self.tell("waiting", why)
        if lost.kind == "closed":
            self.breaks += 1
            why = f"{lost.why} before the answer was whole"
            if self.breaks >= _BREAKS:
                return self.tell("failed", f"{why}, {self.breaks} times")
            return self.tell("waiting", why)
        return self.tell("failed" if lost.kind == "not-http" else "waiting", lost.why)

    def _nobody(self, refusals: Iterable[Answer]) -> Probe:
        """Every kind of request was refused."""
        answers = list(refusals)
        if not self.openai and all(a.status in _NO_SUCH_PATH for a in answers):
            return self.tell("skipped", "nothing there takes a completion, an embedding or a reranking request")
        best = next((a for a in answers if a.status not in _NO_SUCH_PATH), answers[0])
        why = f"no request is accepted: {best.status} {message(best)}"
        return self.tell("failed", why, status=best.status, body=best.text)

    def _judge(self, ask: Ask, got: Reply | Answer, model: str | None) -> Probe:
        if isinstance(got, Answer):
            return self._judge_numbers(ask, got)
        if got.error is not None:
            return self._error_inside(got)
        if not got.shaped:
            return self.tell("failed", "the answer to a completion has no choices")
        sign = odd(got.text)
        if sign is None:
            return self._answered(ask, got, "slow: only the start of the answer was read" if got.slow else None)
        (other,) = asks(ask.kind, model, again=True)
        second = self._exchange(other)
        if isinstance(second, Answer):
            return self._refused(second)
        if second.error is not None:
            return self._error_inside(second)
        if odd(second.text) == sign:
            return self.tell("failed", f"text is not sane: {sign}", text=got.text, kind=ask.kind)
        return self._answered(ask, second, f"the first text was {sign}, a second one was not")

    def _error_inside(self, reply: Reply) -> Probe:
        error = reply.error or {}
        code = error.get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
        return self._refused(Answer(status, {}, str(error.get("message", error)).encode()))

    def _answered(self, ask: Ask, reply: Reply, why: str | None) -> Probe:
        return self.tell(
            "ok",
            why,
            kind=ask.kind,
            status=200,
            text=reply.text,
            tokens=reply.tokens,
            counted=reply.counted,
            ttft_s=reply.ttft_s,
            tokens_per_s=reply.tokens_per_s,
        )

    def _judge_numbers(self, ask: Ask, answer: Answer) -> Probe:
        body = answer.json()
        numbers = vector(body) if ask.kind == "embedding" else scores(body)
        if numbers is None:
            return self.tell("failed", f"the answer to {ask.path} holds no {ask.kind}", body=answer.text)
        if not finite(numbers):
            return self.tell("failed", f"the {ask.kind} is not finite", kind=ask.kind)
        if ask.kind == "embedding" and not any(numbers):
            return self.tell("failed", "the embedding is all zeros", kind=ask.kind)
        text = f"{len(numbers)} dimensions" if ask.kind == "embedding" else f"{len(numbers)} scores"
        return self.tell("ok", None, kind=ask.kind, status=answer.status, text=text)


def message(answer: Answer) -> str:
    """The message in an error answer, in the shapes in use; else the start of its text."""
    body = answer.json()
    if isinstance(body, dict):
        error = body.get("error", body)
        found = error.get("message") or error.get("detail") if isinstance(error, dict) else error
        if isinstance(found, str):
            return found
    return "" if is_html(answer) else answer.text


def is_html(answer: Answer) -> bool:
    """Whether this is a page for people and not an API's answer."""
    kind = answer.headers.get("content-type", "")
    return "text/html" in kind or answer.body.lstrip()[:9].lower() in (b"<!doctype", b"<html><he", b"<html>")
