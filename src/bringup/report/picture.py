"""What the live view shows, drawn anew at each look: it fits any width from 40 columns up."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from bringup.clock import seconds_of
from bringup.report.clean import one_line
from bringup.report.words import is_number, progress_text, seconds

_RUNGS = ("port", "health", "models", "completion")
_SIGNS = {"ok": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("–", "yellow"), "waiting": ("…", "cyan")}
_STATE_STYLES = {"ready": "green", "failing": "red", "stalled": "yellow", "unhealthy": "yellow"}
#: columns from which there is room for a bar, and how long it is
_BAR_FROM, _BAR = 64, 20


@dataclass(slots=True)
class _Span:
    name: str
    start: float
    end: float | None = None


@dataclass(slots=True)
class Picture:
    """Is told events, and is a rich renderable. Drawn from another thread than the one that tells it."""

    run: Mapping[str, Any] = field(default_factory=dict)
    tail: str = ""
    _spans: list[_Span] = field(default_factory=list)
    _bar: Mapping[str, Any] | None = None
    _zero: float = field(default_factory=time.monotonic)

    def event(self, event: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        self.run = run or self.run
        data, t_s = event["data"], event.get("t_s")
        if event["kind"] == "progress":
            self._bar = data
        if event["kind"] == "phase" and data["name"] != "ready":
            self._enter(data, t_s if is_number(t_s) else self._now())
        started = seconds_of((self.run.get("attempts") or [{}])[-1].get("started"))
        if started is not None:
            self._zero = time.monotonic() - (time.time() - started)
        elif is_number(t_s):
            self._zero = time.monotonic() - t_s

    def _enter(self, data: Mapping[str, Any], at: float) -> None:
        if data.get("restart"):
            self._spans.clear()
        if self._spans and self._spans[-1].end is None:
            self._spans[-1].end = at
        self._bar = None
        self._spans.append(_Span(data["name"] + (" (draft)" if data.get("worker") == "draft" else ""), at))

    def _now(self) -> float:
        return max(0.0, time.monotonic() - self._zero)

    # -- drawing ----------------------------------------------------------------------------------------------

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        for line in self._lines(width, max(3, console.height - 8)):
            line.no_wrap = True
            line.overflow = "ellipsis"
            line.truncate(width, overflow="ellipsis")
            yield line

    def _lines(self, width: int, most: int) -> list[Text]:
        spans = list(self._spans)
        lines = [self._head()]
        lines += [self._phase(s, s is spans[-1], width) for s in spans[-most:]]
        lines += self._ladder(width)
        cause = (self.run.get("diagnosis") or {}).get("cause")
        if self.run.get("state") == "failing":
            why = f"{one_line(cause['summary'], 300)} [{cause['class']}]" if cause else "looking for the cause"
            lines.append(Text.assemble(("  ✗ ", "red"), why))
        if self.tail:
            lines.append(Text(one_line(self.tail, 400), style="dim"))
        return lines

    def _head(self) -> Text:
        run = self.run
        state = str(run.get("state") or "")
        version = f" {run['engine_version']}" if run.get("engine_version") else ""
        return Text.assemble(
            (one_line(run.get("name") or "", 60), "bold"), "  ",
            (state, _STATE_STYLES.get(state, "cyan")), f" {seconds(self._now())}  ",
            (one_line(f"{run.get('engine')}{version} on {run.get('target')}, run {run.get('run')}", 200), "dim"),
        )  # fmt: skip

    def _phase(self, span: _Span, current: bool, width: int) -> Text:
        if span.end is not None or not current:
            took = seconds(span.end - span.start) if span.end is not None else "?"
            return Text.assemble(("  ✓ ", "green"), f"{span.name:<15} {took}")
        bar, told = self._bar, ""
        drawn = ""
        if bar is not None:
            told = progress_text(bar.get("phase") or span.name, bar) + "  "
            if width >= _BAR_FROM and is_number(bar.get("fraction")):
                full = round(min(1.0, max(0.0, bar["fraction"])) * _BAR)
                drawn = "━" * full + "╌" * (_BAR - full) + " "
        spent = seconds(max(0.0, self._now() - span.start))
        return Text.assemble(("  ▸ ", "cyan"), (f"{span.name:<15} ", "bold"), (drawn, "cyan"), told, (spent, "dim"))

    def _ladder(self, width: int) -> list[Text]:
        """One line, then one for what a rung waits for or why it is not met."""
        found = {p["rung"]: p for p in list(self.run.get("probes") or [])}
        if not found:
            return []
        line, reasons = Text("  "), []
        for rung in _RUNGS:
            probe = found.get(rung)
            if probe is None:
                line.append(f"· {rung}  ", "dim")
                continue
            sign, style = _SIGNS[probe["status"]]
            line.append(f"{sign} ", style)
            line.append(rung)
            if is_number(probe.get("at_s")) and probe["status"] != "waiting" and width >= _BAR_FROM:
                line.append(f" {seconds(probe['at_s'])}", "dim")
            line.append("  ")
            if probe.get("why") and probe["status"] != "ok":
                reasons.append(Text(f"    {rung} {probe['status']}: {one_line(probe['why'], 200)}", "dim"))
        return [line, *reasons[-2:]]
