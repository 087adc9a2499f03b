"""Lines for pipes and CI, events for programs, and which reporter fits where."""

from __future__ import annotations

import io
import json
import os

import pytest

from bringup.report import JsonlReporter, NullReporter, QuietReporter, choose
from bringup.report.plain import PlainReporter
from bringup.report.reporter import say
from tests.report_helpers import COMMANDS, HOSTILE, OUT_OF_MEMORY, event, progress, ready_run, run_of


class Told:
    """A plain reporter and what it has written so far."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        self.reporter = PlainReporter(self.stream)

    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_start_is_told_line_by_line(told: Told) -> None:
    run = run_of()
    told.reporter.note("no plan: going on without one")
    told.reporter.event(event("state", None, state="launching", code=30, **{"from": "planned"}, why=None), run)
    told.reporter.event(event("state", 0.0, state="starting", code=40, **{"from": "launching"}, why=None), run)
    told.reporter.event(event("phase", 0.0, name="spawn", worker=None), run)
    told.reporter.event(event("phase", 3.24, name="weights", worker="draft"), run)
    told.reporter.event(progress(4.0, 0.6, done=3.0, total=5.0, eta_s=3.2), run)
    told.reporter.event(event("probe", 12.3, rung="health", status="ok", at_s=12.3, why=None), run)
    told.reporter.event(event("state", 13.5, state="ready", code=60, **{"from": "starting"}, why=None), run)
    assert told.lines() == [
        "no plan: going on without one",
        "launching chat (vllm), run 1abc",
        "[   3.2s] weights (draft model)",
        "[   4.0s] weights 60% 3/5 shards, about 4 s left",
        "[  12.3s] probe health ok",
        "[  13.5s] ready",
    ]


def test_a_bar_is_told_at_each_tenth_or_after_five_seconds(told: Told) -> None:
    for n in range(1001):
        told.reporter.event(progress(n / 1000, n / 1000), {})
    assert 10 <= len(told.lines()) <= 12
    assert "100%" in told.lines()[-1]
    slow = Told()
    for n in range(100):
        slow.reporter.event(progress(n * 1.0, 0.1 + n / 10_000), {})
    assert 18 <= len(slow.lines()) <= 21


def test_a_bar_that_repeats_itself_is_told_once_and_a_new_bar_again(told: Told) -> None:
    for t_s, fraction in ((1, 0.5), (2, 0.5), (20, 0.5), (21, 1.0), (22, 0.0), (23, 0.5)):
        told.reporter.event(progress(float(t_s), fraction), {})
    assert [line.split()[-1] for line in told.lines()] == ["50%", "100%", "0%", "50%"]


def test_a_probe_that_waits_is_not_told_over_and_over(told: Told) -> None:
    for n in range(40):
        why = ("connection refused", "503 loading")[n % 2]
        told.reporter.event(event("probe", n * 0.25, rung="health", status="waiting", at_s=n * 0.25, why=why), {})
    assert len(told.lines()) <= 3
    told.reporter.event(event("probe", 10.0, rung="health", status="failed", at_s=10.0, why="broken"), {})
    assert told.lines()[-1] == "[  10.0s] probe health failed: broken"


def test_what_goes_wrong_is_told_once(told: Told) -> None:
    symptom = event(
        "symptom", 2.0, rule="r", **{"class": "gpu-oom-weights"}, role="cause", fatal=True, text="CUDA out of memory"
    )
    told.reporter.event(symptom, {})
    told.reporter.event(symptom, {})
    told.reporter.event(event("exit", 2.1, code=None, signal="SIGKILL", certain=True, pid=7), {})
    ended = {"state": "failing", "code": 50, "from": "starting", "why": "the server ended: SIGKILL"}
    told.reporter.event(event("state", 2.1, **ended), {})
    assert told.lines() == [
        "[   2.0s] saw gpu-oom-weights: CUDA out of memory",
        "[   2.1s] the server ended with SIGKILL",
    ]


def test_other_things_have_their_lines(told: Told) -> None:
    told.reporter.event(event("link", 1.0, link="lost"), {})
    told.reporter.event(event("link", 2.0, link="up"), {})
    change = {"where": "flag", "name": "--tp", "from": "2", "to": "1", "scope": "parallel"}
    told.reporter.event(event("change", 3.0, changes=[change], why="it fits"), {})
    told.reporter.event(event("state", 4.0, state="stalled", code=45, **{"from": "starting"}, why="no progress"), {})
    told.reporter.event(event("phase", 5.0, name="args", worker=None, restart=1), {})
    told.reporter.event(event("figure", 6.0, rule="r", figures={"a": 1}), {})
    text = told.stream.getvalue()
    for part in ("link lost", "link is up", "changing --tp 1", "it fits", "stalled: no progress", "starts again"):
        assert part in text
    assert len(told.lines()) == 5


def test_the_end_is_the_finished_picture_and_comes_once(told: Told) -> None:
    told.reporter.tail("a log line")
    told.reporter.finish(ready_run())
    told.reporter.finish(ready_run())
    told.reporter.close()
    told.reporter.close()
    text = told.stream.getvalue()
    assert text.count("ready after 13.5 s") == 1
    assert "a log line" not in text
    assert "\x1b" not in text


def test_a_failure_ends_with_its_diagnosis(told: Told) -> None:
    told.reporter.finish(run_of(OUT_OF_MEMORY, state="failed"))
    assert "--max-running-requests 32" in told.stream.getvalue()


def test_hostile_text_stays_on_its_line(told: Told) -> None:
    told.reporter.note(HOSTILE)
    told.reporter.event(event("probe", 1.0, rung="port", status="waiting", at_s=1.0, why=HOSTILE), {})
    told.reporter.event(event("state", 1.0, state="failing", code=50, **{"from": "starting"}, why=HOSTILE), {})
    symptom = {"rule": "r", "class": "c", "role": "cause", "fatal": True, "text": HOSTILE + "x" * 1_000_000}
    told.reporter.event(event("symptom", 1.0, **symptom), {})
    assert len(told.lines()) == 4
    assert not any(c in told.stream.getvalue() for c in COMMANDS)
    assert max(map(len, told.lines())) < 400


def test_a_reader_that_went_away_does_not_stop_the_watch() -> None:
    r, w = os.pipe()
    stream = os.fdopen(w, "w")
    reporter = PlainReporter(stream)
    os.close(r)
    reporter.note("nobody hears this")
    reporter.finish(ready_run())
    reporter.close()
    with pytest.raises(BrokenPipeError):
        stream.close()


def test_an_encoding_that_lacks_a_letter_gets_it_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    say(stream, "modèle ✓ \udcff")
    assert raw.getvalue() == b"mod\\xe8le \\u2713 \\udcff\n"


def test_each_event_is_one_line_of_json_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = JsonlReporter()
    reporter.event(event("phase", 1.0, name="weights", worker=None), {})
    out, err = capsys.readouterr()
    assert json.loads(out)["data"]["name"] == "weights"
    assert out.endswith("}\n")
    assert err == ""
    reporter.note("talk")
    reporter.note("warning: the disk is full")
    reporter.finish(ready_run())
    reporter.close()
    assert capsys.readouterr() == ("", "warning: the disk is full\n")


def test_json_is_ascii_where_the_output_is_no_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    JsonlReporter().event(event("settings", 1.0, settings={"model": "模型"}), {})
    assert json.loads(raw.getvalue())["data"]["settings"]["model"] == "模型"


def test_quiet_is_one_verdict() -> None:
    stream = io.StringIO()
    reporter = QuietReporter(stream)
    reporter.event(event("phase", 1.0, name="weights", worker=None), run_of())
    reporter.note("talk")
    reporter.finish(ready_run())
    assert stream.getvalue() == "ready: chat at http://127.0.0.1:8000 after 13.5 s\n"


class Screen(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("asked", "environ", "kind"),
    [
        ({"json_mode": True}, {}, "NullReporter"),
        ({"jsonl": True}, {}, "JsonlReporter"),
        ({"quiet": True}, {}, "QuietReporter"),
        ({"quiet": True, "json_mode": True}, {}, "NullReporter"),
        ({}, {}, "LiveReporter"),
        ({}, {"TERM": "dumb"}, "PlainReporter"),
        ({}, {"TERM": ""}, "PlainReporter"),
        ({}, {"CI": "true"}, "PlainReporter"),
        ({}, {"NO_COLOR": "1"}, "LiveReporter"),
    ],
)
def test_the_reporter_fits_where_the_output_goes(
    asked: dict[str, bool], environ: dict[str, str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for name, value in {"TERM": "xterm", **environ}.items():
        monkeypatch.setenv(name, value)
    given = {"json_mode": False, "jsonl": False, "quiet": False, "no_color": False, **asked}
    chosen = choose(**given, stream=Screen())
    assert type(chosen).__name__ == kind
    if not asked:
        assert type(choose(**given, stream=io.StringIO())).__name__ == "PlainReporter"
    assert isinstance(NullReporter(), NullReporter)
