"""One HTTP request on one connection, within one deadline.

http.client's own timeout is for each read: a server that sends a byte a second would hold it for ever. Here the
deadline is for the whole exchange, and another thread can call it off.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bringup.probe.endpoint import Endpoint

Kind = Literal["refused", "closed", "timeout", "not-http", "unreachable", "cancelled"]
#: how often a read looks up from its socket to see whether it was called off, seconds
_SLICE_S = 0.1
#: bytes; no answer that a probe asks for is larger
LIMIT = 4 << 20


class NoAnswer(Exception):  # noqa: N818 (it is an outcome, and usual while a server starts)
    """There was no whole HTTP answer."""

    def __init__(self, kind: Kind, why: str) -> None:
        super().__init__(why)
        self.kind = kind
        self.why = why


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; ``headers`` have lower-case names, ``body`` is cut at LIMIT (then ``cut``)."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body parsed; None if it is no JSON."""
        try:
            return None if self.cut else json.loads(self.body)
        except (ValueError, RecursionError):
            return None


class _Raw(io.RawIOBase):
    """Reads from a socket until a deadline or a cancellation."""

    def __init__(self, sock: socket.socket, deadline: float, cancel: threading.Event) -> None:
        self._sock, self._deadline, self._cancel = sock, deadline, cancel

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._cancel.is_set():
                raise NoAnswer("cancelled", "stopped")
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._sock.settimeout(min(left, _SLICE_S))
            try:
                return self._sock.recv_into(buffer)
            except TimeoutError:
                continue


class _Wire:
    """What http.client needs of a socket. Closing is left to whoever opened it: answers outlive connections."""

    def __init__(self, sock: socket.socket, raw: _Raw) -> None:
        self._sock, self._raw = sock, raw

    def sendall(self, data: bytes) -> None:
        self._sock.sendall(data)

    def makefile(self, *_: object) -> io.BufferedReader:
        return io.BufferedReader(self._raw)

    def close(self) -> None:
        return None


class Live:
    """An answer whose body is still coming."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self._left = response.length  # of its own: read1 does not count it down in every Python
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        #: whether the end of the body can be told from a lost connection
        self.framed = bool(response.chunked) or self._left is not None

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes. Raises NoAnswer if the connection ends first."""
        while self._left != 0:
            with _told():
                data = self._response.read1(65536)
            if not data:
                if self._left:
                    raise NoAnswer("closed", "connection closed")
                return
            if self._left is not None:
                self._left -= len(data)
            yield data

    def whole(self) -> Answer:
        """The rest of the body, up to LIMIT bytes."""
        parts: list[bytes] = []
        size = 0
        for data in self.chunks():
            parts.append(data)
            size += len(data)
            if size > LIMIT:
                return Answer(self.status, self.headers, b"".join(parts)[:LIMIT], cut=True)
        return Answer(self.status, self.headers, b"".join(parts))


@contextlib.contextmanager
def request(
    endpoint: Endpoint,
    method: str,
    path: str,
    *,
    headers: Mapping[str, str],
    timeout_s: float,
    cancel: threading.Event,
    body: Any = None,
) -> Iterator[Live]:
    """Send one request (*body* as JSON) and yield its answer once the headers are there. Raises NoAnswer."""
    deadline = time.monotonic() + timeout_s
    data = None if body is None else json.dumps(body).encode()
    head = {**headers, "Connection": "close", "Accept": "application/json, text/event-stream, */*"}
    if data is not None:
        head["Content-Type"] = "application/json"
    with connect(endpoint, timeout_s) as sock:
        with _told():
            if endpoint.scheme == "https":
                sock = _tls(sock)
            connection = http.client.HTTPConnection(endpoint.connect_hosts[0], endpoint.port)
            connection.sock = _Wire(sock, _Raw(sock, deadline, cancel))
            connection.request(method, path, body=data, headers=head)
            live = Live(connection.getresponse())
        try:
            yield live
        finally:
            sock.close()


def connect(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    """A connection to *endpoint*. Raises NoAnswer."""
    failure: NoAnswer | None = None
    for host in endpoint.connect_hosts:
        try:
            return socket.create_connection((host, endpoint.port), min(timeout_s, 5.0))
        except ConnectionRefusedError:
            failure = NoAnswer("refused", f"nothing listens on {endpoint.address} yet")
        except TimeoutError:
            failure = failure or NoAnswer("timeout", f"no connection to {endpoint.address}: timed out")
        except (OSError, UnicodeError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            failure = failure or NoAnswer("unreachable", f"cannot reach {endpoint.address}: {why}")
    assert failure is not None
    raise failure


def _tls(sock: socket.socket) -> socket.socket:
    """*sock* in TLS. Not verified: the certificate names the public host, and we knock at loopback."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(sock)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn everything that sockets and http.client raise into NoAnswer."""
    try:
        yield
    except TimeoutError:
        raise NoAnswer("timeout", "no answer in time") from None
    except ssl.SSLError as error:
        raise NoAnswer("not-http", f"no TLS there: {error.reason or error}") from None
    except (ConnectionError, http.client.IncompleteRead):
        raise NoAnswer("closed", "connection closed") from None
    except http.client.BadStatusLine as error:
        raise NoAnswer("not-http", f"something else answers there: {str(error)[:80]!r} is no HTTP") from None
    except http.client.HTTPException as error:
        raise NoAnswer("not-http", f"something else answers there: {error!r:.80} is no HTTP") from None
    except (OSError, ValueError) as error:
        raise NoAnswer("closed", f"connection broke: {error}") from None
