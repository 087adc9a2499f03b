"""The frozen types that flow from room to room. No behaviour beyond small derivations, no I/O.

Sizes are GiB (2**30 bytes) in names ending ``_gib``, durations seconds in ``_s``, wall clock RFC 3339 UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Engine = Literal["sglang", "vllm", "llamacpp", "transformers", "tgi", "trtllm", "generic"]

#: Every phase a start can be in, in the order the words are used in documents and output.
#: The order in which one engine walks through them is in its ``startup.toml``.
PHASES: tuple[str, ...] = (
    "spawn",
    "args",
    "distributed",
    "download",
    "weights",
    "kv-cache",
    "compile",
    "graphs",
    "warmup",
    "serving",
    "ready",
)

EventKind = Literal[
    "state",
    "phase",
    "progress",
    "figure",
    "settings",
    "symptom",
    "probe",
    "link",
    "exit",
    "diagnosis",
    "change",
]


@dataclass(frozen=True, slots=True)
class Command:
    """What the user would have typed, and what was recognised in it.

    ``argv`` is never changed: it is run as typed, to the byte. Everything else is read from it.
    """

    argv: tuple[str, ...]
    engine: str = "generic"
    #: the engine's own arguments, with wrappers (``env``, ``uv run``, ``bash -c``) peeled off
    args: tuple[str, ...] = ()
    #: ``VAR=value`` prefixes found in the command itself
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    model: str | None = None
    served_name: str | None = None
    host: str | None = None
    port: int | None = None
    api_key: str | None = field(default=None, repr=False)
    #: "chat" | "completion" | "embedding" | "rerank": the request that fits, as far as the command tells
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One typed thing read from a log, a process or a probe. ``data`` has a schema for each kind.

    The pure rooms fill everything but ``seq``, ``run``, ``attempt`` and ``at``: whoever records it does.
    ``offset`` and ``line`` say where in ``source`` the text begins (bytes from 0, lines from 1).
    """

    kind: EventKind
    data: Mapping[str, Any] = field(default_factory=dict)
    source: str = "log"
    offset: int | None = None
    line: int | None = None
    log_at: str | None = None
    t_s: float | None = None
    phase: str | None = None
    worker: Literal["target", "draft"] | None = None
    node: str | None = None
    rank: str | None = None
    seq: int = 0
    run: str | None = None
    attempt: int | None = None
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. A shell's 137 may be an exit code or SIGKILL: then ``certain`` is false."""

    code: int | None = None
    signal: str | None = None
    certain: bool = True

    def text(self) -> str:
        """``code 1`` / ``SIGKILL`` / ``SIGKILL or code 137`` for people."""
        if self.signal and self.certain:
            return self.signal
        if self.signal:
            return f"{self.signal} or code {self.code}"
        return f"code {self.code}" if self.code is not None else "unknown exit"


@dataclass(frozen=True, slots=True)
class Line:
    """A line that proves something: where it stands, who wrote it, what it says (redacted)."""

    source: str
    line: int
    rank: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    where: Literal["flag", "env", "package", "host", "action"]
    name: str
    from_: str | None = None
    to: str | None = None
    scope: str = "memory"


@dataclass(frozen=True, slots=True)
class Remedy:
    """A concrete change that is meant to cure a cause; never a number that nobody computed."""

    id: str
    changes: tuple[Change, ...]
    why: str
    loss: tuple[str, ...] = ()
    predicted: Mapping[str, Any] | None = None
    verdict: str | None = None
    command: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    id: str
    class_: str
    summary: str
    explanation: str
    #: 0..1; a provisional cause may still change, a final one never does
    confidence: float


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A phase as it went: seconds since start where known, progress 0..1 where the log told it."""

    name: str
    started: float | None = None
    ended: float | None = None
    progress: float | None = None

    @property
    def seconds(self) -> float | None:
        """Length in seconds, when both ends are known."""
        if self.started is None or self.ended is None:
            return None
        return round(self.ended - self.started, 3)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a start came to and why. ``state`` is one of the run states or ``none``."""

    state: str
    engine: str
    after: Literal["stopped", "died"] | None = None
    engine_version: str | None = None
    phase: str | None = None
    exit: Exit | None = None
    cause: Cause | None = None
    evidence: tuple[Line, ...] = ()
    consequences: tuple[Line, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    also: tuple[Cause, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    phases: tuple[PhaseSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Probe:
    """One rung of the ladder: what was asked, how it went, when (seconds since start)."""

    rung: Literal["port", "health", "models", "completion"]
    status: Literal["ok", "failed", "skipped", "waiting"]
    at_s: float | None = None
    why: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
