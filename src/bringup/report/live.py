"""The live view on a terminal: phases with times, the bar that moves, the ladder, the newest log line."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from bringup.report.words import harmless, progress_text, seconds

_REDRAW_PER_S = 8
_SIGN = {"ok": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("–", "yellow"), "waiting": ("…", "cyan")}


class LiveReporter:
    """Draws on stderr and leaves a compact picture behind. The terminal is given back however it ends."""

    def __init__(self, *, color: bool = True, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stderr, no_color=not color, highlight=False)
        self._color = color
        self._live: Live | None = None
        self._run: Mapping[str, Any] = {}
        self._phases: list[tuple[str, float, float | None]] = []
        self._tail = ""
        self._begun = time.monotonic()
        self._offset = 0.0

    # -- what is told -----------------------------------------------------------------------------------------

    def event(self, event: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        self._run = run
        data, t_s = event["data"], event.get("t_s")
        if event["kind"] == "phase" and data["name"] != "ready":
            at = t_s if t_s is not None else self._now()
            if self._phases and self._phases[-1][2] is None:
                name, start, _ = self._phases[-1]
                self._phases[-1] = (name, start, at)
            self._phases.append((data["name"], at, None))
        if t_s is not None:
            self._offset = t_s - (time.monotonic() - self._begun)
        if run and self._live is None and run.get("state") not in ("planned", "refused", "failed", "stopped"):
            self._live = Live(self, console=self._console, refresh_per_second=_REDRAW_PER_S, transient=True)
            self._live.start()

    def note(self, text: str) -> None:
        self._console.print(Text(harmless(text, 600), style="dim"), soft_wrap=True)

    def tail(self, text: str) -> None:
        self._tail = text[:2000]

    def finish(self, run: Mapping[str, Any]) -> None:
        from bringup.report.text import render_outcome

        self.close()
        self._console.file.write(render_outcome(run, self._color) + "\n")

    def close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    # -- the picture ------------------------------------------------------------------------------------------

    def _now(self) -> float:
        return time.monotonic() - self._begun + self._offset

    def __rich__(self) -> Group:
        run = self._run
        head = Text.assemble(
            (str(run.get("name", "")), "bold"),
            f"  {run.get('engine', '')} on {run.get('target', '')}  run {run.get('run', '')}  ",
            (str(run.get("state", "")), "cyan"),
            f"  {seconds(max(0.0, self._now()))}",
        )
        lines = [head]
        for name, start, end in self._phases[-8:]:
            lines.append(self._phase(name, start, end))
        ladder = self._ladder()
        if ladder.plain:
            lines.append(ladder)
        if self._tail:
            lines.append(Text(harmless(self._tail, max(20, self._console.width - 4)), style="dim"))
        for line in lines:
            line.no_wrap = True
            line.overflow = "ellipsis"
        return Group(*lines)

    def _phase(self, name: str, start: float, end: float | None) -> Text:
        if end is not None:
            return Text.assemble(("  ✓ ", "green"), f"{name:<12} {seconds(end - start)}")
        moving = self._run.get("progress")
        bar = ""
        if moving and isinstance(moving.get("fraction"), (int, float)) and self._console.width >= 60:
            width = 20
            full = round(moving["fraction"] * width)
            bar = "━" * full + "╌" * (width - full) + " "
        text = progress_text(moving)
        spent = seconds(max(0.0, self._now() - start))
        return Text.assemble(
            ("  ▸ ", "cyan"), (f"{name:<12} ", "bold"), (bar, "cyan"), text + ("  " if text else ""), spent
        )

    def _ladder(self) -> Text:
        text = Text()
        for probe in self._run.get("probes") or []:
            sign, style = _SIGN[probe["status"]]
            text.append(f"  {sign} ", style)
            text.append(probe["rung"])
            if probe.get("why") and probe["status"] != "ok":
                text.append(f" ({harmless(probe['why'], 60)})", "dim")
        return text
