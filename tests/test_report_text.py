"""Finished pictures: what a person must find in them, at any width, whatever logs and models say."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.facts import Cause, Diagnosis, Line, Probe
from bringup.report.clean import one_line
from bringup.report.documents import diagnosis_document, probe_document
from bringup.report.paint import columns
from bringup.report.request import is_keyed, shell_line
from bringup.report.text import (
    render_diagnosis,
    render_error,
    render_outcome,
    render_ready,
    render_runs,
    render_status,
    render_verdict,
)
from bringup.report.words import figure, number, progress_text, seconds
from tests.report_helpers import COMMANDS, HOSTILE, OUT_OF_MEMORY, PROBES, READY, ready_run, run_of

WIDTHS = (40, 80, 140)
FAILED = diagnosis_document(OUT_OF_MEMORY)
UNKNOWN = diagnosis_document(replace(OUT_OF_MEMORY, cause=None, remedies=(), also=(), figures={}))


def flat(text: str) -> str:
    """*text* with its line breaks undone."""
    return re.sub(r"\s+", " ", text)


# -- text of others ------------------------------------------------------------------------------------------------


def test_escape_sequences_and_control_characters_do_not_reach_the_screen() -> None:
    shown = one_line(HOSTILE)
    assert shown == "red [bold]markup[/bold] backline next end"


@given(st.text(st.characters()), st.integers(4, 50))
def test_any_text_becomes_one_short_printable_line(text: str, limit: int) -> None:
    shown = one_line(text, limit)
    assert len(shown) <= limit
    assert all(c.isprintable() or not c.isascii() for c in shown)
    assert not any(c in shown for c in (*COMMANDS, "\n"))
    shown.encode("utf-8")


def test_an_escape_that_never_ends_hides_nothing() -> None:
    assert one_line("before \x1b]0;CUDA out of memory") == "before 0;CUDA out of memory"


@pytest.mark.parametrize("piece", ["x", "\x1b[31m", "\x1b]", "\x1b]0;", "\x00", " ", "é"])
def test_a_line_of_many_megabytes_is_cut_in_no_time(piece: str) -> None:
    begun = time.monotonic()
    assert len(one_line(piece * 3_000_000, 300)) <= 300
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_text_is_harmless_in_every_picture(width: int) -> None:
    bad = HOSTILE
    cause = Cause("x.y", "gpu-oom-weights", bad, bad, 0.5)
    diagnosis = replace(OUT_OF_MEMORY, engine_version=bad, cause=cause, evidence=(Line(bad, 1, bad, bad),))
    probes = (Probe("models", "ok", 1.0, bad, {"served": [bad]}), Probe("completion", "ok", 2.0, bad, {"text": bad}))
    run = run_of(diagnosis, probes, name=bad, model=bad, state="ready", endpoint="http://h:1" + bad)
    pictures = [
        render_diagnosis(run["diagnosis"], width=width),
        render_ready(run, width=width),
        render_status(run, width=width),
        render_status({**run, "state": "failed"}, width=width),
        render_outcome({**run, "state": "stopped"}, width=width),
        render_verdict(run),
        render_runs([run]),
        render_error(bad, bad),
    ]
    for picture in pictures:
        assert not any(c in picture for c in COMMANDS)


# -- ready ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_the_ready_picture_tells_all_that_one_needs(width: int) -> None:
    picture = render_ready(ready_run(), width=width)
    text = flat(picture)
    assert text.startswith("ready after 13.5 s: chat")
    for part in (
        "spawn 0.50 s", "weights 12.2 s", "serving 0.25 s",
        "port ok at 12.8 s", "health ok at 12.9 s", "completion ok at 13.5 s",
        '"Hello! How can I help?"', "48.6 tokens/s", "first token after 0.04 s", "16 tokens",
        "endpoint http://127.0.0.1:8000", "bringup status chat", "bringup logs -f chat", "bringup stop chat",
        "vllm", "run 1abc", "pid 77",
    ):  # fmt: skip
        assert part in text, part
    prose = [line for line in picture.split("\n") if not line.startswith("curl")]
    assert max(map(len, prose)) <= width
    assert "\x1b" not in picture


def the_curl(run: dict[str, Any]) -> list[str]:
    line = next(line for line in render_ready(run, width=40).split("\n") if line.startswith("curl "))
    return shlex.split(line)


def test_the_curl_asks_for_the_served_model_in_the_form_that_it_answers() -> None:
    words = the_curl(ready_run())
    assert words[1] == "http://127.0.0.1:8000/v1/chat/completions"
    body = json.loads(words[words.index("-d") + 1])
    assert body["model"] == "Qwen/Qwen3-8B"
    assert body["messages"][0]["role"] == "user"


@pytest.mark.parametrize(
    ("kind", "path", "key"),
    [
        ("completion", "/v1/completions", "prompt"),
        ("embedding", "/v1/embeddings", "input"),
        ("rerank", "/v1/rerank", "documents"),
    ],
)
def test_the_curl_fits_the_kind_of_server(kind: str, path: str, key: str) -> None:
    probe = probe_document(Probe("completion", "ok", 1.0, None, {"kind": kind}))
    words = the_curl(ready_run(probes=[probe]))
    assert words[1].endswith(path)
    assert key in json.loads(words[words.index("-d") + 1])


def test_the_curl_survives_names_that_break_quoting() -> None:
    name = """it's "q" $(reboot) \x1b[31m`x` ü"""
    probe = probe_document(Probe("models", "ok", 1.0, None, {"served": [name]}))
    line = next(x for x in render_ready(ready_run(probes=[probe]), width=40).split("\n") if x.startswith("curl "))
    assert line.isascii()
    assert "\x1b" not in line
    echoed = subprocess.run(
        ["sh", "-c", line.replace("curl", "printf '%s\\n'", 1)], capture_output=True, text=True, check=True
    )
    assert json.loads(echoed.stdout.splitlines()[-1])["model"] == name


def test_an_address_with_brackets_is_quoted_for_the_shell() -> None:
    assert the_curl(ready_run(endpoint="http://[::1]:8000"))[1] == "http://[::1]:8000/v1/chat/completions"
    assert "'http://[::1]:8000/" in render_ready(ready_run(endpoint="http://[::1]:8000"))


@pytest.mark.parametrize(
    "keyed",
    [
        {"attempts": [{"command": ["vllm", "serve", "m", "--api-key", "[redacted]"], "seconds": 1}]},
        {"attempts": [{"command": ["vllm", "serve", "m", "--api-key=[redacted]"], "seconds": 1}]},
        {"attempts": [{"command": ["VLLM_API_KEY=[redacted]", "vllm", "serve", "m"], "seconds": 1}]},
        {"attempts": [{"command": ["llama-server", "--api-key-file", "/etc/keys"], "seconds": 1}]},
        {"environment": {"LLAMA_API_KEY": "[redacted]"}},
        {"diagnosis": diagnosis_document(replace(READY, settings={"api_key": "[redacted]"}))},
        {"probes": [probe_document(Probe("models", "skipped", 1.0, "the server wants an API key that is not known"))]},
    ],
)
def test_a_keyed_server_is_asked_with_a_variable_and_never_with_the_key(keyed: dict[str, Any]) -> None:
    run = ready_run(**keyed)
    picture = render_ready(run, width=80)
    assert '-H "Authorization: Bearer $KEY"' in picture
    assert "hint: " in picture
    assert "redacted" not in picture


def test_an_open_server_is_asked_without_a_key() -> None:
    assert not is_keyed(ready_run(environment={"HF_TOKEN": "[redacted]", "BRINGUP_RUN": "1abc"}))
    assert "Bearer" not in render_ready(ready_run())


def test_a_run_that_was_not_probed_is_ready_without_an_endpoint() -> None:
    picture = render_ready(run_of(READY, state="ready", ready_s=3.0), width=80)
    assert "curl" not in picture
    assert "bringup stop chat" in picture


def test_a_rung_that_was_skipped_says_why() -> None:
    probes = (*PROBES[:2], Probe("models", "skipped", 13.0, "the server wants an API key that is not known (401)"))
    text = flat(render_ready(ready_run(probes=[probe_document(p) for p in probes]), width=80))
    assert "models skipped at 13.0 s: the server wants an API key that is not known (401)" in text


# -- a diagnosis ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_a_known_cause_is_told_with_its_proof_and_its_cure(width: int) -> None:
    picture = render_diagnosis(FAILED, width=width)
    text = flat(picture)
    assert text.startswith("failed: sglang 0.5.9, in phase kv-cache, ended with SIGKILL or code 137")
    for part in (
        "The recurrent states take 13.76 GiB of the 14.42 GiB that are left.",
        "class gpu-memory-static-too-small, rule sglang.memory.static, 95% sure",
        "Speculation reserves states for 48 requests.",
        "log:412 TP0: RuntimeError: Not enough memory.",
        "log:413: second",
        "what followed from it: log:420 TP1: Received sigquit",
        "--max-running-requests 32", "why: 32 requests need 9.17 GiB", "costs: fewer requests at once",
        "NCCL_DEBUG='a b'", "download the model again",
        "also possible: x.y [gpu-busy-other-process]",
        "weights 25.1 GiB", "weights 30.0 s",
    ):  # fmt: skip
        assert part in text, part
    assert text.index("log:412") < text.index("log:420") < text.index("--max-running-requests")
    commands = [line for line in picture.split("\n") if "sglang.launch_server" in line]
    assert len(commands) == 1  # in one piece, to paste
    assert shlex.split(commands[0])[1:3] == ["python", "-m"]
    assert max(len(line) for line in picture.split("\n") if line not in commands) <= width


def test_an_unknown_failure_says_so_with_the_phase_and_the_most_telling_lines() -> None:
    text = render_diagnosis(UNKNOWN, width=80)
    assert "unknown failure: no rule knows these lines; it was in phase kv-cache" in text
    assert "most telling lines:\n  log:412 TP0: RuntimeError" in text
    assert "sure" not in text


@pytest.mark.parametrize(
    ("diagnosis", "begins"),
    [
        (READY, "ready: vllm 0.32.0"),
        (replace(READY, after="stopped"), "ready, then stopped: vllm 0.32.0"),
        (replace(READY, after="died"), "ready, then died: vllm 0.32.0"),
        (Diagnosis("starting", "vllm", phase="weights"), "still starting: vllm, in phase weights"),
        (Diagnosis("none", "generic"), "no startup in this input"),
        (Diagnosis("stopped", "sglang", phase="graphs"), "stopped: sglang, in phase graphs"),
    ],
)
def test_every_outcome_has_its_line(diagnosis: Diagnosis, begins: str) -> None:
    assert render_diagnosis(diagnosis_document(diagnosis), width=80).split("\n")[0] == begins


def test_long_evidence_is_cut_and_counted() -> None:
    many = tuple(Line("log", n, None, "x" * 2000) for n in range(1, 20))
    text = render_diagnosis(diagnosis_document(replace(OUT_OF_MEMORY, evidence=many)), width=80)
    assert "and 13 more lines" in text
    assert len(text) < 10_000


def test_a_masked_secret_in_a_command_to_paste_is_pointed_out() -> None:
    remedy = replace(OUT_OF_MEMORY.remedies[0], command=("vllm", "serve", "--api-key", "[redacted]"))
    text = render_diagnosis(diagnosis_document(replace(OUT_OF_MEMORY, remedies=(remedy,))), width=80)
    assert "run: (put the secret in first)" in text


def test_assignments_in_front_of_a_command_stay_assignments() -> None:
    line = shell_line(["A=1 2", "B=", "sh", "-c", 'echo "$A$B$1"', "sh", "C=3 4"])
    assert line.startswith("A='1 2' B= sh ")
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == "1 2C=3 4\n"


@settings(max_examples=60, deadline=None)
@given(st.integers(20, 200), st.booleans(), st.sampled_from(["ready", "failed", "none", "starting", "stopped"]))
def test_pictures_hold_at_any_width(width: int, color: bool, state: str) -> None:
    diagnosis = {**FAILED, "state": state}
    run = {**ready_run(), "diagnosis": diagnosis}
    for picture in (
        render_diagnosis(diagnosis, color, width),
        render_status({**run, "state": "failed"}, color, width),
        render_outcome({**run, "state": "starting"}, color, width),
    ):
        assert picture
        assert ("\x1b[" in picture) == color
        assert picture.count("\x1b[0m") * 2 == picture.count("\x1b[")


# -- status, verdict, table, errors --------------------------------------------------------------------------------


def test_a_verdict_is_one_line_for_every_state() -> None:
    moving = {"fraction": 0.6, "done": 3.0, "total": 5.0, "rate": 0.5, "eta_s": 4.0}
    starting = run_of(phase="weights", progress=moving)
    assert render_verdict(starting) == (
        "starting: chat, in phase weights 60% 3/5 shards, 0.5 shards/s, about 4 s left, 13.5 s so far"
    )
    assert render_verdict(ready_run()) == "ready: chat at http://127.0.0.1:8000 after 13.5 s"
    failed = run_of(OUT_OF_MEMORY, state="failed")
    assert render_verdict(failed) == (
        "failed: chat, The recurrent states take 13.76 GiB of the 14.42 GiB that are left [gpu-memory-static-too-small]"
    )
    assert render_verdict(run_of(state="failed", after="died")) == (
        "failed: chat, after it had been ready, the cause is not known"
    )
    assert render_verdict(run_of(state="stopped")) == "stopped: chat"


def test_a_start_that_goes_on_says_how_to_go_on() -> None:
    text = render_outcome(run_of(state="stalled", phase="weights"), width=80)
    for part in ("stalled: chat, in phase weights", "bringup wait chat", "bringup logs -f chat", "bringup stop chat"):
        assert part in text


def test_a_failed_run_names_its_log() -> None:
    assert render_outcome(run_of(OUT_OF_MEMORY, state="failed"), width=80).endswith("bringup logs chat")


def test_status_tells_the_state_the_server_and_the_ladder() -> None:
    text = flat(render_status(ready_run(), width=80))
    for part in ("ready: chat at", "model Qwen/Qwen3-8B", "started 2026-01-31T10:20:30.123Z", "models ok", "run 1abc"):
        assert part in text
    assert "gpu-memory-static-too-small" in render_status(run_of(OUT_OF_MEMORY, state="failed"), width=80)
    assert "lost" in render_status(ready_run(link="lost"), width=80)
    assert render_status({}) == "nothing is recorded of this run"


def test_a_long_path_is_never_broken_where_it_is_copied() -> None:
    path = "/models/" + "long-name/" * 20
    assert path in render_status(ready_run(model=path), width=40)


def test_the_table_of_runs_is_aligned_and_fits() -> None:
    runs = [ready_run(), run_of(name="模型", state="starting", phase="weights")]
    table = render_runs(runs).split("\n")
    assert table[0].split() == ["NAME", "STATE", "ENDPOINT", "ENGINE", "PHASE", "STARTED", "RUN"]
    assert columns(table[2][: table[2].index("starting")]) == table[1].index("ready")
    assert max(len(line) for line in render_runs(runs, 60).split("\n")) <= 60
    assert render_runs([]) == "no runs; start one with `bringup up -- COMMAND...`"


def test_an_error_is_one_line_and_a_hint_after_a_blank_one() -> None:
    assert render_error("there is no run `x`", "see `bringup ps`") == (
        "error: there is no run `x`\n\nhint: see `bringup ps`"
    )
    assert render_error("wrong\nsecond line") == "error: wrong second line"
    assert "\x1b[31merror\x1b[0m: " in render_error("x", color=True)


# -- numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "?"), (float("nan"), "?"), (-1, "0.00 s"), (0.001, "0.00 s"), (9.994, "9.99 s"), (9.996, "10.0 s"),
        (99.96, "100 s"), (119.4, "119 s"), (125, "2 min 05 s"), (3599.6, "60 min 00 s"), (7260, "2 h 01 min"),
    ],
)  # fmt: skip
def test_seconds_for_people(value: Any, text: str) -> None:
    assert seconds(value) == text


def test_a_bar_says_how_far_how_fast_and_how_long() -> None:
    bar = {"fraction": 0.6, "done": 3.0, "total": 5.0, "rate": None, "eta_s": 3.2}
    assert progress_text("weights", bar) == "60% 3/5 shards, about 4 s left"
    bar = {"fraction": 0.25, "done": 1.2e9, "total": 4.8e9, "rate": 1.1e8, "eta_s": 33.0}
    assert progress_text("download", bar) == "25% 1.2 GB of 4.8 GB, 110.0 MB/s, about 33 s left"
    assert progress_text("graphs", {"fraction": 0.999}) == "99%"
    assert progress_text("graphs", {"fraction": 1.0, "eta_s": 0.0}) == "100%"
    for nothing in (None, {}, {"fraction": None}, {"fraction": float("nan")}):
        assert progress_text("weights", nothing) == ""


def test_numbers_have_units() -> None:
    assert figure("weights_gib", 14.42) == "weights 14.42 GiB"
    assert figure("load_s", 3.5) == "load 3.5 s"
    assert figure("slots", 1048576) == "slots 1,048,576"
    assert figure("weights_gib", -0.0) == "weights 0 GiB"
    assert number(33.52) == "33.5"
    assert number(65536) == "65,536"


def test_text_is_rendered_without_the_terminal_library() -> None:
    code = (
        "import sys; from bringup.report.text import render_status, render_error; from bringup.report import choose;"
        "render_error('x'); choose(json_mode=False, jsonl=False, quiet=False, no_color=False);"
        "sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE).returncode == 0
