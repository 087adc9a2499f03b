"""Finished pictures as text. No colour unless asked for, and none of it needs a terminal library."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from bringup.report.words import harmless, progress_text, seconds

_MARK = {"ok": "ok", "failed": "failed", "skipped": "skipped", "waiting": "waiting"}
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Paint:
    """Wraps text in a style if there is colour, else leaves it as it is."""

    def __init__(self, color: bool) -> None:
        self._on = color

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self._on else text


def render_error(message: str, hint: str | None = None, color: bool = False) -> str:
    """``error: ...`` and, after a blank line, ``hint: ...``."""
    paint = Paint(color)
    text = f"{paint('red', 'error')}: {harmless(message, 600)}"
    return f"{text}\n\n{paint('cyan', 'hint')}: {harmless(hint, 600)}" if hint else text


def render_outcome(run: Mapping[str, Any], color: bool = False) -> str:
    """How a watch ended: the ready picture, or the diagnosis."""
    if run["state"] in ("ready", "unhealthy"):
        return render_ready(run, color)
    if run["state"] in ("failed", "stopped") and run.get("diagnosis"):
        head = f"{run['name']}: {render_verdict(run)}"
        return head + "\n\n" + render_diagnosis(run["diagnosis"], color)
    return f"{run['name']}: {render_verdict(run)}"


def render_verdict(run: Mapping[str, Any]) -> str:
    """One line: the state, and the one thing that goes with it."""
    state, name = run["state"], run["name"]
    took = run["attempts"][-1].get("seconds") if run.get("attempts") else None
    if state in ("ready", "unhealthy"):
        return f"{state}: {name} at {run.get('endpoint') or '?'} after {seconds(run.get('ready_s'))}"
    if state in ("failed", "failing"):
        cause = (run.get("diagnosis") or {}).get("cause")
        why = f"{harmless(cause['summary'])} [{cause['class']}]" if cause else "the cause is not known"
        died = " after it had been ready" if run.get("after") == "died" else ""
        return f"{state}{died}: {why}"
    if state in ("starting", "stalled", "launching"):
        moving = progress_text(run.get("progress"))
        return f"{state}: {run.get('phase')}{', ' + moving if moving else ''} ({seconds(took)} so far)"
    return str(state)


def render_ready(run: Mapping[str, Any], color: bool = False) -> str:
    """Phases, ladder, the completion, the endpoint with a ``curl`` to copy, and how to go on from here."""
    paint = Paint(color)
    lines = [paint("green", f"ready after {seconds(run.get('ready_s'))}") + f"  {run['name']} ({run['engine']})", ""]
    lines += _phases((run.get("diagnosis") or {}).get("phases") or [])
    lines += _ladder(run.get("probes") or [])
    lines += _answer(run.get("probes") or [], paint)
    if run.get("endpoint"):
        lines += ["", f"endpoint  {run['endpoint']}", "", *_curl(run)]
    name = shlex.quote(str(run["name"]))
    lines += [
        "",
        f"status    bringup status {name}",
        f"log       bringup logs -f {name}",
        f"stop      bringup stop {name}",
    ]
    return "\n".join(lines)


def _phases(phases: Iterable[Mapping[str, Any]]) -> list[str]:
    told = [p for p in phases if p["name"] != "ready" and p.get("started") is not None]
    if not told:
        return []
    parts = [f"{p['name']} {seconds(p['seconds'])}" if p.get("seconds") is not None else p["name"] for p in told]
    return ["phases    " + ", ".join(parts)]


def _ladder(probes: Iterable[Mapping[str, Any]]) -> list[str]:
    parts = []
    for probe in probes:
        at = f" {probe['at_s']:.2f} s" if isinstance(probe.get("at_s"), (int, float)) else ""
        why = f" ({harmless(probe['why'], 100)})" if probe.get("why") else ""
        parts.append(f"{probe['rung']} {_MARK[probe['status']]}{at}{why}")
    return ["probes    " + ", ".join(parts)] if parts else []


def _answer(probes: Iterable[Mapping[str, Any]], paint: Paint) -> list[str]:
    found = next((p for p in probes if p["rung"] == "completion" and p["status"] == "ok"), None)
    if found is None:
        return []
    data = found.get("data") or {}
    lines = []
    if data.get("text"):
        lines.append("answer    " + paint("cyan", json.dumps(harmless(str(data["text"]), 160), ensure_ascii=False)))
    speed = []
    if isinstance(data.get("tokens"), int):
        speed.append(f"{data['tokens']} tokens")
    if isinstance(data.get("tokens_per_s"), (int, float)):
        speed.append(f"{data['tokens_per_s']:.1f} tokens/s")
    if isinstance(data.get("ttft_s"), (int, float)):
        speed.append(f"first token after {seconds(data['ttft_s'])}")
    if data.get("counted") == "chunks":
        speed.append("tokens counted from chunks")
    return [*lines, "speed     " + ", ".join(speed)] if speed else lines


def _curl(run: Mapping[str, Any]) -> list[str]:
    """A request to copy that this server answers."""
    probes = {p["rung"]: p for p in run.get("probes") or []}
    served = (probes.get("models") or {}).get("data", {}).get("served") or [run.get("model") or "default"]
    data = (probes.get("completion") or {}).get("data") or {}
    kind = data.get("kind", "chat")
    path, body = _REQUESTS.get(kind, _REQUESTS["chat"])
    text = json.dumps({"model": served[0], **body}, ensure_ascii=False)
    key = ' -H "Authorization: Bearer $API_KEY"' if run.get("keyed") else ""
    return [f"curl {run['endpoint']}{path}{key} -H 'Content-Type: application/json' -d {shlex.quote(text)}"]


_REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 32}),
    "completion": ("/v1/completions", {"prompt": "Hello", "max_tokens": 32}),
    "embedding": ("/v1/embeddings", {"input": "hello"}),
    "rerank": ("/v1/rerank", {"query": "hello", "documents": ["hello", "world"]}),
}


def render_diagnosis(diagnosis: Mapping[str, Any], color: bool = False) -> str:
    """What a start came to, the first cause, the lines that prove it, and what to change."""
    paint = Paint(color)
    cause = diagnosis.get("cause")
    lines = [_state_line(diagnosis, paint)]
    if cause is not None:
        lines += [
            "",
            paint("bold", harmless(cause["summary"])),
            harmless(cause["explanation"], 800),
            paint("dim", f"{cause['class']} ({cause['id']}), confidence {cause['confidence']:.0%}"),
        ]
    elif diagnosis["state"] == "failed" or diagnosis.get("after") == "died":
        lines += ["", paint("bold", f"the cause is not known; it was in phase {diagnosis.get('phase') or '?'}")]
    lines += _lines("evidence" if cause else "most telling lines", diagnosis.get("evidence") or [], 6)
    lines += [paint("dim", line) for line in _lines("consequences", diagnosis.get("consequences") or [], 4)]
    lines += _remedies(diagnosis.get("remedies") or [], paint)
    others = diagnosis.get("also") or []
    if others:
        lines += ["", paint("dim", "also seen: " + ", ".join(f"{c['id']} [{c['class']}]" for c in others[:5]))]
    return "\n".join(lines)


def _state_line(diagnosis: Mapping[str, Any], paint: Paint) -> str:
    state, after = diagnosis["state"], diagnosis.get("after")
    style = {"ready": "green", "failed": "red", "stopped": "yellow"}.get(state, "cyan")
    word = {"starting": "still starting", "none": "no startup in this input"}.get(state, state)
    text = paint(style, word + (f", then {after}" if after else ""))
    version = f" {diagnosis['engine_version']}" if diagnosis.get("engine_version") else ""
    phase = f", in phase {diagnosis['phase']}" if diagnosis.get("phase") and state not in ("ready", "none") else ""
    ended = diagnosis.get("exit")
    how = f", ended by {ended['signal'] or 'code ' + str(ended['code'])}" if ended else ""
    return f"{text}  ({diagnosis['engine']}{version}{phase}{how})"


def _lines(title: str, lines: Iterable[Mapping[str, Any]], most: int) -> list[str]:
    found = list(lines)
    if not found:
        return []
    shown = [
        f"  {line['source']}:{line['line']}{' ' + line['rank'] if line['rank'] else ''}: {harmless(line['text'], 300)}"
        for line in found[:most]
    ]
    more = [f"  ... and {len(found) - most} more"] if len(found) > most else []
    return ["", f"{title}:", *shown, *more]


def _remedies(remedies: Iterable[Mapping[str, Any]], paint: Paint) -> list[str]:
    lines: list[str] = []
    for remedy in remedies:
        changes = "; ".join(_change(c) for c in remedy["changes"])
        lines.append(f"  {paint('green', changes)}: {harmless(remedy['why'], 300)}")
        if remedy.get("loss"):
            lines.append(f"    costs: {harmless('; '.join(remedy['loss']), 200)}")
        if remedy.get("command"):
            lines.append(f"    {shlex.join(remedy['command'])}")
    return ["", "what to change:", *lines] if lines else []


def _change(change: Mapping[str, Any]) -> str:
    name, old, new = change["name"], change.get("from"), change.get("to")
    if change["where"] in ("host", "action"):
        return harmless(name if new is None else f"{name}: {new}", 200)
    if change["where"] == "package":
        return f"package {name}" + (f" {new}" if new else "")
    joint = "=" if change["where"] == "env" else " "
    return harmless(f"{name}{joint}{new}" if new is not None else name, 200) + (
        f" (now {harmless(str(old), 60)})" if old else ""
    )


def render_status(run: Mapping[str, Any], color: bool = False) -> str:
    """What a run is doing now."""
    paint = Paint(color)
    lines = [f"{paint('bold', str(run['name']))}  {render_verdict(run)}", ""]
    pairs = [
        ("run", run["run"]),
        ("engine", f"{run['engine']}{' ' + run['engine_version'] if run.get('engine_version') else ''}"),
        ("model", run.get("model")),
        ("target", run.get("target")),
        ("phase", run.get("phase")),
        ("endpoint", run.get("endpoint")),
        ("pid", run.get("pid")),
        ("started", run.get("started")),
        ("ended", run.get("ended")),
    ]
    lines += [f"{key:<9} {harmless(str(value), 200)}" for key, value in pairs if value is not None]
    lines += _ladder(run.get("probes") or [])
    if run["state"] == "failed" and run.get("diagnosis"):
        lines += ["", render_diagnosis(run["diagnosis"], color)]
    return "\n".join(lines)


def render_runs(runs: Iterable[Mapping[str, Any]]) -> str:
    """A table of runs."""
    rows = [("NAME", "RUN", "STATE", "ENGINE", "ENDPOINT", "STARTED")]
    for run in runs:
        rows.append(
            (
                harmless(str(run["name"]), 40),
                str(run["run"]),
                str(run["state"]),
                str(run["engine"]),
                str(run.get("endpoint") or "-"),
                str(run.get("started") or "-")[:19].replace("T", " "),
            )
        )
    if len(rows) == 1:
        return "no runs; start one with `bringup up -- COMMAND...`"
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)
