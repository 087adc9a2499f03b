"""Finished pictures of runs as text: readable without colour, and no terminal library is imported for them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from bringup.report.clean import one_line
from bringup.report.explained import render_diagnosis
from bringup.report.paint import Paint, columns, padded, together, width_of, wrapped
from bringup.report.request import curl, is_keyed
from bringup.report.words import is_number, number, progress_text, seconds

__all__ = [
    "render_diagnosis",
    "render_error",
    "render_outcome",
    "render_ready",
    "render_runs",
    "render_status",
    "render_verdict",
]

Run = Mapping[str, Any]
_HEAD = 12
_STATE_STYLES = {
    "ready": "green",
    "failed": "red",
    "failing": "red",
    "refused": "red",
    "unhealthy": "yellow",
    "stalled": "yellow",
    "stopped": "yellow",
}


def render_error(message: str, hint: str | None = None, color: bool = False) -> str:
    """``error: ...`` and, after a blank line, ``hint: ...``."""
    paint = Paint(color)
    text = f"{paint('red', 'error')}: {one_line(message)}"
    return f"{text}\n\n{paint('cyan', 'hint')}: {one_line(hint)}" if hint else text


def render_outcome(run: Run, color: bool = False, width: int | None = None) -> str:
    """How a watch ended: the ready picture, the diagnosis, or where it is."""
    state, diagnosis = run.get("state"), run.get("diagnosis")
    if state in ("ready", "unhealthy"):
        return render_ready(run, color, width)
    if state == "failed" and diagnosis:
        return render_diagnosis(diagnosis, color, width) + "\n\n" + "\n".join(_next(run, ("log",)))
    paint = Paint(color)
    lines = wrapped(_verdict_text(run), width_of(width), f"{state}: ", "  ")
    lines[0] = paint(_STATE_STYLES.get(str(state), "cyan"), f"{state}:") + lines[0].removeprefix(f"{state}:")
    if state in ("starting", "stalled", "launching", "failing", "queued") and run.get("run"):
        lines += ["", *_next(run, ("status", "wait", "log", "stop"))]
    return "\n".join(lines)


def render_verdict(run: Run) -> str:
    """One line: the state, and the one thing that goes with it."""
    return f"{run.get('state')}: {_verdict_text(run)}"


def _verdict_text(run: Run) -> str:
    state, name = run.get("state"), one_line(run.get("name") or "the server", 100)
    if state in ("ready", "unhealthy"):
        where = f" at {one_line(run['endpoint'])}" if run.get("endpoint") else ""
        after = f" after {seconds(run['ready_s'])}" if is_number(run.get("ready_s")) else ""
        return f"{name}{where}{after}"
    if state in ("failed", "failing"):
        cause = (run.get("diagnosis") or {}).get("cause")
        died = "after it had been ready, " if run.get("after") == "died" else ""
        why = f"{_bare(cause['summary'])} [{cause['class']}]" if cause else "the cause is not known"
        return f"{name}, {died}{why}"
    if state in ("starting", "stalled", "launching", "queued", "planned"):
        moving = progress_text(run.get("phase"), run.get("progress"))
        spent = _spent(run)
        so_far = f", {seconds(spent)} so far" if spent is not None else ""
        return f"{name}, in phase {run.get('phase') or '?'}{' ' + moving if moving else ''}{so_far}"
    return name


def _bare(sentence: str) -> str:
    """One sentence as a message: no full stop at its end."""
    text = one_line(sentence)
    return text[:-1] if text.endswith(".") and not text.endswith("..") else text


def _spent(run: Run) -> float | None:
    attempts = run.get("attempts") or []
    found = attempts[-1].get("seconds") if attempts else None
    return float(found) if is_number(found) else None


def render_ready(run: Run, color: bool = False, width: int | None = None) -> str:
    """Phases, ladder, the completion, the endpoint with a ``curl`` to copy, and how to go on from here."""
    paint, columns_ = Paint(color), width_of(width)
    state = str(run.get("state") or "ready")
    took = f"{state} after {seconds(run['ready_s'])}" if is_number(run.get("ready_s")) else state
    lines = [f"{paint(_STATE_STYLES.get(state, 'green'), took)}: {paint('bold', one_line(run.get('name'), 100))}"]
    lines += ["", *_pair("server", _server(run), columns_)]
    lines += _phases((run.get("diagnosis") or {}).get("phases") or [], columns_)
    lines += _ladder(run.get("probes") or [], columns_)
    lines += _answer(run.get("probes") or [], columns_)
    request = curl(run)
    if request is not None:
        lines += [f"{'endpoint':<{_HEAD}}{one_line(run['endpoint'])}", "", request]
        if is_keyed(run):
            lines += ["", f"{paint('cyan', 'hint')}: the server wants its API key; put it in `KEY` first"]
    if run.get("run"):
        lines += ["", *_next(run, ("status", "log", "stop"))]
    return "\n".join(lines)


def _server(run: Run) -> str:
    version = f" {run['engine_version']}" if run.get("engine_version") else ""
    where = f" on {run['target']}" if run.get("target") else ""
    known = f", run {run['run']}" if run.get("run") else ""
    pid = f", pid {run['pid']}" if run.get("pid") else ""
    return one_line(f"{run.get('engine')}{version}{where}{known}{pid}", 300)


def _pair(key: str, value: str, width: int) -> list[str]:
    return wrapped(value, width, key.ljust(_HEAD)) if value else []


def _phases(phases: Iterable[Mapping[str, Any]], width: int) -> list[str]:
    told = [p for p in phases if p.get("name") != "ready" and is_number(p.get("seconds"))]
    parts = [f"{p['name']} {seconds(p['seconds'])}" for p in told]
    return _pair("phases", ", ".join(together(one_line(part)) for part in parts), width)


def _ladder(probes: Iterable[Mapping[str, Any]], width: int) -> list[str]:
    lines: list[str] = []
    for probe in probes:
        at = f" at {seconds(probe['at_s'])}" if is_number(probe.get("at_s")) else ""
        why = f": {one_line(probe['why'], 300)}" if probe.get("why") else ""
        served = (probe.get("data") or {}).get("served")
        if probe["rung"] == "models" and probe["status"] == "ok" and not why and isinstance(served, list) and served:
            more = f" and {len(served) - 3} more" if len(served) > 3 else ""
            why = f": {one_line(', '.join(str(s) for s in served[:3]), 200)}{more}"
        text = f"{probe['rung']:<10} {probe['status']}{at}{why}"
        lines += wrapped(text, width, ("probes" if not lines else "").ljust(_HEAD), " " * (_HEAD + 2))
    return lines


def _answer(probes: Iterable[Mapping[str, Any]], width: int) -> list[str]:
    found = next((p for p in probes if p["rung"] == "completion" and p["status"] == "ok"), None)
    data = (found or {}).get("data") or {}
    lines: list[str] = []
    if isinstance(data.get("text"), str) and data["text"]:
        lines += _pair("answer", f'"{one_line(data["text"], 300)}"', width)
    speed = []
    if is_number(data.get("tokens_per_s")):
        speed.append(f"{number(data['tokens_per_s'])} tokens/s")
    if is_number(data.get("ttft_s")):
        speed.append(f"first token after {seconds(data['ttft_s'])}")
    if is_number(data.get("tokens")):
        counted = " (counted by chunks)" if data.get("counted") == "chunks" else ""
        speed.append(f"{number(data['tokens'])} tokens{counted}")
    return [*lines, *_pair("speed", ", ".join(map(together, speed)), width)]


def _next(run: Run, which: Iterable[str]) -> list[str]:
    """The commands that go on from here, to copy."""
    name = shlex.quote(one_line(run.get("name") or run.get("run")))
    commands = {
        "status": f"bringup status {name}",
        "wait": f"bringup wait {name}",
        "log": f"bringup logs -f {name}" if run.get("state") != "failed" else f"bringup logs {name}",
        "stop": f"bringup stop {name}",
    }
    return [f"{key:<{_HEAD}}{commands[key]}" for key in which]


def render_status(run: Run, color: bool = False, width: int | None = None) -> str:
    """What a run is doing now."""
    if not run:
        return "nothing is recorded of this run"
    paint, columns_, state = Paint(color), width_of(width), str(run.get("state"))
    verdict = wrapped(_verdict_text(run), columns_, f"{state}: ", "  ")
    verdict[0] = paint(_STATE_STYLES.get(state, "cyan"), f"{state}:") + verdict[0].removeprefix(f"{state}:")
    lines = [*verdict, ""]
    lines += _pair("server", _server(run), columns_)
    for key in ("model", "started", "ended", "endpoint"):
        if run.get(key) is not None:
            lines.append(f"{key:<{_HEAD}}{one_line(run[key])}")  # a path is copied: never broken
    if run.get("link") == "lost":
        lines += _pair("link", "lost; the server itself may be well", columns_)
    lines += _phases((run.get("diagnosis") or {}).get("phases") or [], columns_)
    lines += _ladder(run.get("probes") or [], columns_)
    lines += _answer(run.get("probes") or [], columns_)
    if run.get("diagnosis") and (state in ("failed", "failing") or run.get("after") == "died"):
        lines += ["", render_diagnosis(run["diagnosis"], color, width)]
    return "\n".join(lines)


def render_runs(runs: Iterable[Run], width: int | None = None) -> str:
    """A table of runs; on a narrow screen the last columns go first."""
    rows: list[tuple[str, ...]] = [("NAME", "STATE", "ENDPOINT", "ENGINE", "PHASE", "STARTED", "RUN")]
    rows += [_row(run) for run in runs]
    if len(rows) == 1:
        return "no runs; start one with `bringup up -- COMMAND...`"
    widths = [max(columns(row[i]) for row in rows) for i in range(len(rows[0]))]
    shown = len(widths)
    if width is not None:
        while shown > 3 and sum(widths[:shown]) + 2 * (shown - 1) > width:
            shown -= 1
    return "\n".join("  ".join(padded(row[i], widths[i]) for i in range(shown)).rstrip() for row in rows)


def _row(run: Run) -> tuple[str, ...]:
    started = str(run.get("started") or "-")
    return (
        one_line(run.get("name") or "-", 40),
        str(run.get("state")),
        one_line(run.get("endpoint") or "-", 60),
        str(run.get("engine")),
        str(run.get("phase") or "-"),
        started[:19].replace("T", " ") + ("Z" if started.endswith("Z") else ""),
        one_line(run.get("run"), 40),
    )
