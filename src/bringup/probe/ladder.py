"""The rungs, and how far the server has climbed.

Only the lowest unmet rung is ever tried, one request at a time. What is met is not asked again: health costs some
engines a generated token. After a try of the completion that did not come off, the model list is asked again
first, so each completion follows a success of the rung below.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bringup import __version__
from bringup.facts import Probe
from bringup.probe.canary import Canary, is_html, message
from bringup.probe.endpoint import Endpoint
from bringup.probe.models import Served, same_model, served_models
from bringup.probe.wire import Answer, Live, NoAnswer, connect, request
from bringup.redact import MASK, redact_text

Rung = Literal["port", "health", "models", "completion"]
Upto = Literal["none", "port", "health", "models", "completion"]
Status = Literal["ok", "failed", "skipped", "waiting"]

RUNGS: tuple[Rung, ...] = get_args(Rung)
USER_AGENT = f"bringup/{__version__}"
#: seconds for health and the model list; one engine's health waits 20 s for its token
_QUICK_S = 30.0
_WHY = 300


@dataclass
class Ladder:
    """The ladder of one server. Not for two threads at once, but ``cancel`` may be set from any.

    ``task``: "chat" | "completion" | "embedding" | "rerank" | None (found out). ``model``: the name asked for.
    ``timeout_s``: seconds for one request of the completion rung. ``lazy``: models load at the first request, so
    an empty model list is no reason to wait. ``openai``: the command is known to serve an OpenAI-like API, so
    that anything else there is somebody else. ``clock``: seconds since the start, for ``at_s``.
    """

    endpoint: Endpoint
    task: str | None = None
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    upto: Upto = "completion"
    timeout_s: float = 120.0
    lazy: bool = False
    openai: bool = True
    clock: Callable[[], float] | None = None
    cancel: threading.Event = field(default_factory=threading.Event, repr=False)

    def __post_init__(self) -> None:
        self.rungs: tuple[Rung, ...] = () if self.upto == "none" else RUNGS[: RUNGS.index(self.upto) + 1]
        self._next = 0
        self._failed = False
        self._keyless = False
        self._served = Served()
        begun = time.monotonic()
        self._clock = self.clock or (lambda: time.monotonic() - begun)
        self._canary = Canary(
            self._post, self._tell_completion, self.task, self.openai, self.timeout_s, bool(self.api_key)
        )

    @property
    def done(self) -> bool:
        """Whether nothing is left to try: the last rung is met or skipped, or one has failed."""
        return self._failed or self._next >= len(self.rungs)

    @property
    def failed(self) -> bool:
        return self._failed

    def step(self) -> Probe:
        """Try the lowest unmet rung, once. Blocks for as long as that takes; never raises for what a server does."""
        rung = self.rungs[self._next]
        probe: Probe = getattr(self, rung)()
        if probe.status == "failed":
            self._failed = True
        elif probe.status != "waiting":
            self._next += 1
        elif rung == "completion":
            self._next = self.rungs.index("models")
        return probe

    def unmet(self, why: str) -> Probe:
        """The lowest unmet rung as it stands, without trying it. There must be one (not ``done``)."""
        return self._tell(self.rungs[self._next], "waiting", why)

    def port(self) -> Probe:
        """Does anything accept a connection?"""
        try:
            connect(self.endpoint, min(self.timeout_s, 5.0)).close()
        except NoAnswer as lost:
            return self._tell("port", "waiting", lost.why)
        return self._tell("port", "ok")

    def health(self, path: str = "/health") -> Probe:
        """Does it say that it is up? Servers without the endpoint are asked the next question."""
        got = self._get("health", path)
        if isinstance(got, Probe):
            return got
        status = got.status
        if status < 300:
            if self.openai and is_html(got):
                return self._stranger("health", got)
            return self._tell("health", "ok", status=status)
        if status in (401, 403):
            return self._tell("health", "skipped", f"the server is up and wants a key for {path} ({status})")
        if status == 503:
            return self._tell("health", "waiting", message(got) or "not ready (503)", status=status)
        if _not_yet(status):
            return self._tell("health", "waiting", f"{status} {message(got)}", status=status)
        if status < 400:
            return self._tell("health", "skipped", f"{path} redirects to {_target(got)}", status=status)
        return self._tell("health", "skipped", f"no {path} there ({status})", status=status)

    def models(self) -> Probe:
        """Does it list a model?"""
        got = self._get("models", "/v1/models")
        if isinstance(got, Probe):
            return got
        status = got.status
        if status in (401, 403):
            return self._key_wanted(status)
        if _not_yet(status):
            return self._tell("models", "waiting", f"{status} {message(got)}", status=status)
        found = served_models(got.json()) if status < 300 else None
        if found is not None:
            return self._listed(found)
        if self.openai and (status < 400 or is_html(got)):
            return self._stranger("models", got)
        return self._tell("models", "skipped", f"no model list there ({status})", status=status)

    def completion(self) -> Probe:
        """Does it answer, in sane text?"""
        if self._keyless:
            return self._tell("completion", "skipped", "the server wants an API key that is not known")
        model = self._served.pick(self.model) or self.model
        if self.lazy and model is None:
            why = "nothing is loaded, and which model to ask for is not known"
            return self._tell("completion", "skipped", why)
        return self._canary.send(model, self._served.capabilities)

    def _listed(self, found: Served) -> Probe:
        self._served = found
        served = list(found.names[:20])
        if not found.names:
            if self.lazy:
                return self._tell("models", "skipped", "nothing is loaded yet: the first request loads it", served=[])
            return self._tell("models", "waiting", "nothing is loaded: the model list is empty", served=[])
        why = None
        if self.model and not any(same_model(self.model, name) for name in found.known):
            why = f"{self.model} is not among the models served: {', '.join(served[:3])}"
        return self._tell("models", "ok", why, served=served)

    def _key_wanted(self, status: int) -> Probe:
        if self.api_key:
            return self._tell("models", "failed", f"the server refuses the API key ({status})", status=status)
        self._keyless = True
        why = f"the server is up and wants an API key that is not known ({status}): pass --api-key-env NAME"
        return self._tell("models", "skipped", why, status=status)

    def _stranger(self, rung: Rung, answer: Answer) -> Probe:
        """Something answers that is not what was launched."""
        if 300 <= answer.status < 400:
            what = f"a redirect to {_target(answer)}"
        elif answer.cut:
            what = "a very long answer"
        else:
            what = answer.headers.get("content-type", "").split(";")[0] or "no JSON"
        by = answer.headers.get("server")
        why = f"something else answers there: {what}{f' from {by}' if by else ''} ({answer.status})"
        return self._tell(rung, "failed", why, status=answer.status, foreign=True)

    def _get(self, rung: Rung, path: str) -> Answer | Probe:
        try:
            with self._send("GET", path, None, min(self.timeout_s, _QUICK_S)) as live:
                return live.whole()
        except NoAnswer as lost:
            # Only what the server's own command cannot be is final; the rest may pass.
            status: Status = "failed" if lost.kind == "not-http" and self.openai else "waiting"
            return self._tell(rung, status, lost.why)

    def _post(self, path: str, body: Any) -> contextlib.AbstractContextManager[Live]:
        return self._send("POST", path, body, self.timeout_s)

    @contextlib.contextmanager
    def _send(self, method: str, path: str, body: Any, timeout_s: float) -> Iterator[Live]:
        headers = {"User-Agent": USER_AGENT}
        if self.api_key:
            if not self.api_key.isprintable():
                raise NoAnswer("unreachable", "the API key holds a character that no header can carry")
            headers["Authorization"] = f"Bearer {self.api_key}".encode().decode("latin-1")
        sent = request(self.endpoint, method, path, headers=headers, timeout_s=timeout_s, cancel=self.cancel, body=body)
        with sent as live:
            yield live

    def _tell_completion(self, status: Status, why: str | None, /, **data: Any) -> Probe:
        return self._tell("completion", status, why, **data)

    def _tell(self, rung: Rung, status: Status, why: str | None = None, /, **data: Any) -> Probe:
        """A Probe whose texts are safe to show: short, without secrets and control characters."""
        clean: Mapping[str, Any] = {
            k: self._clean(v, _WHY) if isinstance(v, str) else v for k, v in data.items() if v is not None
        }
        said = " ".join(self._clean(why, _WHY).split()) if why else None
        return Probe(rung, status, round(self._clock(), 3), said, clean)

    def _clean(self, text: str, limit: int) -> str:
        if self.api_key:
            text = re.sub(rf"(?<!\w){re.escape(self.api_key)}(?!\w)", MASK, text)
        text = redact_text(text, (self.api_key,) if self.api_key else ())
        return "".join(c for c in text if c.isprintable() or c in "\n\t")[:limit]


def _not_yet(status: int) -> bool:
    """Whether a server that answers so may still come: 501 says that it never will."""
    return status == 429 or (status >= 500 and status != 501)


def _target(answer: Answer) -> str:
    return answer.headers.get("location", "nowhere")
