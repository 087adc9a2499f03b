"""Plain lines: what is shown when nobody looks at a terminal (a pipe, a file, CI)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

from bringup.report.words import harmless, progress_text, seconds

#: a bar is told again after it has moved this far, or after this long
_STEP, _AGAIN_S = 0.1, 5.0


class PlainReporter:
    """One line for each thing that matters, with the seconds since the start in front. No colour, no cursor."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._told: dict[str, tuple[float, float]] = {}
        self._probes: dict[str, str] = {}
        self._finished = False

    def event(self, event: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        t_s, data = event.get("t_s"), event["data"]
        text = self._text(event["kind"], data, t_s or 0.0, run)
        if text:
            self._line(t_s, text)

    def note(self, text: str) -> None:
        self._line(None, text)

    def tail(self, text: str) -> None:
        return

    def finish(self, run: Mapping[str, Any]) -> None:
        from bringup.report.text import render_outcome

        if not self._finished:
            self._finished = True
            self._stream.write(render_outcome(run) + "\n")
            self._stream.flush()

    def close(self) -> None:
        self._stream.flush()

    def _text(self, kind: str, data: Mapping[str, Any], t_s: float, run: Mapping[str, Any]) -> str | None:
        match kind:
            case "state":
                if data["state"] == "launching":
                    return f"launching {run.get('name', '')} ({run.get('engine', '')}), run {run.get('run', '')}"
                why = f": {harmless(data['why'], 200)}" if data.get("why") else ""
                return None if data["state"] in ("starting", "ready", "failed") and not why else data["state"] + why
            case "phase":
                worker = " (draft model)" if data.get("worker") == "draft" else ""
                return None if data["name"] in ("spawn", "ready") else data["name"] + worker
            case "progress":
                return self._progress(data, t_s)
            case "probe":
                return self._probe(data)
            case "exit":
                return f"the process ended: {data['signal'] or 'code ' + str(data['code'])}"
            case _:
                return None

    def _progress(self, data: Mapping[str, Any], t_s: float) -> str | None:
        name, fraction = str(data.get("phase")), float(data["fraction"])
        last, at = self._told.get(name, (-1.0, -_AGAIN_S))
        if fraction < 1 and fraction - last < _STEP and t_s - at < _AGAIN_S:
            return None
        if fraction == last:
            return None
        self._told[name] = (fraction, t_s)
        return f"{name} {progress_text(dict(data))}"

    def _probe(self, data: Mapping[str, Any]) -> str | None:
        line = f"probe {data['rung']}: {data['status']}" + (
            f", {harmless(data['why'], 160)}" if data.get("why") else ""
        )
        if self._probes.get(data["rung"]) == line:
            return None
        self._probes[data["rung"]] = line
        return line

    def _line(self, t_s: float | None, text: str) -> None:
        stamp = "" if t_s is None else f"[{t_s:7.2f} s] "
        self._stream.write(f"{stamp}{text}\n")
        self._stream.flush()


def elapsed(run: Mapping[str, Any]) -> str:
    """Seconds of the newest attempt, for people."""
    attempts = run.get("attempts") or []
    return seconds(attempts[-1].get("seconds") if attempts else None)
