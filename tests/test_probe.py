"""The readiness ladder against fakes of real servers and of broken ones."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest

from bringup.facts import Probe
from bringup.probe import Endpoint, Ladder, check_alive, climb
from tests.fakes import http_servers as fake
from tests.fakes.http_servers import CHAT, HELLO, FakeServer, Reply, Seen, always, js, openai, sequence, serving


def ladder(server: FakeServer, **more: Any) -> Ladder:
    return Ladder(Endpoint("127.0.0.1", server.port), **({"timeout_s": 5.0} | more))


def climbed(routes: dict[str, fake.Route], within_s: float = 10.0, **more: Any) -> dict[str, Probe]:
    with serving(routes) as server:
        return {p.rung: p for p in climb(ladder(server, **more), within_s)}


def completion(routes: dict[str, fake.Route], **more: Any) -> Probe:
    return climbed(routes, **more)["completion"]


# Ready


def test_every_rung_of_a_ready_server() -> None:
    ticks = iter(range(1, 100))
    with serving(openai()) as server:
        probes = climb(ladder(server, model="tiny", clock=lambda: float(next(ticks))), 10)
        assert [(p.rung, p.status) for p in probes] == [
            ("port", "ok"),
            ("health", "ok"),
            ("models", "ok"),
            ("completion", "ok"),
        ]
        assert [p.at_s for p in probes] == sorted(p.at_s or 0 for p in probes)
        assert probes[2].data["served"] == ["tiny"]
        data = probes[3].data
        assert data["text"] == "".join(HELLO)
        assert (data["kind"], data["tokens"], data["counted"]) == ("chat", 8, "usage")
        assert data["ttft_s"] >= 0
        assert data["tokens_per_s"] > 0
        assert server.paths() == ["GET /health", "GET /v1/models", CHAT]
        assert all(s.headers["user-agent"].startswith("bringup/") for s in server.seen)
        assert server.seen[2].body["model"] == "tiny"


@pytest.mark.parametrize(
    ("upto", "rungs"),
    [("none", []), ("port", ["port"]), ("health", ["port", "health"]), ("models", ["port", "health", "models"])],
)
def test_stops_at_the_rung_asked_for(upto: Any, rungs: list[str]) -> None:
    with serving(openai()) as server:
        assert [p.rung for p in climb(ladder(server, upto=upto), 10)] == rungs
        assert not server.count(CHAT)


def test_speed_is_measured_between_the_tokens() -> None:
    data = completion(openai(chat=always(fake.chat_stream(HELLO, usage=8, gap_s=0.02)))).data
    assert data["ttft_s"] > 0.02
    assert 0 < data["tokens_per_s"] < 55


def test_without_usage_chunks_are_counted_and_it_is_said() -> None:
    data = completion(openai(chat=always(fake.chat_stream(HELLO)))).data
    assert (data["tokens"], data["counted"]) == (8, "chunks")


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_alone_is_an_answer(key: str) -> None:
    events = [fake.chunk("Hm, ", key), fake.chunk("so", key)]
    reply = Reply(200, [fake.sse(events)], "text/event-stream")
    assert completion(openai(chat=always(reply))).data["text"] == "Hm, so"


# While it starts


def test_llama_cpp_says_that_it_loads_then_is_ready() -> None:
    with serving(fake.llama_cpp(polls=2)) as server:
        rungs = ladder(server)
        assert rungs.step().status == "ok"
        loading = rungs.step()
        assert (loading.rung, loading.status, loading.why) == ("health", "waiting", "Loading model")
        assert {p.rung: p.status for p in climb(rungs, 10)}["completion"] == "ok"
        assert server.count("GET /v1/models") == 1  # not while health was unmet


def test_vllm_refuses_then_is_ready_with_an_empty_health_body() -> None:
    with serving(fake.vllm(), listening=False) as server:
        rungs = ladder(server)
        refused = rungs.step()
        assert (refused.rung, refused.status) == ("port", "waiting")
        assert "nothing listens" in (refused.why or "")
        server.listen()
        assert climb(rungs, 10)[-1].data["kind"] == "chat"


def test_sglang_model_list_while_starting_is_not_readiness() -> None:
    with serving(fake.sglang(polls=2)) as server:
        assert climb(ladder(server), 10)[-1].rung == "completion"
        assert server.paths() == ["GET /health"] * 3 + ["GET /v1/models", CHAT]


def test_met_health_is_not_asked_again() -> None:
    """An SGLang health check costs a generated token."""
    empty = fake.model_list()
    with serving(openai(models=sequence(empty, empty, fake.model_list("tiny")))) as server:
        assert climb(ladder(server), 10)[-1].status == "ok"
        assert server.count("GET /health") == 1


def test_nothing_loaded_is_not_ready() -> None:
    probes = climbed(fake.transformers_empty(), within_s=0.6)
    assert "completion" not in probes
    assert probes["health"].status == "ok"
    assert probes["models"].status == "waiting"
    assert "nothing is loaded" in (probes["models"].why or "")


def test_lazy_server_is_asked_for_its_model_and_caught() -> None:
    probe = completion(fake.transformers_empty(), lazy=True, model="/models/nope")
    assert probe.status == "failed"
    assert probe.data["class"] == "warmup-failure"
    assert "500 Internal Server Error" in (probe.why or "")


def test_lazy_server_without_a_model_name_is_skipped() -> None:
    assert completion(fake.transformers_empty(), lazy=True).status == "skipped"


@pytest.mark.parametrize("status", [404, 405, 501])
def test_server_without_health_is_asked_the_next_question(status: int) -> None:
    probes = climbed(openai(health=always(js({"detail": "Not Found"}, status))))
    assert (probes["health"].status, probes["completion"].status) == ("skipped", "ok")


@pytest.mark.parametrize("status", [500, 502, 504, 429])
def test_health_errors_are_waited_out(status: int) -> None:
    probes = climbed(openai(health=sequence(js({"detail": "no"}, status), js({}))))
    assert probes["completion"].status == "ok"


def test_other_model_than_asked_for_is_said_and_the_served_one_used() -> None:
    with serving(openai()) as server:
        probes = {p.rung: p for p in climb(ladder(server, model="big"), 10)}
        assert probes["models"].status == "ok"
        assert "big is not among the models served: tiny" in (probes["models"].why or "")
        assert server.seen[-1].body["model"] == "tiny"


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        ("/models/Qwen3-0.6B/", "Qwen3-0.6B"),
        ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B@main"),
        ("/models/m.gguf", "/models/m.gguf"),
    ],
)
def test_the_same_model_in_other_words(asked: str, served: str) -> None:
    with serving(openai(models=always(fake.model_list("first", served)))) as server:
        probes = {p.rung: p for p in climb(ladder(server, model=asked), 10)}
        assert probes["models"].why is None
        assert server.seen[-1].body["model"] == served


# Keys


def test_key_is_sent() -> None:
    assert completion(fake.keyed("sesame-open", health_too=True), api_key="sesame-open").status == "ok"


def test_unknown_key_is_skipped_and_said() -> None:
    with serving(fake.keyed("sesame-open")) as server:
        probes = {p.rung: p for p in climb(ladder(server), 10)}
        assert probes["health"].status == "ok"
        assert (probes["models"].status, probes["completion"].status) == ("skipped", "skipped")
        assert "--api-key-env" in (probes["models"].why or "")
        assert not server.count(CHAT)


def test_keyed_health_proves_that_the_server_is_up() -> None:
    probe = climbed(fake.keyed("sesame-open", health_too=True))["health"]
    assert probe.status == "skipped"
    assert "is up" in (probe.why or "")


@pytest.mark.parametrize("key", ["sk-not-the-right-one-123", "abc", "k(y.*"])
def test_refused_key_fails_and_is_never_shown(key: str) -> None:
    probes = climbed(fake.keyed("sesame-open"), api_key=key)
    assert probes["models"].status == "failed"
    assert key not in repr(probes)


@pytest.mark.parametrize("key", ["sesame-open", "k1"])
def test_key_in_an_error_text_is_masked(key: str) -> None:
    echo = js({"error": {"message": f"bad token {key} given"}}, 500)
    probe = completion(openai(chat=always(echo)), api_key=key)
    assert probe.status == "failed"
    assert key not in repr(probe)
    assert "bad token [redacted] given" in repr(probe)


def test_key_that_no_header_can_carry() -> None:
    probes = climbed(openai(), within_s=0.3, api_key="open\nsesame")
    assert "no header can carry" in (probes["health"].why or "")
    assert "sesame" not in repr(probes)


# The request that fits


def test_chat_refused_then_completion() -> None:
    no_template = js({"error": {"message": "Cannot use chat template", "code": 400}}, 400)
    probe = completion(openai(chat=always(no_template), plain=always(fake.text_body(", world"))))
    assert (probe.status, probe.data["kind"], probe.data["text"]) == ("ok", "completion", ", world")


def test_chat_that_breaks_on_its_template_is_no_server_error() -> None:
    broken = js({"error": {"message": "does not match the expected peg-native format"}}, 500)
    probe = completion(openai(chat=always(broken), plain=always(fake.text_body("x y"))))
    assert (probe.status, probe.data["kind"]) == ("ok", "completion")


def embeddings(values: list[Any]) -> Reply:
    return js({"object": "list", "data": [{"embedding": values, "index": 0}]})


@pytest.mark.parametrize("task", [None, "chat", "embedding"])
def test_embedding_server_gets_the_request_that_fits(task: str | None) -> None:
    refuse = js({"error": {"message": "The model does not support Chat Completions API"}}, 400)
    routes = openai(chat=always(refuse), plain=always(refuse), embed=always(embeddings([0.1, -0.2])))
    with serving(routes) as server:
        probe = climb(ladder(server, task=task), 10)[-1]
        assert (probe.status, probe.data["kind"], probe.data["text"]) == ("ok", "embedding", "2 dimensions")
        assert server.count(CHAT) == (0 if task == "embedding" else 1)


def test_capabilities_are_believed() -> None:
    listed = js({"models": [{"name": "e", "capabilities": ["embedding"]}], "data": [{"id": "e"}]})
    with serving(openai(models=always(listed), embed=always(embeddings([1.0])))) as server:
        assert climb(ladder(server), 10)[-1].data["kind"] == "embedding"
        assert not server.count(CHAT)


@pytest.mark.parametrize("values", [[0.0, 0.0], [float("nan"), 1.0], [None, 1.0], [], ["a"]])
def test_embedding_that_is_none(values: list[Any]) -> None:
    probe = completion(openai(embed=always(embeddings(values))), task="embedding")
    assert probe.status == "failed"


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/v1/rerank", {"results": [{"index": 0, "relevance_score": 0.9}]}),
        ("/rerank", [{"index": 0, "score": 0.9}]),
        ("/score", {"data": [{"index": 0, "score": 0.5}]}),
    ],
)
def test_reranker_on_any_of_its_paths(path: str, answer: Any) -> None:
    routes = openai()
    del routes[CHAT]
    routes[f"POST {path}"] = always(js(answer))
    for task in ("rerank", None):
        probe = completion(routes, task=task)
        assert (probe.status, probe.data["kind"]) == ("ok", "rerank")


def test_server_that_takes_no_request_fails_with_its_own_words() -> None:
    refuse = js({"error": {"message": "The model `tiny` is asleep"}}, 400)
    probe = completion(openai(chat=always(refuse)))
    assert probe.status == "failed"
    assert "The model `tiny` is asleep" in (probe.why or "")


def test_generic_server_without_any_api_is_skipped() -> None:
    probes = climbed({"*": always(Reply(404, [b"nope"], "text/plain"))}, openai=False)
    assert [p.status for p in probes.values()] == ["ok", "skipped", "skipped", "skipped"]


def test_non_streaming_server() -> None:
    data = completion(openai(chat=always(fake.chat_body("Hello there", 3)))).data
    assert (data["text"], data["tokens"], data["counted"]) == ("Hello there", 3, "usage")
    assert "ttft_s" not in data


def test_streaming_refused_is_asked_again_without() -> None:
    def chat(seen: Seen) -> Reply:
        if seen.body.get("stream"):
            return js({"error": {"message": "stream_options is not supported"}}, 400)
        return fake.chat_body("Hello there")

    assert completion(openai(chat=chat)).data["text"] == "Hello there"


# Failing answers


def test_one_5xx_is_given_a_second_chance_two_are_a_failed_warmup() -> None:
    broken = js({"error": {"message": "EngineCore encountered an issue", "code": 500}}, 500)
    with serving(openai(chat=sequence(broken, fake.chat_stream(HELLO)))) as server:
        assert climb(ladder(server), 10)[-1].status == "ok"
        assert server.paths()[-4:] == ["GET /v1/models", CHAT, "GET /v1/models", CHAT]
    with serving(openai(chat=always(broken))) as server:
        probe = climb(ladder(server), 10)[-1]
        assert (probe.status, probe.data["class"], probe.data["status"]) == ("failed", "warmup-failure", 500)
        assert "EngineCore encountered an issue" in probe.data["body"]
        assert server.count(CHAT) == 2


def test_long_error_bodies_are_cut_and_made_safe() -> None:
    body = b"\x1b[31mboom\x07 " + b"x" * 100_000
    probe = completion(openai(chat=always(Reply(500, [body], "text/plain"))))
    assert len(probe.data["body"]) <= 300
    assert len(probe.why or "") <= 300
    assert "\x1b" not in repr(probe.data["body"] + (probe.why or ""))


def test_error_inside_a_stream_counts_as_the_error_it_is() -> None:
    events = [fake.chunk("Hel"), {"error": {"message": "CUDA error", "code": 500}}]
    probe = completion(openai(chat=always(Reply(200, [fake.sse(events)], "text/event-stream"))))
    assert (probe.status, probe.data["class"]) == ("failed", "warmup-failure")
    assert "CUDA error" in (probe.why or "")


def test_busy_at_first_is_no_failure() -> None:
    replies = [fake.LOADING, fake.LOADING, fake.LOADING, fake.chat_stream(HELLO)]
    assert completion(openai(chat=sequence(*replies))).status == "ok"


@pytest.mark.parametrize("status", [402, 409, 413])
def test_other_refusals_are_final(status: int) -> None:
    assert completion(openai(chat=always(js({"detail": "no"}, status)))).status == "failed"


# Sense


@pytest.mark.parametrize(
    "text", ["!!!!!!!!!!!!!!!!", "G" * 16, "\ufffd" * 8, "\0\0\0", "", " \n \n \n \n \n \n \n \n "]
)
def test_nonsense_twice_is_not_sane(text: str) -> None:
    with serving(openai(chat=always(fake.chat_body(text)))) as server:
        probe = climb(ladder(server), 10)[-1]
        assert probe.status == "failed"
        assert "text is not sane" in (probe.why or "")
        first, second = [s.body for s in server.seen if s.path == "/v1/chat/completions"]
        assert first["messages"] != second["messages"]


@pytest.mark.parametrize(
    ("first", "second"),
    [("", "� tinyizer�\x14v"), ("���", "7\\^��"), ("66666666", "aaaaaaaa"), ("!!!!!!!!", "the sea")],
)
def test_tiny_random_models_are_accepted(first: str, second: str) -> None:
    """As recorded of random test checkpoints: empty text (all tokens special), undecodable bytes, loops."""
    probe = completion(openai(chat=sequence(fake.chat_body(first), fake.chat_body(second))))
    assert probe.status == "ok"
    assert probe.why


@pytest.mark.parametrize("text", ["�the666666", "&\x05�gh^ br", "!", "ああ", "x"])
def test_strange_text_is_sane_at_once(text: str) -> None:
    with serving(openai(chat=always(fake.chat_body(text)))) as server:
        assert climb(ladder(server), 10)[-1].status == "ok"
        assert server.count(CHAT) == 1


@pytest.mark.parametrize("body", [{}, [], {"choices": []}, {"choices": "x"}, {"object": "error"}])
def test_answer_without_choices(body: Any) -> None:
    assert completion(openai(chat=always(js(body)))).status == "failed"


# The wire


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_stream_torn_inside_characters(step: int) -> None:
    whole = fake.sse([fake.chunk("Grüße, "), fake.chunk("世界 "), fake.chunk("🌊")])
    pieces = [whole[i : i + step] for i in range(0, len(whole), step)]
    for framing in ("chunked", "close", "length"):
        reply = Reply(200, pieces, "text/event-stream", framing=framing)  # type: ignore[arg-type]
        assert completion(openai(chat=always(reply))).data["text"] == "Grüße, 世界 🌊"


def test_stream_with_crlf_comments_and_no_done() -> None:
    body = (
        b": ping\r\n\r\nevent: x\r\ndata:"
        + json.dumps(fake.chunk("Hi all")).encode()
        + b"\r\n\r\ndata: {broken\r\n\r\n"
    )
    reply = Reply(200, [body], "text/event-stream", framing="chunked")
    assert completion(openai(chat=always(reply))).data["text"] == "Hi all"


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("reset", [False, True])
def test_connection_lost_in_the_middle(framing: Any, reset: bool) -> None:
    torn = Reply(200, [fake.sse([fake.chunk("Hel")], done=False)], "text/event-stream", framing=framing)
    torn.cut, torn.reset = True, reset
    with serving(openai(chat=sequence(torn, fake.chat_stream(HELLO)))) as server:
        rungs = ladder(server)
        probes = [rungs.step() for _ in range(4)]
        assert probes[3].status == "waiting"
        assert "connection closed" in (probes[3].why or "")
        assert climb(rungs, 10)[-1].status == "ok"


def test_connection_lost_each_time_is_a_failure_in_the_end() -> None:
    with serving(openai(chat=lambda _: b"")) as server:
        assert climb(ladder(server), 20)[-1].status == "failed"
        assert server.count(CHAT) == 3


def test_server_that_dies_at_the_first_request() -> None:
    """What is left is a refused connection: waiting, for whoever watches the process to judge."""
    server = FakeServer(openai(chat=lambda _: b""))
    rungs = ladder(server)
    for _ in range(4):
        rungs.step()
    server.close()
    probe = rungs.step()
    assert (probe.rung, probe.status) == ("models", "waiting")
    assert not rungs.done


def test_server_that_never_answers() -> None:
    with serving({"*": lambda _: None}) as server:
        started = time.monotonic()
        rungs = ladder(server, timeout_s=0.2)
        rungs.step()
        probe = rungs.step()
        assert (probe.rung, probe.status) == ("health", "waiting")
        assert time.monotonic() - started < 3


def test_completion_that_never_comes_fails_at_the_second_timeout() -> None:
    with serving(openai(chat=lambda _: None)) as server:
        probe = climb(ladder(server, timeout_s=0.2), 20)[-1]
        assert (probe.rung, probe.status) == ("completion", "failed")
        assert "within 0.2 s" in (probe.why or "")
        assert server.count(CHAT) == 2
        assert server.most_at_once == 1


@pytest.mark.parametrize("where", ["GET /health", "GET /v1/models", CHAT])
def test_slow_loris_is_held_to_the_deadline(where: str) -> None:
    with serving(openai() | {where: fake.slow_loris}) as server:
        started = time.monotonic()
        rungs = ladder(server, timeout_s=0.3)
        probe = rungs.step()
        while probe.status == "ok":
            probe = rungs.step()
        assert probe.status == "waiting"
        assert time.monotonic() - started < 3


def test_slow_headers_are_held_to_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # Accepted by the kernel and never read: the connection is there and nothing comes.
        rungs = Ladder(Endpoint("127.0.0.1", listener.getsockname()[1]), timeout_s=0.2)
        assert rungs.step().status == "ok"
        assert rungs.step().status == "waiting"


def test_slow_model_that_began_to_speak_has_answered() -> None:
    slow = fake.chat_stream(["word "] * 200, gap_s=0.05)
    probe = completion(openai(chat=always(slow)), timeout_s=0.6)
    assert probe.status == "ok"
    assert "slow" in (probe.why or "")
    assert probe.data["tokens_per_s"] < 40


def test_huge_answer_is_not_swallowed() -> None:
    huge = Reply(200, [b"x" * 1_000_000] * 10)
    probe = climbed(openai(models=always(huge)))["models"]
    assert probe.status == "failed"
    assert "very long answer" in (probe.why or "")


@pytest.mark.parametrize("body", [b"{", b"", b"\xff\xfe", b"null", b"[1]", b'{"a": 1}', b"[" * 100_000])
def test_model_list_that_is_none(body: bytes) -> None:
    probe = climbed(openai(models=always(Reply(200, [body]))))["models"]
    assert probe.status == "failed"
    assert "something else answers there" in (probe.why or "")


def test_page_of_a_foreign_server_is_said() -> None:
    probe = climbed({"*": always(fake.HTML)})["health"]
    assert probe.status == "failed"
    assert probe.why == "something else answers there: text/html from lighttpd/1.4 (200)"


def test_foreign_404_pages_are_said() -> None:
    page = Reply(404, [b"<html><head>nope"], "text/html")
    probes = climbed({"*": always(page)})
    assert (probes["health"].status, probes["models"].status) == ("skipped", "failed")
    assert "something else answers there" in (probes["models"].why or "")


def test_redirect_is_not_followed() -> None:
    away = Reply(302, [], headers={"Location": "https://login.example/"})
    with serving({"*": always(away)}) as server:
        probes = {p.rung: p for p in climb(ladder(server), 10)}
        assert probes["health"].status == "skipped"
        assert probes["models"].status == "failed"
        assert "a redirect to https://login.example/" in (probes["models"].why or "")
        assert server.paths() == ["GET /health", "GET /v1/models"]


def test_what_speaks_no_http_is_said() -> None:
    probe = climbed({"*": lambda _: b"SSH-2.0-OpenSSH_9.6\r\n"})["health"]
    assert probe.status == "failed"
    assert "something else answers there: 'SSH-2.0-OpenSSH_9.6" in (probe.why or "")


def test_tls_asked_of_a_plain_server_is_said() -> None:
    with serving(openai()) as server:
        rungs = Ladder(Endpoint("127.0.0.1", server.port, "https"), timeout_s=2)
        rungs.step()
        assert rungs.step().status != "ok"


def test_host_that_is_not_known() -> None:
    probe = Ladder(Endpoint("no-such-host.invalid", 1), timeout_s=2).step()
    assert probe.status == "waiting"
    assert "cannot reach" in (probe.why or "")


# A look at a server that was ready


def test_alive() -> None:
    with serving(openai()) as server:
        endpoint = Endpoint("127.0.0.1", server.port)
        assert check_alive(endpoint).status == "ok"
        assert check_alive(endpoint, path="/v1/models").status == "ok"
        assert server.paths() == ["GET /health", "GET /v1/models"]
    assert check_alive(endpoint).status == "waiting"


# Where to knock


@pytest.mark.parametrize(
    ("host", "first", "url"),
    [
        ("0.0.0.0", "127.0.0.1", "http://127.0.0.1:80"),
        ("", "127.0.0.1", "http://127.0.0.1:80"),
        ("::", "::1", "http://[::1]:80"),
        ("[::]", "::1", "http://[::1]:80"),
        ("[fe80::1]", "fe80::1", "http://[fe80::1]:80"),
        ("localhost", "localhost", "http://localhost:80"),
        ("10.0.0.1", "10.0.0.1", "http://10.0.0.1:80"),
    ],
)
def test_where_to_connect(host: str, first: str, url: str) -> None:
    endpoint = Endpoint(host, 80)
    assert endpoint.connect_hosts[0] == first
    assert endpoint.url == url


def test_any_ipv6_address_falls_back_to_ipv4() -> None:
    with serving(openai()) as server:
        assert Ladder(Endpoint("::", server.port)).step().status == "ok"


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://127.0.0.1:8211", Endpoint("127.0.0.1", 8211)),
        ("https://[::1]:8443/v1", Endpoint("::1", 8443, "https")),
        ("http://host", Endpoint("host", 80)),
        ("http://host:99999", None),
        ("unix:/tmp/x.sock", None),
        ("nonsense", None),
    ],
)
def test_endpoint_from_a_url(url: str, endpoint: Endpoint | None) -> None:
    assert Endpoint.parse(url) == endpoint
