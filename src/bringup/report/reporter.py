"""What listens while a run goes on, and which one fits where the output goes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Protocol, TextIO


class Reporter(Protocol):
    """Is told everything while a run goes on. Talk goes to stderr, data to stdout."""

    def event(self, event: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        """An event document, and the run document as it is after it (empty where it is not known)."""

    def note(self, text: str) -> None:
        """A sentence for people."""

    def tail(self, text: str) -> None:
        """The newest log line."""

    def finish(self, run: Mapping[str, Any]) -> None:
        """The watch is over: the finished picture."""

    def close(self) -> None:
        """Gives the terminal back. May be called twice."""


class NullReporter:
    """Says nothing but warnings."""

    def event(self, event: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        del event, run

    def note(self, text: str) -> None:
        if text.startswith("warning:"):
            from bringup.report.clean import one_line

            say(sys.stderr, one_line(text))

    def tail(self, text: str) -> None:
        del text

    def finish(self, run: Mapping[str, Any]) -> None:
        del run

    def close(self) -> None:
        return


class QuietReporter(NullReporter):
    """Says nothing but warnings and, at the end, the verdict in one line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def finish(self, run: Mapping[str, Any]) -> None:
        from bringup.report.text import render_verdict

        say(self._stream or sys.stderr, render_verdict(run))


class JsonlReporter(NullReporter):
    """Every event as one line on stdout, at once."""

    def event(self, event: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        del run
        utf8 = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
        sys.stdout.write(json.dumps(event, ensure_ascii=not utf8) + "\n")
        sys.stdout.flush()


def say(stream: TextIO, text: str) -> None:
    """*text* and an end of line to *stream*, at once; what its encoding lacks is escaped.

    Talk that nobody can hear (a closed pipe, a full disk) is no reason to stop following a server.
    """
    try:
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except (OSError, ValueError):
        return


def choose(*, json_mode: bool, jsonl: bool, quiet: bool, no_color: bool, stream: TextIO | None = None) -> Reporter:
    """The reporter for this output: events, silence, a live view on a terminal, or plain lines on *stream*.

    *stream* is where talk goes, stderr unless given.
    """
    if jsonl:
        return JsonlReporter()
    if json_mode:
        return NullReporter()
    talk = sys.stderr if stream is None else stream
    if quiet:
        return QuietReporter(talk)
    if is_live(talk):
        from bringup.report.live import LiveReporter

        return LiveReporter(talk, color=not no_color and not os.environ.get("NO_COLOR"))
    from bringup.report.plain import PlainReporter

    return PlainReporter(talk)


def is_live(stream: TextIO) -> bool:
    """Whether *stream* is a terminal that can redraw and show our signs, and nobody records it (CI)."""
    if not stream.isatty() or os.environ.get("CI"):
        return False
    drawable = os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    return drawable and (stream.encoding or "").lower().startswith("utf")
