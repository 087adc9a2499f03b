"""Climb a ladder: in the background when told to, or here and now."""

from __future__ import annotations

import threading
from collections.abc import Callable

from bringup.facts import Probe
from bringup.probe.endpoint import Endpoint
from bringup.probe.ladder import Ladder

#: seconds between tries of a rung that is not met yet
FIRST_S = 0.25
LAST_S = 2.0


class Prober:
    """Climbs on a daemon thread of its own and calls *on_result* from it with each change of a rung.

    Without *backoff* (a log is followed) nothing is sent before the first ``poke()``. From then on, and with
    *backoff* from the start, a rung that is not met is tried again after 0.25 s, growing to 2 s; a ``poke()``
    tries it at once. It ends when the ladder is done or after ``stop()``.
    """

    def __init__(self, ladder: Ladder, on_result: Callable[[Probe], None], backoff: bool = True) -> None:
        self._ladder = ladder
        self._on_result = on_result
        self._backoff = backoff
        self._wake = threading.Event()
        self._done = threading.Event()
        self._latest: dict[str, Probe] = {}
        self._thread = threading.Thread(target=self._run, name="bringup-probe", daemon=True)
        #: what *on_result* raised, which ends the climb
        self.error: Exception | None = None

    def start(self) -> None:
        self._thread.start()

    def poke(self) -> None:
        """The log says something that may mean readiness: try now. Never blocks."""
        self._wake.set()

    def stop(self, timeout_s: float = 2.0) -> bool:
        """Call it off, a request in flight too. Whether the thread has ended within *timeout_s*."""
        self._ladder.cancel.set()
        self._wake.set()
        if self._thread.ident is None:
            return True
        if self._thread is not threading.current_thread():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the climb. Whether it came."""
        return self._done.wait(timeout_s)

    @property
    def results(self) -> tuple[Probe, ...]:
        """The latest of each rung tried, lowest first."""
        latest = dict(self._latest)
        return tuple(latest[rung] for rung in self._ladder.rungs if rung in latest)

    def _run(self) -> None:
        try:
            self._climb()
        except Exception as error:  # the callback is not ours: its failure must not look like silence
            self.error = error
        finally:
            self._done.set()

    def _climb(self) -> None:
        ladder, cancel = self._ladder, self._ladder.cancel
        if not self._backoff:
            self._wake.wait()
        delay = FIRST_S
        while not (ladder.done or cancel.is_set()):
            self._wake.clear()
            if cancel.is_set():
                return
            probe = ladder.step()
            if cancel.is_set():
                return
            self._publish(probe)
            unmet_and_quiet = probe.status == "waiting" and not self._wake.wait(delay)
            delay = min(delay * 2, LAST_S) if unmet_and_quiet else FIRST_S

    def _publish(self, probe: Probe) -> None:
        before = self._latest.get(probe.rung)
        self._latest[probe.rung] = probe
        if before is None or (before.status, before.why) != (probe.status, probe.why):
            self._on_result(probe)


def climb(ladder: Ladder, within_s: float, on_result: Callable[[Probe], None] | None = None) -> list[Probe]:
    """Climb *ladder* for at most about *within_s* seconds (a request in flight is called off then).

    Returns the latest Probe of each rung that was tried, lowest first; the last is ``waiting`` if time ran out.
    """
    prober = Prober(ladder, on_result or (lambda _: None))
    prober.start()
    prober.wait(within_s)
    prober.stop()
    if prober.error:
        raise prober.error
    probes = list(prober.results)
    if not (ladder.done or (probes and probes[-1].status == "waiting")):
        probes.append(ladder.unmet("no answer yet"))  # called off in flight
    return probes


def check_alive(endpoint: Endpoint, api_key: str | None = None, path: str = "/health", timeout_s: float = 5.0) -> Probe:
    """One cheap look at a server that was ready: ``ok`` or ``skipped`` is alive, ``waiting`` is no good answer.

    *path* is the engine's cheapest telling endpoint, where its health check is a costly one.
    """
    return Ladder(endpoint, api_key=api_key, upto="health", timeout_s=timeout_s, openai=False).health(path)
