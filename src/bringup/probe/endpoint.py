"""Where a server listens, and where to knock."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

_ANY_V4 = frozenset({"", "*", "0.0.0.0"})  # noqa: S104 (compared with, never bound)
_ANY_V6 = frozenset({"::", "0:0:0:0:0:0:0:0"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host as the server was told it (wildcards and brackets included), a port and ``http`` or ``https``."""

    host: str
    port: int
    scheme: str = "http"

    @classmethod
    def parse(cls, url: str) -> Endpoint | None:
        """The endpoint of *url* (``http://[::1]:8080/v1``); None if it is no http address."""
        try:
            parts = urlsplit(url.strip())
            host, port = parts.hostname, parts.port
        except ValueError:
            return None
        if parts.scheme not in ("http", "https") or host is None:
            return None
        return cls(host, port or (443 if parts.scheme == "https" else 80), parts.scheme)

    @property
    def connect_hosts(self) -> tuple[str, ...]:
        """Addresses to try, best first. A wildcard is reached over loopback; ``::`` takes IPv4 on most hosts."""
        bare = self.host.strip().removeprefix("[").removesuffix("]")
        if bare in _ANY_V4:
            return ("127.0.0.1",)
        return ("::1", "127.0.0.1") if bare in _ANY_V6 else (bare,)

    @property
    def address(self) -> str:
        """``127.0.0.1:8080``, ``[::1]:8080``: where it is reached from this machine."""
        host = self.connect_hosts[0]
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """For people and for ``curl``, without a final slash."""
        return f"{self.scheme}://{self.address}"
