"""Plain lines: what is shown when nobody looks at a terminal (a pipe, a file, CI)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

from bringup.report.clean import one_line
from bringup.report.reporter import say
from bringup.report.words import exit_text, is_number, progress_text

#: a bar is told again after it has moved this far, or after this many seconds
_STEP, _AGAIN_S = 0.1, 5.0
#: states of which another line tells more
_SILENT = frozenset({"planned", "queued", "starting", "failed"})


class PlainReporter:
    """One line for each thing that matters, with the seconds since the start in front. No colour, no cursor."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._bars: dict[str, tuple[float, float]] = {}
        self._probes: dict[str, tuple[str, float]] = {}
        self._saw: set[str] = set()
        self._ended = False
        self._t_s = 0.0
        self._finished = False

    def event(self, event: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        t_s = event.get("t_s")
        if is_number(t_s):
            self._t_s = t_s
        text = self._text(str(event["kind"]), event["data"], run)
        if text:
            self._line(t_s, text)

    def note(self, text: str) -> None:
        self._line(None, one_line(text))

    def tail(self, text: str) -> None:
        del text

    def finish(self, run: Mapping[str, Any]) -> None:
        from bringup.report.text import render_outcome

        if not self._finished and run:
            self._finished = True
            say(self._stream, "\n" + render_outcome(run))

    def close(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads it any more; the server goes on

    def _line(self, t_s: object, text: str) -> None:
        stamp = f"[{t_s:6.1f}s] " if is_number(t_s) else ""
        say(self._stream, stamp + text)

    def _text(self, kind: str, data: Mapping[str, Any], run: Mapping[str, Any]) -> str | None:
        match kind:
            case "state":
                return self._state(data, run)
            case "phase":
                return self._phase(data)
            case "progress":
                return self._progress(data)
            case "probe":
                return self._probe(data)
            case "symptom":
                return self._symptom(data)
            case "exit":
                self._ended = True
                return f"the server ended with {exit_text(data)}"
            case "link":
                return "link lost; the server itself may be well" if data["link"] == "lost" else "link is up again"
            case "change":
                return _change(data)
            case _:
                return None

    def _state(self, data: Mapping[str, Any], run: Mapping[str, Any]) -> str | None:
        state, why = data["state"], data.get("why")
        if state == "launching":
            name, engine = one_line(run.get("name") or "the server", 100), run.get("engine") or "?"
            return f"launching {name} ({engine}), run {run.get('run') or '?'}"
        if state == "failing" and self._ended:
            return None  # its end was just told
        if not why:
            return None if state in _SILENT else str(state)
        return f"{state}: {one_line(why, 300)}"

    def _phase(self, data: Mapping[str, Any]) -> str | None:
        if data["name"] in ("spawn", "ready"):
            return None
        if data.get("restart"):
            return f"the server starts again; {data['name']}"
        return f"{data['name']}{' (draft model)' if data.get('worker') == 'draft' else ''}"

    def _progress(self, data: Mapping[str, Any]) -> str | None:
        fraction = data.get("fraction")
        if not is_number(fraction):
            return None
        name = str(data.get("phase") or "progress")
        last, at = self._bars.get(name, (-1.0, -_AGAIN_S))
        if fraction < last:  # a bar of its own: the next file, the draft model
            last = -1.0
        moved = fraction > last and (fraction - last >= _STEP or fraction >= 1)
        if not moved and (self._t_s - at < _AGAIN_S or fraction == last):
            return None
        self._bars[name] = (float(fraction), self._t_s)
        return f"{name} {progress_text(name, data)}"

    def _probe(self, data: Mapping[str, Any]) -> str | None:
        why = f": {one_line(data['why'], 300)}" if data.get("why") else ""
        line = f"probe {data['rung']} {data['status']}{why}"
        told, at = self._probes.get(data["rung"], ("", -_AGAIN_S))
        if told == line or (data["status"] == "waiting" and self._t_s - at < _AGAIN_S and told):
            return None
        self._probes[data["rung"]] = (line, self._t_s)
        return line

    def _symptom(self, data: Mapping[str, Any]) -> str | None:
        if data.get("role") != "cause" or data["rule"] in self._saw:
            return None
        self._saw.add(data["rule"])
        return f"saw {data['class']}: {one_line(data.get('text'), 200)}"


def _change(data: Mapping[str, Any]) -> str:
    from bringup.report.explained import change_text

    changes = ", ".join(change_text(c) for c in data.get("changes") or [])
    return f"changing {changes}" + (f": {one_line(data['why'], 300)}" if data.get("why") else "")
