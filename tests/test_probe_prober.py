"""The prober: when it asks, how often, what it tells; and the whole ladder against the real default engine."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bringup.engines.llamacpp.embedded import ALIAS, Embedded, ensure, free_port
from bringup.facts import Probe
from bringup.probe import Endpoint, Ladder, Prober, check_alive, climb
from tests.fakes import http_servers as fake
from tests.fakes.http_servers import CHAT, FakeServer, always, openai, sequence, serving, wait_for

CACHE = Path(os.environ.get("BRINGUP_TEST_ENGINES") or Path.home() / ".cache" / "bringup-test-engines")


@pytest.fixture
def told() -> list[Probe]:
    return []


@pytest.fixture
def probers() -> Iterator[list[Prober]]:
    """Probers put here are stopped at the end."""
    made: list[Prober] = []
    yield made
    for prober in made:
        assert prober.stop(5)


def make(server: FakeServer, told: list[Probe], probers: list[Prober], backoff: bool = True, **more: Any) -> Prober:
    ladder = Ladder(Endpoint("127.0.0.1", server.port), **({"timeout_s": 5.0} | more))
    prober = Prober(ladder, told.append, backoff=backoff)
    probers.append(prober)
    prober.start()
    return prober


def test_without_backoff_nothing_is_sent_before_the_log_spoke(told: list[Probe], probers: list[Prober]) -> None:
    with serving(openai()) as server:
        prober = make(server, told, probers, backoff=False)
        assert not prober.wait(0.3)
        assert server.seen == []
        prober.poke()
        assert prober.wait(10)
        assert [p.rung for p in told] == ["port", "health", "models", "completion"]


def test_poke_before_start_counts(told: list[Probe]) -> None:
    with serving(openai()) as server:
        prober = Prober(Ladder(Endpoint("127.0.0.1", server.port)), told.append, backoff=False)
        prober.poke()
        prober.start()
        assert prober.wait(10)


def test_after_one_poke_it_goes_on_by_itself(told: list[Probe], probers: list[Prober]) -> None:
    """`Application startup complete` may be the last line before a warm-up that says nothing."""
    with serving(fake.sglang(polls=2)) as server:
        prober = make(server, told, probers, backoff=False)
        prober.poke()
        assert prober.wait(10)
        assert told[-1].status == "ok"


def test_poke_tries_at_once(told: list[Probe], probers: list[Prober]) -> None:
    ready = threading.Event()
    routes = openai(health=lambda _: fake.js({}) if ready.is_set() else fake.LOADING)
    with serving(routes) as server:
        prober = make(server, told, probers)
        wait_for(lambda: server.count("GET /health") == 4)  # the next try would come after 2 s
        ready.set()
        started = time.monotonic()
        prober.poke()
        assert prober.wait(10)
        assert time.monotonic() - started < 1


def test_backoff_grows(told: list[Probe], probers: list[Prober]) -> None:
    with serving(openai(health=always(fake.LOADING))) as server:
        make(server, told, probers)
        wait_for(lambda: server.count("GET /health") == 4)
        times = [s.at for s in server.seen]
        gaps = [b - a for a, b in pairwise(times)]
        assert all(gap >= least for gap, least in zip(gaps, (0.24, 0.49, 0.99), strict=True))


def test_only_changes_are_told(told: list[Probe], probers: list[Prober]) -> None:
    loading, broken = fake.LOADING, fake.js({"detail": "no"}, 500)
    with serving(openai(health=sequence(loading, loading, broken, fake.js({})))) as server:
        prober = make(server, told, probers)
        assert prober.wait(15)
        assert [(p.rung, p.status) for p in told] == [
            ("port", "ok"),
            ("health", "waiting"),
            ("health", "waiting"),
            ("health", "ok"),
            ("models", "ok"),
            ("completion", "ok"),
        ]
        assert [p.why for p in told[1:3]] == ["Loading model", "500 no"]
        assert [p.rung for p in prober.results] == ["port", "health", "models", "completion"]


def test_pokes_never_make_two_requests_at_once(told: list[Probe], probers: list[Prober]) -> None:
    slow = fake.chat_stream(fake.HELLO, usage=8, gap_s=0.05)
    with serving(openai(chat=always(slow))) as server:
        prober = make(server, told, probers)
        while not prober.wait(0.01):
            prober.poke()
        assert server.most_at_once == 1
        assert server.count(CHAT) == 1


def test_stop_calls_off_a_request_in_flight(told: list[Probe], probers: list[Prober]) -> None:
    with serving(openai(chat=lambda _: None)) as server:
        prober = make(server, told, probers, timeout_s=60)
        wait_for(lambda: server.count(CHAT) == 1)
        started = time.monotonic()
        assert prober.stop(5)
        assert time.monotonic() - started < 1
        assert [p.rung for p in told] == ["port", "health", "models"]  # nothing is told of what was called off


@pytest.mark.parametrize("backoff", [True, False])
def test_stop_while_waiting_and_before_the_start(told: list[Probe], backoff: bool) -> None:
    with serving({}, listening=False) as server:
        ladder = Ladder(Endpoint("127.0.0.1", server.port))
        assert Prober(ladder, told.append).stop()
        prober = Prober(Ladder(Endpoint("127.0.0.1", server.port)), told.append, backoff=backoff)
        prober.start()
        assert prober.stop(5)
        assert prober.wait(0)


def test_stop_from_the_callback() -> None:
    with serving(openai()) as server:
        told: list[Probe] = []

        def once(probe: Probe) -> None:
            told.append(probe)
            prober.stop()

        prober = Prober(Ladder(Endpoint("127.0.0.1", server.port)), once)
        prober.start()
        assert prober.wait(10)
        assert len(told) == 1


def test_callback_that_raises_ends_the_climb_and_is_kept() -> None:
    def fail(_: Probe) -> None:
        raise KeyError("mine")

    with serving(openai()) as server:
        prober = Prober(Ladder(Endpoint("127.0.0.1", server.port)), fail)
        prober.start()
        assert prober.wait(10)
        assert isinstance(prober.error, KeyError)
        with pytest.raises(KeyError):
            climb(Ladder(Endpoint("127.0.0.1", server.port)), 10, fail)


def test_climb_ends_in_time() -> None:
    with serving({"*": lambda _: None}) as server:
        started = time.monotonic()
        probes = climb(Ladder(Endpoint("127.0.0.1", server.port), timeout_s=60), 0.3)
        assert time.monotonic() - started < 2
        assert [(p.rung, p.status) for p in probes] == [("port", "ok"), ("health", "waiting")]


# The real thing


@pytest.fixture(scope="module")
def engine() -> Embedded:
    return ensure(CACHE, lambda _: None)


@pytest.mark.parametrize(
    ("more", "key", "task", "kind"),
    [
        ([], None, None, "chat"),
        (["--api-key", "sesame-open"], "sesame-open", "completion", "completion"),
        (["--embeddings"], None, "embedding", "embedding"),
    ],
)
def test_real_engine_climbs_the_whole_ladder(
    engine: Embedded, tmp_path: Path, more: list[str], key: str | None, task: str | None, kind: str
) -> None:
    port, _ = free_port()
    endpoint = Endpoint("127.0.0.1", port)
    with (tmp_path / "log").open("wb") as log:
        proc = subprocess.Popen([*engine.argv(port), *more], stdout=log, stderr=log)
    try:
        probes = climb(Ladder(endpoint, task=task, model=ALIAS, api_key=key), 60)
        assert [(p.rung, p.status, p.why) for p in probes] == [
            (rung, "ok", None) for rung in ("port", "health", "models", "completion")
        ]
        data = probes[-1].data
        assert data["kind"] == kind
        if kind == "embedding":
            assert data["text"] == "576 dimensions"
        else:
            assert data["text"].strip()
            assert 1 <= data["tokens"] <= 16
            assert data["counted"] == "usage"
            assert 0 < data["ttft_s"] < 30
            assert data["tokens_per_s"] > 0
        assert check_alive(endpoint, key).status == "ok"
    finally:
        proc.terminate()
        assert proc.wait(20) == 0
    assert check_alive(endpoint).status == "waiting"
