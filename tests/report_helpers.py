"""Documents of made-up runs for the tests of the report room."""

from __future__ import annotations

from typing import Any

from bringup.facts import Cause, Change, Diagnosis, Event, EventKind, Exit, Line, PhaseSpan, Probe, Remedy
from bringup.report.documents import diagnosis_document, event_document, new_run_document, probe_document

#: what a log may hold against the terminal of its reader
HOSTILE = "\x1b]0;title\x07\x1b[31mred\x1b[2J\x9b5A [bold]markup[/bold] \x00\x07\u202eback\u2028line\r\nnext\tend"
#: what a terminal would obey
COMMANDS = ("\x1b", "\x9b", "\x07", "\x00", "\r", "\u202e", "\u2028")

READY = Diagnosis(
    "ready",
    "vllm",
    engine_version="0.32.0",
    phase="ready",
    phases=(PhaseSpan("spawn", 0.0, 0.5), PhaseSpan("weights", 0.5, 12.75, 1.0), PhaseSpan("serving", 12.75, 13.0)),
)
PROBES = (
    Probe("port", "ok", 12.8),
    Probe("health", "ok", 12.9),
    Probe("models", "ok", 13.0, None, {"served": ["Qwen/Qwen3-8B"]}),
    Probe(
        "completion", "ok", 13.5, None,
        {"kind": "chat", "text": "Hello! How can I help?", "tokens": 16, "tokens_per_s": 48.58, "ttft_s": 0.045},
    ),
)  # fmt: skip
OUT_OF_MEMORY = Diagnosis(
    "failed",
    "sglang",
    engine_version="0.5.9",
    phase="kv-cache",
    exit=Exit(137, "SIGKILL", certain=False),
    cause=Cause(
        "sglang.memory.static",
        "gpu-memory-static-too-small",
        "The recurrent states take 13.76 GiB of the 14.42 GiB that are left.",
        "Speculation reserves states for 48 requests. Fewer requests need fewer states.",
        0.95,
    ),
    evidence=(Line("log", 412, "TP0", "RuntimeError: Not enough memory."), Line("log", 413, None, "second")),
    consequences=(Line("log", 420, "TP1", "Received sigquit from a child process"),),
    remedies=(
        Remedy(
            "fewer", (Change("flag", "--max-running-requests", None, "32", "capacity"),), "32 requests need 9.17 GiB",
            loss=("fewer requests at once",),
            command=("HF_HOME=/models/my hub", "python", "-m", "sglang.launch_server", "--max-running-requests", "32"),
        ),
        Remedy("env", (Change("env", "NCCL_DEBUG", "", "a b"),), "tells more"),
        Remedy("act", (Change("action", "download the model again"),), "a shard is cut"),
    ),
    also=(Cause("x.y", "gpu-busy-other-process", "", "", 0.3),),
    figures={"weights_gib": 25.1, "max_total_num_tokens": 65536, "note": "text"},
    phases=(PhaseSpan("weights", 1.0, 31.0, 1.0),),
)  # fmt: skip


def run_of(diagnosis: Diagnosis | None = None, probes: tuple[Probe, ...] = (), /, **changed: Any) -> dict[str, Any]:
    """A run document of one attempt."""
    run = new_run_document(run="1abc", name="chat", target="local", engine="vllm", model="Qwen/Qwen3-8B")
    attempt = {
        "attempt": 1, "command": ["vllm", "serve", "Qwen/Qwen3-8B"], "changes": [], "state": "starting",
        "started": "2026-01-31T10:20:30.123Z", "seconds": 13.5,
    }  # fmt: skip
    run.update(attempts=[attempt], state="starting", started=attempt["started"], pid=77)
    run["probes"] = [probe_document(p) for p in probes]
    run["diagnosis"] = diagnosis_document(diagnosis) if diagnosis else None
    return {**run, **changed}


def ready_run(**changed: Any) -> dict[str, Any]:
    more = {"state": "ready", "phase": "ready", "ready_s": 13.5, "endpoint": "http://127.0.0.1:8000"}
    return run_of(READY, PROBES, **{**more, **changed})


def event(kind: EventKind, t_s: float | None = None, /, **data: Any) -> dict[str, Any]:
    return event_document(Event(kind, data, run="1abc", attempt=1, at="2026-01-31T10:20:30.123Z", t_s=t_s))


def progress(t_s: float, fraction: float, phase: str = "weights", **more: Any) -> dict[str, Any]:
    data = {"phase": phase, "rule": "x", "fraction": fraction, "done": None, "total": None, "rate": None, "eta_s": None}
    return event("progress", t_s, **{**data, **more})
