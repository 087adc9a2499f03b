"""The JSON objects of the contract, as plain dicts that are safe to print."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from bringup.facts import Cause, Diagnosis, Event, Exit, Line, PhaseSpan, Probe, Remedy


def safe(value: Any) -> Any:
    """*value* as JSON in UTF-8 can hold it: no NaN or infinity, no lone surrogates, no sets; else its text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value if value.isascii() else _encodable(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {safe(k if isinstance(k, str) else str(k)): safe(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((safe(v) for v in value), key=str)
    if isinstance(value, (list, tuple)):
        return [safe(v) for v in value]
    return _encodable(str(value))


def _encodable(text: str) -> str:
    """A file name of the system may hold bytes that are no UTF-8 (lone surrogates): they are shown escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def exit_document(ended: Exit) -> dict[str, Any]:
    """``{code, signal, certain}``."""
    return {"code": ended.code, "signal": ended.signal, "certain": ended.certain}


def line_document(line: Line) -> dict[str, Any]:
    """``{source, line, rank, text}``: one line of evidence."""
    return {"source": line.source, "line": line.line, "rank": line.rank, "text": line.text}


def remedy_document(remedy: Remedy) -> dict[str, Any]:
    """A remedy as the contract has it, in plans and diagnoses alike."""
    changes = [
        {"where": c.where, "name": c.name, "from": c.from_, "to": c.to, "scope": c.scope} for c in remedy.changes
    ]
    return {
        "id": remedy.id,
        "changes": changes,
        "loss": list(remedy.loss),
        "predicted": safe(remedy.predicted),
        "verdict": remedy.verdict,
        "why": remedy.why,
        "command": safe(remedy.command),
    }


def probe_document(probe: Probe) -> dict[str, Any]:
    """One rung; ``data`` holds what the answer told (``text``, ``tokens_per_s``, ``ttft_s``, ``served``)."""
    return {
        "rung": probe.rung,
        "status": probe.status,
        "at_s": safe(probe.at_s),
        "why": safe(probe.why),
        "data": safe(probe.data),
    }


def cause_document(cause: Cause) -> dict[str, Any]:
    """``{id, class, summary, explanation, confidence}``."""
    return {
        "id": cause.id,
        "class": cause.class_,
        "summary": cause.summary,
        "explanation": cause.explanation,
        "confidence": cause.confidence,
    }


def diagnosis_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """``bringup.diagnosis/1``."""
    document = {
        "schema": "bringup.diagnosis/1",
        "state": diagnosis.state,
        "after": diagnosis.after,
        "engine": diagnosis.engine,
        "engine_version": diagnosis.engine_version,
        "phase": diagnosis.phase,
        "exit": exit_document(diagnosis.exit) if diagnosis.exit else None,
        "cause": cause_document(diagnosis.cause) if diagnosis.cause else None,
        "evidence": [line_document(line) for line in diagnosis.evidence],
        "consequences": [line_document(line) for line in diagnosis.consequences],
        "remedies": [remedy_document(r) for r in diagnosis.remedies],
        "also": [{"id": c.id, "class": c.class_, "confidence": c.confidence} for c in diagnosis.also],
        "figures": diagnosis.figures,
        "settings": diagnosis.settings,
        "phases": [phase_document(span) for span in diagnosis.phases],
    }
    found: dict[str, Any] = safe(document)
    return found


def phase_document(span: PhaseSpan) -> dict[str, Any]:
    return {
        "name": span.name,
        "started": span.started,
        "ended": span.ended,
        "seconds": span.seconds,
        "progress": span.progress,
    }


def event_document(event: Event) -> dict[str, Any]:
    """``bringup.event/1``."""
    return {
        "schema": "bringup.event/1",
        "seq": event.seq,
        "run": event.run,
        "attempt": event.attempt,
        "source": safe(event.source),
        "offset": event.offset,
        "line": event.line,
        "at": event.at,
        "log_at": event.log_at,
        "t_s": safe(event.t_s),
        "kind": event.kind,
        "phase": event.phase,
        "worker": event.worker,
        "node": event.node,
        "rank": safe(event.rank),
        "data": safe(event.data),
    }


def new_run_document(*, run: str, name: str, target: str, engine: str, model: str | None) -> dict[str, Any]:
    """``bringup.run/1`` of a run that is only planned; every key of the contract is there.

    It is kept by the pilot, which changes it in place as events come (what goes in must be ``safe``).
    """
    return {
        "schema": "bringup.run/1",
        "run": run,
        "name": safe(name),
        "target": target,
        "engine": engine,
        "engine_version": None,
        "model": safe(model),
        "state": "planned",
        "after": None,
        "link": "up",
        "phase": "spawn",
        "progress": None,
        "eta_s": None,
        "endpoint": None,
        "pid": None,
        "started": None,
        "ended": None,
        "ready_s": None,
        "attempts": [],
        "plan": None,
        "probes": [],
        "diagnosis": None,
    }


def runs_document(runs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """``bringup.runs/1``."""
    return {"schema": "bringup.runs/1", "runs": [dict(r) for r in runs]}


def error_document(code: int, message: str, hint: str | None) -> dict[str, Any]:
    """``bringup.error/1``."""
    return {"schema": "bringup.error/1", "code": code, "message": safe(message), "hint": safe(hint)}
