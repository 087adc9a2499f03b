"""When and where to probe: the log says when, the run's own sockets say where.

A server of somebody else on the same port must never be taken for this one: where the processes of the run can be
seen, a rung is tried only on a socket that one of them listens on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from bringup.engines import Engine
from bringup.facts import Command, Probe
from bringup.probe import Endpoint, Ladder, Prober
from bringup.timeline import View

Rung = Literal["none", "port", "health", "models", "completion"]


class Probing:
    """Decides the endpoint of one attempt and runs the ladder up to the rung that was asked for."""

    def __init__(
        self, command: Command, engine: Engine, upto: Rung, *, api_key: str | None = None, passive: bool = False
    ) -> None:
        self.upto = upto
        self.endpoint: Endpoint | None = None
        self._command = command
        self._engine = engine
        self._api_key = api_key or command.api_key
        self._has_grammar = bool(engine.grammar.rules)
        self._default_host = engine.grammar.default_host
        self._host: str | None = command.host
        self._port: int | None = command.port
        self._said = False
        self._serving = False
        self._model = command.served_name
        self._prober: Prober | None = None
        self._on_result: Callable[[Probe], None] = lambda _: None
        self._clock: Callable[[], float] = lambda: 0.0
        #: nothing is asked of the server; whoever follows it later will
        self.passive = passive
        self._stopped = passive

    @property
    def decides(self) -> bool:
        """Whether probes say when it is ready; otherwise the log does."""
        return self.upto != "none"

    def start(self, on_result: Callable[[Probe], None], clock: Callable[[], float]) -> None:
        self._on_result, self._clock = on_result, clock

    def stop(self) -> None:
        self._stopped = True
        if self._prober is not None:
            self._prober.stop()
            self._prober = None

    def satisfied(self, probe: Probe) -> bool:
        """Whether *probe* is the last rung that was asked for, and nothing more can be learnt on it."""
        return self.decides and probe.rung == self.upto and probe.status in ("ok", "skipped")

    def heard(self, view: View) -> bool:
        """Takes what the log says; True if it just said that something listens, so sockets should be looked at."""
        if view.port is not None:
            self._host, self._port = view.host or self._host, view.port
            self._said = True
        name = view.settings.get("served_model_name")
        if self._model is None and isinstance(name, str) and name:
            self._model = name
        news = bool(view.serving or view.ready) and not self._serving
        if news:
            self._serving = True
        if (view.ready or news) and self._prober is not None:
            self._prober.poke()
        return news

    def listening(self, sockets: Sequence[tuple[str, int]], *, known: bool) -> None:
        """Takes the sockets that the run's processes listen on; ``known`` says whether they could be seen at all."""
        if self._prober is not None or self._stopped or not self.decides:
            return
        if known:
            host_port = self._own(sockets)
        elif self._serving and self._port is not None:
            host_port = (self._host or self._default_host, self._port)
        else:
            host_port = None
        if host_port is not None:
            self._climb(*host_port)

    def _own(self, sockets: Sequence[tuple[str, int]]) -> tuple[str, int] | None:
        """The run's own socket that serves: the expected port, or the only one where no port is expected."""
        if self._port is not None:
            match = next((s for s in sockets if s[1] == self._port), None)
            if match is not None or self._has_grammar or self._said:
                return match
        return min(sockets, key=lambda s: s[1]) if sockets and not self._has_grammar else None

    def _climb(self, host: str, port: int) -> None:
        self.endpoint = Endpoint(host, port)
        ladder = Ladder(
            self.endpoint, task=self._command.task, model=self._model, api_key=self._api_key, upto=self.upto,
            clock=self._clock, openai=self._engine.openai,
            lazy=self._engine.lazy and self._command.model is None,
        )  # fmt: skip
        self._prober = Prober(ladder, self._on_result, backoff=True)
        self._prober.start()
