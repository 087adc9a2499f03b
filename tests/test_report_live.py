"""The live view on a real pseudo-terminal: it draws, it fits, it gives the terminal back however it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bringup.report.picture import Picture
from tests.report_helpers import COMMANDS, HOSTILE, OUT_OF_MEMORY, PROBES, event, progress, ready_run, run_of

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
ROOT = Path(__file__).parent.parent
#: what every script begins with: a reporter on this terminal, and a start that it was told of
PRELUDE = """
import os, signal, sys, time
from bringup.report import choose
from tests.report_helpers import *
reporter = choose(json_mode=False, jsonl=False, quiet=False, no_color=False)
run = run_of((None), PROBES[:2])
reporter.event(event("state", 0.0, state="starting", code=40, why=None), run)
reporter.event(event("phase", 0.0, name="spawn", worker=None), run)
reporter.event(event("phase", 1.5, name="weights", worker=None), run)
reporter.event(progress(2.0, 0.6, done=3.0, total=5.0, rate=0.5, eta_s=4.0), run)
reporter.tail("the newest log line")
"""


class Terminal:
    """A program on a pseudo-terminal of its own."""

    def __init__(self, code: str, columns: int = 80, **environ: str) -> None:
        self.seen = ""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            kept = {k: v for k, v in os.environ.items() if k not in ("CI", "NO_COLOR", "COLUMNS", "LINES")}
            env = {**kept, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **environ}
            os.execve(sys.executable, [sys.executable, "-c", "input()\n" + PRELUDE + code], env)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.write(self._fd, b"\n")  # it begins when the size is set

    def read(self, until: Callable[[str], bool] = lambda _: False, seconds: float = 20.0) -> str:
        """What it has written, up to the point where *until* holds of it, or to its end."""
        deadline = time.monotonic() + seconds
        while not until(self.seen):
            assert time.monotonic() < deadline, self.seen[-2000:]
            if select.select([self._fd], [], [], 0.1)[0]:
                try:
                    data = os.read(self._fd, 65536)
                except OSError:
                    break  # the other end is closed
                if not data:
                    break
                self.seen += data.decode("utf-8", "replace")
        return self.seen

    def end(self) -> int:
        """The wait status, after its end."""
        self.read()
        os.close(self._fd)
        return os.waitpid(self.pid, 0)[1]


def plain(text: str) -> str:
    """*text* without escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


@pytest.mark.parametrize("columns", [40, 80, 140])
def test_it_draws_within_the_width_and_leaves_the_finished_picture(columns: int) -> None:
    code = "reporter.note('a note')\ntime.sleep(0.4)\nreporter.finish(ready_run())\nreporter.close()"
    terminal = Terminal(code, columns)
    terminal.end()
    seen = terminal.seen
    assert seen.count(HIDE) == 1
    assert seen.count(SHOW) == 1
    drawn, left = seen[seen.index(HIDE) :].split(SHOW)
    assert max(map(len, re.split(r"[\r\n]+", plain(drawn)))) <= columns
    frame = plain(drawn)
    for part in ("chat", "starting", "✓ spawn", "1.50 s", "▸ weights", "60% 3/5", "✓ port", "✓ health", "the newest"):
        assert part in frame, part
    assert "a note" in frame
    if columns >= 80:
        assert "━━━" in frame
        assert "· completion" in frame
    finished = plain(left)
    assert "ready after 13.5 s: chat" in finished
    assert "curl http://127.0.0.1:8000/v1/chat/completions" in finished
    assert "the newest" not in finished


def test_it_redraws_at_most_ten_times_a_second() -> None:
    code = """
begun = time.monotonic()
while time.monotonic() - begun < 1.0:
    reporter.event(progress(2.0, 0.5), run)
    reporter.tail(str(time.monotonic()))
reporter.close()
"""
    terminal = Terminal(code)
    terminal.end()
    assert 3 <= terminal.seen.count("chat") <= 14  # one second, the first and the last frame


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("reporter.close(); reporter.close()", 0),
        ("raise SystemExit(3)", 3),
        ("raise KeyboardInterrupt", None),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(20)", -signal.SIGTERM),
        ("os.kill(os.getpid(), signal.SIGHUP); time.sleep(20)", -signal.SIGHUP),
        ("reporter.finish(run_of(OUT_OF_MEMORY, state='failed')); raise SystemExit(0)", 0),
    ],
)
def test_the_cursor_comes_back_however_it_ends(code: str, status: int | None) -> None:
    terminal = Terminal(code)
    ended = os.waitstatus_to_exitcode(terminal.end())
    assert terminal.seen.count(HIDE) == 1
    assert terminal.seen.rindex(SHOW) > terminal.seen.rindex(HIDE)
    assert status is None or ended == status


def test_an_interrupt_from_the_keyboard_gives_the_terminal_back() -> None:
    code = """
try:
    print("hands free", flush=True)
    time.sleep(30)
except KeyboardInterrupt:
    reporter.close()
    print("left running")
"""
    terminal = Terminal(code)
    terminal.read(lambda seen: "hands free" in seen)
    os.kill(terminal.pid, signal.SIGINT)
    assert os.waitstatus_to_exitcode(terminal.end()) == 0
    assert terminal.seen.rindex(SHOW) < terminal.seen.rindex("left running")


def test_handlers_of_others_are_left_alone_and_ours_are_taken_back() -> None:
    code = """
held = signal.getsignal(signal.SIGTERM)
reporter.close()
print("ours" if held is not signal.SIG_DFL else "none", signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
mine = lambda *_: None
signal.signal(signal.SIGTERM, mine)
other = choose(json_mode=False, jsonl=False, quiet=False, no_color=False)
other.event(event("phase", 0.0, name="spawn", worker=None), run)
print("kept", signal.getsignal(signal.SIGTERM) is mine)
other.close()
"""
    terminal = Terminal(code)
    terminal.end()
    assert "ours True" in terminal.seen
    assert "kept True" in terminal.seen


def test_no_color_means_no_colour_and_no_style() -> None:
    terminal = Terminal("time.sleep(0.3)\nreporter.finish(ready_run())", NO_COLOR="1")
    terminal.end()
    assert HIDE in terminal.seen
    assert not re.search(r"\x1b\[[0-9;]*m", terminal.seen)


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"CI": "1"}])
def test_a_terminal_that_cannot_redraw_gets_plain_lines(environ: dict[str, str]) -> None:
    terminal = Terminal("reporter.finish(ready_run())", 80, **environ)
    terminal.end()
    assert "\x1b" not in terminal.seen
    assert "[   2.0s] weights 60% 3/5 shards" in terminal.seen


def test_nothing_is_drawn_for_a_run_that_is_over() -> None:
    code = "reporter.close(); again = choose(json_mode=False, jsonl=False, quiet=False, no_color=False)\n"
    code += "over = run_of(OUT_OF_MEMORY, state='failed')\nagain.event(event('link', 1.0, link='up'), over)\n"
    terminal = Terminal(code + "again.finish(over)")
    terminal.end()
    assert terminal.seen.count(HIDE) == 1
    assert "--max-running-requests 32" in terminal.seen


def frame(picture: Picture, width: int) -> str:
    from rich.console import Console

    console = Console(width=width, height=24, color_system=None, force_terminal=True)
    with console.capture() as captured:
        console.print(picture)
    return captured.get()


@pytest.mark.parametrize("width", [20, 40, 80, 140, 200])
def test_hostile_text_cannot_leave_its_line(width: int) -> None:
    from bringup.facts import Probe

    picture = Picture()
    run = run_of(OUT_OF_MEMORY, (Probe("port", "waiting", 1.0, HOSTILE),), name=HOSTILE, state="failing")
    run["diagnosis"]["cause"]["summary"] = HOSTILE
    picture.event(event("phase", 1.0, name="weights", worker="draft"), run)
    picture.tail = HOSTILE * 100
    text = frame(picture, width)
    assert not any(c in text for c in COMMANDS)
    assert len(text.splitlines()) == 6
    assert max(map(len, text.splitlines())) <= width
    if width >= 80:
        assert "[bold]markup[/bold]" in text


def test_the_ladder_shows_each_rung_and_why_one_waits() -> None:
    from bringup.facts import Probe

    picture = Picture()
    waiting = Probe("completion", "waiting", 14.0, "not yet: 503 loading")
    run = run_of(None, (*PROBES[:2], Probe("models", "skipped", 13.0, "no model list there (404)"), waiting))
    picture.event(event("phase", 1.0, name="serving", worker=None), run)
    text = frame(picture, 120)
    assert "✓ port 12.8 s  ✓ health 12.9 s  – models 13.0 s  … completion" in text
    assert "completion waiting: not yet: 503 loading" in text
    assert "models skipped: no model list there (404)" in text


def test_a_bar_belongs_to_its_phase_and_a_log_that_begins_again_clears_the_list() -> None:
    picture = Picture()
    run = run_of(started=None, attempts=[])
    picture.event(event("phase", 1.0, name="weights", worker=None), run)
    picture.event(progress(2.0, 0.5, done=1.0, total=2.0), run)
    assert "50% 1/2 shards" in frame(picture, 80)
    picture.event(event("phase", 3.0, name="kv-cache", worker=None), run)
    text = frame(picture, 80)
    assert "50%" not in text
    assert "✓ weights         2.00 s" in text
    picture.event(event("phase", 4.0, name="args", worker=None, restart=1), run)
    assert "weights" not in frame(picture, 80)


def test_a_short_screen_shows_the_newest_phases() -> None:
    picture = Picture()
    for n in range(40):
        picture.event(event("phase", float(n), name=("weights", "graphs")[n % 2], worker=None), ready_run())
    assert len(frame(picture, 80).splitlines()) <= 22
