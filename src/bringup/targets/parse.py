"""The grammar of TARGET::

    TARGET := NAME | HOP ("/" HOP)*
    HOP    := "local" | "ssh://" [user "@"] host [":" port]   (first only)
            | ("pct" | "lxc" | "docker" | "podman") "/" [user "@"] ID
            | "sudo" ["/" USER] | "slurm" ["/" PARTITION] | "k8s/" [CONTEXT "@"] NAMESPACE "/" NAME

``%xx`` escapes any byte inside a segment: ``sudo/%70ct`` is the user ``pct``, ``sudo/pct/129`` a container.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from bringup.errors import UsageError

CONTAINERS = ("pct", "lxc", "docker", "podman")
WORDS = frozenset({"local", "ssh:", "sudo", "slurm", "k8s", *CONTAINERS})
_FORMS = {
    "ssh": "ssh://[user@]host[:port]",
    **{kind: f"{kind}/[user@]ID" for kind in CONTAINERS},
    "k8s": "k8s/[CONTEXT@]NAMESPACE/NAME",
}
_HOST = re.compile(r"(?s)(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>.*))?")


@dataclass(frozen=True, slots=True)
class Hop:
    """One step on the way to a target. ``kind`` is ``name`` for a target that the configuration names.

    ``id``: host, container, partition or name; ``user``: whom to be there; ``context`` and ``namespace``: k8s.
    """

    kind: str
    id: str | None = None
    user: str | None = None
    port: int | None = None
    context: str | None = None
    namespace: str | None = None


def parse_target(text: str) -> list[Hop]:
    """The hops of *text*, first one ``local`` or ``ssh`` (or a single ``name``). Raises ``UsageError``."""
    parts = text.strip().split("/")
    if parts[0] not in WORDS:
        return [_named(text, parts)]
    hops: list[Hop] = []
    while parts:
        hops.append(_hop(text, parts, first=not hops))
    return hops if hops[0].kind in ("local", "ssh") else [Hop("local"), *hops]


def format_target(hops: Sequence[Hop]) -> str:
    """The shortest text that ``parse_target`` reads as *hops*."""
    shown = [h for i, h in enumerate(hops) if i or h.kind != "local"] or list(hops)
    return "/".join(map(_format, shown))


def _named(text: str, parts: list[str]) -> Hop:
    if len(parts) > 1 or ":" in parts[0]:
        known = "local, ssh://HOST, pct, lxc, docker, podman, sudo, slurm, k8s"
        raise UsageError(f"bad target `{text}`: `{parts[0]}` is no kind of target", f"a target begins with: {known}")
    name = _unescape(text, parts[0])
    if not name:
        raise UsageError("the target is empty", "use `local`, or leave --on out")
    return Hop("name", name)


def _hop(text: str, parts: list[str], *, first: bool) -> Hop:
    word = parts.pop(0)
    if word == "local":
        if not first:
            raise UsageError(f"bad target `{text}`: `local` can only be the first hop")
        return Hop("local")
    if word == "ssh:":
        if not first:
            raise UsageError(f"bad target `{text}`: `ssh` can only be the first hop", "use ProxyJump in ~/.ssh/config")
        return _ssh(text, parts)
    if word in CONTAINERS:
        user, name = _at(text, _next(text, parts, word))
        return Hop(word, _unescape(text, name, word), user=_unescape(text, user, word) if user is not None else None)
    if word == "k8s":
        context, space = _at(text, _next(text, parts, word))
        return Hop(
            "k8s",
            _unescape(text, _next(text, parts, word), word),
            context=_unescape(text, context, word) if context is not None else None,
            namespace=_unescape(text, space, word),
        )
    if word not in ("sudo", "slurm"):
        raise UsageError(f"bad target `{text}`: `{word}` is no kind of target")
    found = _unescape(text, parts.pop(0), word) if parts and parts[0] not in WORDS else None
    return Hop(word, user=found) if word == "sudo" else Hop(word, found)


def _ssh(text: str, parts: list[str]) -> Hop:
    if _next(text, parts, "ssh"):
        raise _bad(text, "ssh")
    user, rest = _at(text, _next(text, parts, "ssh"))
    found = _HOST.fullmatch(rest)
    if not found:
        raise _bad(text, "ssh")
    port = found["port"]
    if port is not None and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise UsageError(f"bad target `{text}`: `{port}` is no port", "a port is a number from 1 to 65535")
    host = _unescape(text, found["host"].removeprefix("[").removesuffix("]"), "ssh")
    if host.startswith("-"):  # ssh would take it for an option
        raise UsageError(f"bad target `{text}`: a host cannot begin with `-`")
    return Hop(
        "ssh",
        host,
        user=_unescape(text, user, "ssh") if user is not None else None,
        port=int(port) if port is not None else None,
    )


def _next(text: str, parts: list[str], kind: str) -> str:
    if not parts:
        raise _bad(text, kind)
    return parts.pop(0)


def _at(_text: str, segment: str) -> tuple[str | None, str]:
    before, at, after = segment.rpartition("@")
    return (before, after) if at else (None, segment)


def _unescape(text: str, segment: str, kind: str | None = None) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", segment):
        raise UsageError(f"bad target `{text}`: `%` must be followed by two hexadecimal digits", "write `%25` for `%`")
    try:
        out = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError as e:
        raise UsageError(f"bad target `{text}`: an escape is no UTF-8") from e
    if kind and not out:
        raise _bad(text, kind)
    if any(ord(c) < 32 or ord(c) == 127 for c in out):
        raise UsageError(f"bad target `{text}`: it holds a control character")
    return out


def _bad(text: str, kind: str) -> UsageError:
    form = _FORMS.get(kind, kind)
    return UsageError(f"bad target `{text}`: something is missing after `{kind}`", f"write it as {form}")


def _format(hop: Hop) -> str:
    name = _escape(hop.id or "")
    if hop.kind == "ssh":
        host = f"[{_escape(hop.id or '', ':')}]" if ":" in (hop.id or "") else name
        return f"ssh://{_before(hop.user)}{host}" + (f":{hop.port}" if hop.port else "")
    if hop.kind == "k8s":
        return f"k8s/{_before(hop.context)}{_escape(hop.namespace or '')}/{name}"
    if hop.kind in CONTAINERS:
        return f"{hop.kind}/{_before(hop.user)}{name}"
    if hop.kind == "name":
        return name
    rest = hop.user if hop.kind == "sudo" else hop.id
    return f"{hop.kind}/{_escape(rest)}" if rest else hop.kind


def _before(text: str | None) -> str:
    return f"{_escape(text)}@" if text is not None else ""


def _escape(text: str, safe: str = "") -> str:
    out = quote(text, safe=safe)
    return f"%{ord(text[0]):02X}{text[1:]}" if text in WORDS else out
