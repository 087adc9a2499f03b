"""Fakes of inference servers, for the probe's tests: real sockets, invented servers.

Each reproduces what was recorded of a real one (answers, codes, order), or a fault on the wire. They are fakes:
nothing here computes anything.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass
class Seen:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float = field(default_factory=time.monotonic)


@dataclass
class Reply:
    """An answer: *pieces* are written one by one, *gap_s* apart; *cut* drops the connection after the last."""

    status: int = 200
    pieces: list[bytes] = field(default_factory=list)
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    framing: Literal["length", "chunked", "close"] = "length"
    gap_s: float = 0.0
    cut: bool = False
    reset: bool = False


Route = Callable[[Seen], "Reply | bytes | None"]


def js(body: Any, status: int = 200, **more: Any) -> Reply:
    """A JSON answer."""
    return Reply(status, [json.dumps(body).encode()], **more)


def always(reply: Reply) -> Route:
    return lambda _: reply


def sequence(*replies: Reply) -> Route:
    """One answer after another; the last one for ever."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class FakeServer:
    """Routes ``"GET /health"`` -> function. A function may return raw bytes (no HTTP) or None (never answers)."""

    def __init__(self, routes: dict[str, Route], listening: bool = True) -> None:
        self.routes = routes
        self.seen: list[Seen] = []
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._sock = socket.socket()
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._sock.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        self.port: int = self._sock.getsockname()[1]
        self._thread: threading.Thread | None = None
        if listening:
            self.listen()

    def listen(self) -> None:
        self._sock.listen(16)
        self._sock.settimeout(0.05)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        if self._thread:
            self._thread.join(5)
        self._sock.close()

    def paths(self) -> list[str]:
        """What was asked, in order: ``["GET /health", ...]``."""
        return [f"{s.method} {s.path}" for s in self.seen]

    def count(self, line: str) -> int:
        return self.paths().count(line)

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                conn, _ = self._sock.accept()
            except TimeoutError:
                continue
            conn.settimeout(5)
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn: socket.socket) -> None:
        with conn:
            try:
                seen = self._read(conn)
                if seen is None:
                    return  # a bare connection, as the port rung makes it
                with self._lock:
                    self.seen.append(seen)
                    self._now += 1
                    self.most_at_once = max(self.most_at_once, self._now)
                try:
                    self._answer(conn, seen)
                finally:
                    with self._lock:
                        self._now -= 1
            except OSError:
                pass

    def _read(self, conn: socket.socket) -> Seen | None:
        data = b""
        while b"\r\n\r\n" not in data:
            more = conn.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
        while len(body) < int(headers.get("content-length", "0")):
            body += conn.recv(65536)
        method, path, _ = lines[0].split(" ")
        return Seen(method, path, headers, json.loads(body) if body else None)

    def _answer(self, conn: socket.socket, seen: Seen) -> None:
        route = self.routes.get(f"{seen.method} {seen.path}") or self.routes.get("*")
        got = route(seen) if route else js({"detail": "Not Found"}, 404)
        if got is None:
            while not self._over.wait(0.02):
                conn.settimeout(0.02)
                try:
                    if not conn.recv(1):
                        return  # the client gave up
                except TimeoutError:
                    continue
            return
        if isinstance(got, bytes):
            conn.sendall(got)
            return
        self._write(conn, got)

    def _write(self, conn: socket.socket, reply: Reply) -> None:
        head = [f"HTTP/1.1 {reply.status} X", f"Content-Type: {reply.content_type}"]
        head += [f"{k}: {v}" for k, v in reply.headers.items()]
        if reply.framing == "chunked":
            head.append("Transfer-Encoding: chunked")
        elif reply.framing == "length":
            head.append(f"Content-Length: {sum(map(len, reply.pieces)) + (7 if reply.cut else 0)}")
        conn.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
        for piece in reply.pieces:
            if reply.gap_s and self._over.wait(reply.gap_s):
                return
            conn.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if reply.framing == "chunked" else piece)
        if reply.framing == "chunked" and not reply.cut:
            conn.sendall(b"0\r\n\r\n")
        if reply.reset:
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


@contextmanager
def serving(routes: dict[str, Route], listening: bool = True) -> Iterator[FakeServer]:
    server = FakeServer(routes, listening)
    try:
        yield server
    finally:
        server.close()


# Answers


def sse(events: Iterable[Any], done: bool = True) -> bytes:
    """Server-sent events, as the OpenAI-like servers write them."""
    lines = [f"data: {json.dumps(e, ensure_ascii=False)}\n\n" for e in events]
    return ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()


def chunk(text: str | None, key: str = "content", finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {key: text}, "finish_reason": finish}]}


def chat_stream(words: Iterable[str], usage: int | None = None, **more: Any) -> Reply:
    """A streamed chat completion, one write for each event."""
    events: list[Any] = [chunk(None), *(chunk(w) for w in words), chunk(None, finish="length")]
    if usage is not None:
        events.append({"choices": [], "usage": {"completion_tokens": usage}})
    pieces = [sse([e], done=False) for e in events] + [b"data: [DONE]\n\n"]
    options: dict[str, Any] = {"content_type": "text/event-stream", "framing": "chunked"}
    return Reply(200, pieces, **(options | more))


def chat_body(text: str | None, tokens: int | None = 8, **message: Any) -> Reply:
    """A chat completion that came whole."""
    body: dict[str, Any] = {
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text} | message, "finish_reason": "length"}
        ]
    }
    if tokens is not None:
        body["usage"] = {"completion_tokens": tokens}
    return js(body)


def text_body(text: str, tokens: int = 8) -> Reply:
    """A (plain) completion that came whole."""
    return js({"choices": [{"text": text, "index": 0}], "usage": {"completion_tokens": tokens}})


def model_list(*names: str) -> Reply:
    return js({"object": "list", "data": [{"id": n, "object": "model"} for n in names]})


HELLO = ["Hello", "!", " How", " can", " I", " help", " you", "?"]
LOADING = js({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}, 503)
HTML = Reply(200, [b"<!doctype html><title>Router</title>"], "text/html; charset=utf-8", {"Server": "lighttpd/1.4"})
CHAT, PLAIN, EMBED = "POST /v1/chat/completions", "POST /v1/completions", "POST /v1/embeddings"


def openai(**routes: Route) -> dict[str, Route]:
    """A server that is ready and answers; *routes* (health, models, chat, plain, embed) replace parts of it."""
    names = {"health": "GET /health", "models": "GET /v1/models", "chat": CHAT, "plain": PLAIN, "embed": EMBED}
    made: dict[str, Route] = {
        "GET /health": always(js({"status": "ok"})),
        "GET /v1/models": always(model_list("tiny")),
        CHAT: always(chat_stream(HELLO, usage=8)),
    }
    return made | {names[k]: v for k, v in routes.items()}


# Servers, after the recordings


def llama_cpp(polls: int = 2) -> dict[str, Route]:
    """503 with a message on every path while loading (for *polls* questions), then ready."""
    ready = openai()
    listed = {"name": "tiny", "model": "tiny", "capabilities": ["completion"]}
    ready["GET /v1/models"] = always(
        js({"models": [listed], "object": "list", "data": [{"id": "tiny", "aliases": ["tiny"]}]})
    )
    left = [polls]

    def gate(route: Route) -> Route:
        def answer(seen: Seen) -> Reply | bytes | None:
            if left[0] > 0:
                left[0] -= 1
                return LOADING
            return route(seen)

        return answer

    return {path: gate(route) for path, route in ready.items()}


def vllm() -> dict[str, Route]:
    """Health has an empty body; usage comes in the last event. Start it with listening=False: it refuses first."""
    return openai(health=always(Reply(200, [], "text/plain")))


def sglang(polls: int = 2) -> dict[str, Route]:
    """Health 503 while it starts, although the model list answers 200 already."""
    starting = [Reply(503, [], "text/plain")] * polls
    return openai(health=sequence(*starting, Reply(200, [], "text/plain")))


def keyed(key: str, health_too: bool = False) -> dict[str, Route]:
    """Every path wants the key, except those that begin with /health (unless *health_too*)."""

    def lock(route: Route) -> Route:
        def answer(seen: Seen) -> Reply | bytes | None:
            given = seen.headers.get("authorization", "")
            if given == f"Bearer {key}":
                return route(seen)
            told = f"Invalid API Key: {given.removeprefix('Bearer ')}"
            return js({"error": {"message": told, "type": "authentication_error", "code": 401}}, 401)

        return answer

    routes = openai()
    return {p: route if p == "GET /health" and not health_too else lock(route) for p, route in routes.items()}


def transformers_empty() -> dict[str, Route]:
    """``transformers serve`` without a model: healthy, with nothing loaded; a bad model is a plain 500."""
    failure = Reply(500, [b"Internal Server Error"], "text/plain")
    return openai(models=always(js({"object": "list", "data": []})), chat=always(failure))


def slow_loris(seen: Seen) -> Reply:
    """A byte at a time, for ever or nearly so."""
    return Reply(200, [b" "] * 2000, gap_s=0.02)


def wait_for(condition: Callable[[], bool], within_s: float = 10.0) -> None:
    """Wait until *condition* holds. Raises AssertionError at the deadline."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
