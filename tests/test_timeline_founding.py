"""The founding case: a start of SGLang is followed line by line, never word by word.

The loop that this replaces grepped for ``running``; the first line it met was the settings line, with
``max_running_requests=None`` in it, and it stopped there and knew nothing.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.diagnose import Facts, diagnose
from bringup.engines import engine
from bringup.facts import Exit
from bringup.timeline import Timeline
from tests.logs import LOGS, events, judge, outcome_of

POLLED = re.compile(r"error|failed|exception|running|Application startup complete")
READY = b"The server is fired up and ready to roll!"
VERSIONS = ["0509", "0523"]
KILLED = Exit(None, "SIGKILL")
SGLANG = engine("sglang")
#: what the founding command sets, as the settings line prints it
FLAGS = {
    "model_path": "'/models/Qwen3.6-27B'", "port": "30000", "tp_size": "2", "mem_fraction_static": "0.85",
    "context_length": "65536", "reasoning_parser": "'qwen3'", "tool_call_parser": "'qwen3_coder'",
    "enable_torch_compile": "True", "speculative_algorithm": "'NEXTN'", "speculative_num_steps": "3",
    "speculative_eagle_topk": "1", "speculative_num_draft_tokens": "4", "max_running_requests": "None",
    "crash_dump_folder": "None", "watchdog_timeout": "300", "dist_timeout": "None",
}  # fmt: skip
#: SGLang 0.5.9 model_runner_kv_cache_mixin.py, as its scheduler prints it
NOT_ENOUGH = b"""\
[2026-12-01 02:45:56 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/sglang/srt/managers/scheduler.py", line 2973, in run_scheduler_process
    scheduler = Scheduler(
                ^^^^^^^^^^
  File "/opt/venv/sglang/srt/model_executor/model_runner_kv_cache_mixin.py", line 402, in init_memory_pool
    raise RuntimeError(
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. \
Current value: self.server_args.mem_fraction_static=0.85

[2026-12-01 02:45:56] Received sigquit from a child process. It usually means the child failed.
"""


@cache
def healthy(version: str) -> bytes:
    """The recorded start with the founding command's settings, up to and with its ready line."""
    data = (LOGS / "sglang" / f"{version}_ok_tp1.log").read_bytes()
    data = data[: data.index(b"\n", data.index(READY)) + 1]
    line = settings_line(data)
    text = line.decode()
    for name, value in FLAGS.items():
        text, count = re.subn(
            rf"(\b{name}=|'{name}': )(?:'[^']*'|[^,)}}]+)", lambda m, value=value: m[1] + value, text, count=1
        )
        assert count == 1 or name == "dist_timeout", name
    return data.replace(line, text.encode())


def settings_line(data: bytes) -> bytes:
    return next(line for line in data.splitlines(keepends=True) if b"server_args=" in line)


def loading(version: str) -> bytes:
    """Up to the end of the weights: where the founding case died."""
    data = healthy(version)
    return data[: data.index(b"\n", data.index(b"Load weight end")) + 1]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_settings_line_holds_the_words_of_the_trap(version: str) -> None:
    line = settings_line(healthy(version)).decode()
    assert POLLED.search(line)
    assert all(word in line for word in ("running", "watchdog", "crash", "timeout"))


@pytest.mark.parametrize("version", VERSIONS)
def test_byte_by_byte_there_is_no_verdict_before_the_ready_line(version: str) -> None:
    data = healthy(version)
    reading = Timeline(SGLANG)
    for i in range(len(data) - 1):
        found = reading.feed(data[i : i + 1])
        assert not any(e.kind == "symptom" for e in found)
        if found or i % 211 == 0:
            view = reading.view
            assert view.fatal is None
            assert not view.ready
            assert diagnose(view, SGLANG, Facts(ended=False)).state in ("none", "starting")
    reading.feed(data[-1:])
    found = diagnose(reading.view, SGLANG, Facts(ended=False))
    assert outcome_of(found) == ("ready", None, None)
    assert found.settings["max_running_requests"] is None
    assert found.settings["speculative_algorithm"] == "NEXTN"
    assert (reading.view.port, reading.view.host) == (31000, "127.0.0.1")  # uvicorn's own word comes last


@pytest.mark.parametrize("version", VERSIONS)
def test_the_settings_line_cut_at_any_byte_is_no_verdict_and_no_symptom(version: str) -> None:
    data = healthy(version)
    line = settings_line(data)
    head = data[: data.index(line)]
    for cut in [*range(120), *range(120, len(line), 53), len(line) - 1, len(line)]:
        reading = Timeline(SGLANG)
        found = [*reading.feed(head + line[:cut]), *reading.flush()]
        assert not any(e.kind == "symptom" for e in found), cut
        assert reading.view.fatal is None
        for ended in (False, True):
            assert outcome_of(diagnose(reading.view, SGLANG, Facts(ended=ended))) == ("starting", None, None), cut


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("glue", [b"", b"\n"])
def test_a_settings_line_torn_by_another_process_is_no_symptom(version: str, glue: bytes) -> None:
    line = settings_line(healthy(version))
    for cut in range(40, len(line), 97):
        torn = line[:cut] + glue + b"[2026-12-01 02:45:40] Using default HuggingFace chat template\n" + line[cut:]
        assert not any(e.kind == "symptom" for e in events(SGLANG, [torn])), cut


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_chunks_give_the_same_events(version: str, data: st.DataObject) -> None:
    log = data.draw(st.sampled_from([healthy(version), loading(version) + NOT_ENOUGH]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=30)))
    chunks = [log[a:b] for a, b in zip([0, *cuts], [*cuts, len(log)], strict=True)]
    assert events(SGLANG, chunks) == whole(log)


@cache
def whole(log: bytes) -> list[object]:
    return list(events(SGLANG, [log]))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_memory_error_is_told_when_it_is_there_and_not_before(version: str) -> None:
    data = loading(version) + NOT_ENOUGH
    reading = Timeline(SGLANG)
    told = data.index(b"Scheduler hit an exception")
    first = None
    for i in range(len(data)):
        reading.feed(data[i : i + 1])
        if data[i] == 10 and reading.view.fatal is not None and first is None:
            first = i
    assert first is not None
    assert first > told
    for ended in (None, KILLED, Exit(1), Exit(137, "SIGKILL", certain=False)):
        found = judge(SGLANG, data, exit=ended)
        assert outcome_of(found) == ("failed", None, "gpu-memory-static-too-small"), ended
        assert found.evidence[0].text.startswith("RuntimeError: Not enough memory")
        assert any("sigquit" in line.text for line in found.consequences)
        assert found.phase == "weights"


def test_speculation_is_named_where_the_log_names_it() -> None:
    reset = (
        b"[2026-12-01 02:45:39] WARNING server_args.py:2001: Max running requests is reset to 48 for speculative "
        b"decoding.\n"
    )
    found = judge(SGLANG, reset + loading("0509") + NOT_ENOUGH, exit=KILLED)
    assert found.cause is not None
    assert found.cause.id == "sglang.memory.hybrid-speculation"
    assert "48" in found.cause.summary
    assert any(c.name == "--max-running-requests" for r in found.remedies for c in r.changes)


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=25, deadline=None)
@given(share=st.floats(0.02, 0.999))
def test_killed_or_silent_anywhere_before_ready(version: str, share: float) -> None:
    data = healthy(version)
    data = data[: int(share * (data.index(READY) - 1))]
    assert outcome_of(judge(SGLANG, data, exit=KILLED)) == ("failed", None, "interrupted")
    assert outcome_of(judge(SGLANG, data, exit=KILLED, oom_kills=1)) == ("failed", None, "host-oom-killed")
    assert judge(SGLANG, data, exit=Exit(None, "SIGTERM")).state == "stopped"
    for ended in (False, True):
        silent = judge(SGLANG, data, ended=ended)
        assert silent.state in ("none", "starting")
        assert silent.cause is None


@pytest.mark.parametrize("version", VERSIONS)
def test_the_word_that_was_grepped_for_comes_before_a_warm_up_that_fails(version: str) -> None:
    data = healthy(version)
    data = data[: data.index(b"\n", data.index(b"Uvicorn running on")) + 1]
    assert POLLED.search(data.decode())
    found = judge(SGLANG, data, ended=False)
    assert (found.state, found.phase) == ("starting", "serving")
