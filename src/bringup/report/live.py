"""The live view on a terminal: phases with times, the bar that moves, the ladder, the newest log line.

Only imported where there is a terminal: rich takes longer to import than everything else together.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Mapping
from types import FrameType
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from bringup.report.clean import one_line
from bringup.report.picture import Picture
from bringup.report.reporter import say

_REDRAW_PER_S = 8
#: states in which there is nothing to follow
_STILL = frozenset({"planned", "refused", "failed", "stopped"})
#: what would end us and leave the cursor hidden
_DEADLY = (signal.SIGTERM, signal.SIGHUP)


class LiveReporter:
    """Draws on *stream* (stderr) and leaves a compact picture behind. The terminal is given back however it ends."""

    def __init__(self, stream: TextIO | None = None, *, color: bool = True, console: Console | None = None) -> None:
        self._stream = stream or sys.stderr
        self._color = color
        self._console = console or Console(
            file=self._stream, color_system="auto" if color else None, highlight=False, markup=False, emoji=False
        )
        self._picture = Picture()
        self._live: Live | None = None
        self._handlers: dict[int, Any] = {}
        self._finished = False

    # -- what is told -----------------------------------------------------------------------------------------

    def event(self, event: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        self._picture.event(event, run)
        if run and self._live is None and not self._finished and run.get("state") not in _STILL:
            self._start()

    def note(self, text: str) -> None:
        try:
            self._console.print(Text(one_line(text), style="dim"), soft_wrap=True)
        except OSError:
            return  # the terminal is gone; the server goes on

    def tail(self, text: str) -> None:
        self._picture.tail = text[:4000]

    def finish(self, run: Mapping[str, Any]) -> None:
        from bringup.report.text import render_outcome

        self.close()
        if not self._finished and run:
            self._finished = True
            say(self._stream, render_outcome(run, self._color, min(self._console.width, 120)))

    def close(self) -> None:
        live, self._live = self._live, None
        if live is None:
            return
        try:
            live.stop()
        except OSError:
            pass  # the terminal is gone
        atexit.unregister(self.close)
        self._release()

    # -- the terminal -----------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._live = Live(
            self._picture,
            console=self._console,
            refresh_per_second=_REDRAW_PER_S,
            transient=True,
            redirect_stdout=False,
        )
        atexit.register(self.close)
        self._hold()
        try:
            self._live.start()
        except OSError:
            self.close()
            self._finished = True

    def _hold(self) -> None:
        """While the cursor is hidden, signals that would end us give the terminal back first."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _DEADLY:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, self._end)

    def _release(self) -> None:
        if threading.current_thread() is threading.main_thread():
            while self._handlers:
                number, handler = self._handlers.popitem()
                signal.signal(number, handler)

    def _end(self, number: int, _: FrameType | None) -> None:
        # Not through the console: the redraw thread may hold its lock at this very moment.
        try:
            os.write(self._stream.fileno(), b"\x1b[?25h\n")
        except (OSError, ValueError):
            pass
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
