"""What a log comes to: the recorded starts of every engine, whole and cut, and everything that is no start."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bringup.diagnose import Facts, diagnose, whose
from bringup.engines import anyone, engine
from bringup.facts import Exit
from bringup.pilot.judge import judge_file
from bringup.timeline import Timeline
from tests.logs import LOGS, Recorded, judge, outcome_of, recorded, timeline, without_exit

NAMES = [r.name for r in recorded()]
HEALTHY = [r for r in recorded() if r.healthy]
SIGTERM, SIGKILL = Exit(None, "SIGTERM"), Exit(None, "SIGKILL")
#: the words by which each engine says that it is ready
READY = {
    "sglang": b"fired up and ready to roll",
    "vllm": b"Application startup complete",
    "llamacpp": b"listening on|model loaded",
    "transformers": b"Application startup complete",
}


def test_there_are_recorded_logs() -> None:
    assert len(recorded()) > 80
    assert {r.engine.name for r in recorded()} >= {"sglang", "vllm", "llamacpp", "transformers"}


@pytest.mark.parametrize("log", recorded(), ids=NAMES)
def test_every_recorded_start_is_told_right(log: Recorded) -> None:
    found = judge(log.engine, log.read(), exit=log.exit)
    assert outcome_of(found) == (log.state, log.after, log.class_)
    if log.class_ is not None and found.cause is not None:
        assert found.cause.confidence >= (0.4 if log.class_ == "interrupted" else 0.6)
        assert "?" not in found.cause.summary


@pytest.mark.parametrize("log", recorded(), ids=NAMES)
def test_every_recorded_start_is_told_without_its_exit(log: Recorded) -> None:
    state, after, class_ = without_exit().get(log.name, (log.state, log.after, log.class_))
    assert outcome_of(judge(log.engine, log.read())) == (state, after or None, class_ or None)


@pytest.mark.parametrize("log", recorded(), ids=NAMES)
def test_every_recorded_log_is_recognised_or_told_all_the_same(log: Recorded) -> None:
    name = whose(log.read().decode(errors="replace"))
    assert name in (log.engine.name, "generic")
    found = judge_file([str(log.path)], exit_=log.exit)
    assert (found.state, found.cause.class_ if found.cause else None) == (log.state, log.class_)


def test_only_logs_without_a_word_of_the_engine_are_not_recognised() -> None:
    unknown = [r.name for r in recorded() if whose(r.read().decode(errors="replace")) == "generic"]
    assert unknown == ["llamacpp/bad_flag_name"]


@pytest.mark.parametrize("log", HEALTHY, ids=[r.name for r in HEALTHY])
def test_a_healthy_start_is_never_called_failed_nor_ready_too_early(log: Recorded) -> None:
    known, words = log.engine, READY[log.engine.name].split(b"|")
    reading = Timeline(known)
    said = False
    for line in log.read().splitlines(keepends=True):
        reading.feed(line)
        said = said or any(w in line for w in words)
        view = reading.view
        assert view.fatal is None, line
        for ended in (False, True):
            found = diagnose(view, known, Facts(ended=ended))
            assert found.state in ("none", "starting", "ready"), line
            assert found.state != "ready" or said, line
            assert found.cause is None, line


@pytest.mark.parametrize("log", recorded(), ids=NAMES)
def test_a_log_cut_anywhere_is_never_told_with_a_wrong_cause(log: Recorded) -> None:
    data = log.read()
    cuts = random.Random(log.name).sample(range(len(data) + 1), min(12, len(data)))
    for cut in cuts:
        found = judge(log.engine, data[:cut])
        assert found.state in ("none", "starting", log.state, "ready"), cut
        if found.cause is not None and cut > 0.9 * len(data):
            assert found.cause.class_ in (log.class_, "other-unspecified", "interrupted"), (cut, found.cause)


# -- failures of other starts, put into a healthy one -----------------------------------------------------------

HEARTHS = {
    "sglang": ("sglang/0523_ok_tp1", b"Load weight begin"),
    "vllm": ("vllm/ok_qwen3", b"Starting to load model"),
    "llamacpp": ("llamacpp/ok_smollm2", b"load_model"),
    "transformers": ("transformers/ok_qwen3", b"Started server process"),
}


@pytest.mark.parametrize("name", HEARTHS)
def test_a_failure_put_into_a_healthy_log_is_told_if_the_log_ends_there_and_only_then(name: str) -> None:
    known = engine(name)
    base, mark = HEARTHS[name]
    data = (LOGS / f"{base}.log").read_bytes()
    place = data.index(b"\n", data.index(mark)) + 1
    wrong: list[str] = []
    for rule in known.failures:
        for sample in rule.samples if rule.role != "benign" else ():
            put = sample.strip("\n").encode() + b"\n"
            whole = judge(known, data[:place] + put + data[place:], exit=Exit(0))
            if outcome_of(whole) != ("ready", "stopped", None):
                wrong.append(f"{rule.id}: became {outcome_of(whole)} though it was ready later")
            cut = judge(known, data[:place] + put, exit=Exit(1))
            told = cut.cause.class_ if cut.cause else None
            if cut.state != "failed" or (rule.role == "cause" and told != rule.class_):
                wrong.append(f"{rule.id} ({rule.class_}): {outcome_of(cut)} for {sample[:80]!r}")
            if rule.fatal and timeline(known, data[:place] + put).view.fatal is None:
                wrong.append(f"{rule.id} is fatal and was not")
    assert not wrong


def test_figures_of_all_patterns_that_hit_one_line_are_kept() -> None:
    line = b"ValueError: To serve at least one request with the model's max seq len (4194304), (4.0 GiB KV cache is "
    line += b"needed, which is larger than the available KV cache memory (1.0 GiB). Based on the available memory\n"
    found = judge(engine("vllm"), line, exit=Exit(1))
    assert found.figures["kv_needed_gib"] == 4.0
    assert found.cause is not None
    assert "4.0" in found.cause.summary


def test_a_symptom_that_was_overcome_is_only_mentioned() -> None:
    known = engine("sglang")
    data = (LOGS / "sglang/0523_ok_tp1.log").read_bytes()
    place = data.index(b"\n", data.index(b"Load weight begin")) + 1
    oom = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB.\n"
    found = judge(known, data[:place] + oom + data[place:])
    assert outcome_of(found) == ("ready", "stopped", None)
    assert [c.id for c in found.also] == ["torch.oom"]


# -- which of several is the cause ------------------------------------------------------------------------------

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 0 has a total capacity of 23 GiB"
START = b"[2026-12-01 02:49:28 TP0] Load weight begin. avail mem=19.85 GB\n"


def trace(rank: str, error: str, frames: int = 4) -> bytes:
    head = f"[2026-12-01 02:49:30 {rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
    body = "".join(f'  File "/opt/venv/sglang/srt/x.py", line {i}, in load_model\n    f{i}()\n' for i in range(frames))
    return f"{head}{body}{error}\n\n".encode()


def test_the_first_cause_in_time_wins_across_ranks_and_the_rest_is_consequence() -> None:
    data = START + trace("TP1", "ModuleNotFoundError: No module named 'sgl_kernel_x'")
    data += b"[2026-12-01 02:49:31] filler\n" * 200 + trace("TP0", OOM)
    found = judge(engine("sglang"), data, exit=SIGKILL)
    assert found.cause is not None
    assert found.cause.class_ == "missing-python-package"
    assert "sgl_kernel_x" in found.evidence[0].text
    assert any("out of memory" in line.text for line in found.consequences)
    assert any(c.class_.startswith("gpu-oom") for c in found.also)


def test_the_same_failure_of_many_ranks_is_told_once_with_a_count() -> None:
    data = START + b"".join(trace(f"TP{i}", OOM) for i in range(4))
    data += b"[2026-12-01 02:49:33] Received sigquit from a child process. It usually means the child failed.\n"
    found = judge(engine("sglang"), data, exit=SIGKILL)
    assert outcome_of(found) == ("failed", None, "gpu-oom-weights")
    texts = [line.text for line in found.consequences]
    assert sum("out of memory" in t for t in texts) <= 1
    assert any(t.endswith("such lines)") for t in texts) or len(found.evidence) >= 4


def test_of_chained_exceptions_the_innermost_is_the_cause() -> None:
    inner = "ModuleNotFoundError: No module named 'causal_conv1d'"
    outer = (
        "ValueError: Model architectures ['XForCausalLM'] are not supported for now. Supported architectures: dict_keys"
    )
    for sentence in (
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    ):
        frames = '  File "/opt/x.py", line 1, in f\n    g()\n'
        data = (
            START
            + (
                f"Traceback (most recent call last):\n{frames}{inner}\n\n{sentence}\n\n"
                f"Traceback (most recent call last):\n{frames}{outer}\n"
            ).encode()
        )
        found = judge(engine("sglang"), data, exit=Exit(1))
        assert outcome_of(found) == ("failed", None, "missing-python-package")
    alone = judge(engine("sglang"), START + f"Traceback (most recent call last):\n{frames}{outer}\n".encode())
    assert outcome_of(alone) == ("failed", None, "unsupported-architecture")


def test_an_unknown_failure_gives_its_most_telling_lines_and_no_cause() -> None:
    frames = '  File "/opt/x.py", line 1, in f\n    g()\n'
    data = START + f"Traceback (most recent call last):\n{frames}zork.FrobError: the frob is gone\n".encode()
    found = judge(engine("sglang"), data, exit=Exit(1))
    assert found.state == "failed"
    assert found.cause is None or found.cause.class_ == "other-unspecified"
    assert any("frob is gone" in line.text for line in found.evidence)
    assert len(found.evidence) <= 3


def test_a_word_with_a_colon_after_a_torn_traceback_is_no_exception() -> None:
    data = START + b"[2026-12-01 02:49:30 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    data += b'  File "/opt/x.py", line 1, in f\n[2026-12-01 02:49:31 TP1] Loading: 5 files\nDone\n'
    assert [t.exception for t in timeline(engine("sglang"), data).view.traces] == []


# -- ends that leave no line ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "given", "state", "class_"),
    [
        (SIGTERM, {}, "stopped", "interrupted"),
        (Exit(None, "SIGINT"), {}, "stopped", "interrupted"),
        (Exit(None, "SIGHUP"), {}, "stopped", "interrupted"),
        (Exit(143, "SIGTERM", certain=False), {}, "stopped", "interrupted"),
        (SIGKILL, {}, "failed", "interrupted"),
        (Exit(137, "SIGKILL", certain=False), {}, "failed", "interrupted"),
        (SIGKILL, {"oom_kills": 0}, "failed", "interrupted"),
        (SIGKILL, {"oom_kills": 2}, "failed", "host-oom-killed"),
        (Exit(None, "SIGSEGV"), {}, "failed", "segfault"),
        (Exit(None, "SIGILL"), {}, "failed", "illegal-instruction-cpu"),
        (SIGTERM, {"stopped": True}, "stopped", "interrupted"),
        (Exit(0), {"stopped": True}, "stopped", None),
        (Exit(0), {}, "failed", None),
        (Exit(1), {}, "failed", None),
        (Exit(None, None, certain=False), {}, "failed", None),
        (None, {"ended": False}, "starting", None),
    ],
)  # fmt: skip
def test_deaths_without_a_line(ended: Exit | None, given: dict[str, object], state: str, class_: str | None) -> None:
    found = judge(engine("sglang"), START, exit=ended, **given)
    assert outcome_of(found) == (state, None, class_)
    if state == "failed" and class_ == "interrupted":
        assert found.cause is not None
        assert found.cause.confidence < 0.5


@pytest.mark.parametrize("ended", [SIGTERM, SIGKILL, Exit(0), Exit(1)])
def test_an_exception_before_a_signal_counts(ended: Exit) -> None:
    found = judge(engine("sglang"), START + trace("TP0", OOM), exit=ended)
    assert outcome_of(found) == ("failed", None, "gpu-oom-weights")
    told = judge(engine("sglang"), START + trace("TP0", "zork.FrobError: gone"), exit=ended)
    assert told.state == "failed"
    assert told.cause is None or told.cause.class_ == "other-unspecified"


def test_ctrl_c_while_loading_is_no_failure() -> None:
    frames = '  File "/opt/x.py", line 1, in f\n    g()\n'
    data = START + f"Traceback (most recent call last):\n{frames}KeyboardInterrupt\n".encode()
    for ended in (Exit(None, "SIGINT"), Exit(130, "SIGINT", certain=False)):
        found = judge(engine("sglang"), data, exit=ended)
        assert outcome_of(found) == ("stopped", None, "interrupted")
        assert found.cause is not None
        assert "nterrupted" in found.cause.summary


def test_told_to_stop_before_ready() -> None:
    data = (
        START
        + b"[2026-12-01 02:49:31] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
    )
    data += trace("TP0", "RuntimeError: CUDA error: driver shutting down")
    for ended in (None, Exit(0), SIGTERM, SIGKILL):
        assert judge(engine("sglang"), data, exit=ended).state == "stopped", ended


def test_a_death_after_ready() -> None:
    data = (LOGS / "sglang/0523_ok_tp1.log").read_bytes()
    data = data[: data.index(b"\n", data.index(b"ready to roll")) + 1]
    assert outcome_of(judge(engine("sglang"), data, exit=SIGKILL)) == ("ready", "died", "interrupted")
    assert outcome_of(judge(engine("sglang"), data, exit=SIGTERM)) == ("ready", "stopped", None)
    assert outcome_of(judge(engine("sglang"), data, exit=Exit(None, "SIGSEGV"))) == ("ready", "died", "segfault")
    died = judge(engine("sglang"), data + trace("TP0", OOM), exit=SIGKILL)
    assert (died.state, died.after) == ("ready", "died")
    assert died.cause is not None
    assert any("out of memory" in line.text for line in died.evidence)


def test_probes_have_the_last_word_on_ready() -> None:
    data = (LOGS / "sglang/0523_ok_tp1.log").read_bytes()
    data = data[: data.index(b"\n", data.index(b"ready to roll")) + 1]
    assert judge(engine("sglang"), data, exit=Exit(1), probed=False).state == "failed"
    assert judge(engine("sglang"), START, probed=True).state == "ready"
    warm = judge(engine("sglang"), data, probed=False, warmup="HTTP 500", ended=False)
    assert outcome_of(warm) == ("failed", None, "warmup-failure")
    gone = judge(engine("sglang"), START, ended=False, vanished=("sglang::scheduler (pid 7)",))
    assert outcome_of(gone) == ("failed", None, "interrupted")
    assert gone.cause is not None
    assert "sglang::scheduler (pid 7)" in gone.cause.summary


def test_a_sigkill_is_not_blamed_where_a_line_rules_that_out() -> None:
    data = START + b"[2026-12-01 02:49:31] Received sigquit from a child process. It usually means the child failed.\n"
    found = judge(engine("sglang"), data, exit=SIGKILL)
    assert found.state == "failed"
    assert found.cause is None or found.cause.id != "linux.exit-sigkill"


# -- no start at all --------------------------------------------------------------------------------------------

NGINX = b"""2026/12/01 02:45:38 [notice] 1#1: using the "epoll" event method
2026/12/01 02:45:38 [notice] 1#1: nginx/1.25.3
2026/12/01 02:45:38 [notice] 1#1: start worker processes
2026/12/01 02:45:39 [error] 29#29: *1 open() "/usr/share/nginx/html/x" failed (2: No such file), client: 10.0.0.1
2026/12/01 02:45:40 [warn] 29#29: *2 upstream timed out (110: Connection timed out) while reading response header
10.0.0.1 - - [01/Dec/2026:02:45:41 +0000] "GET /running HTTP/1.1" 500 153 "-" "curl/8.5.0"
"""
APT = b"""Reading package lists... Done\rBuilding dependency tree... 50%\rBuilding dependency tree... Done
The following NEW packages will be installed:
  libcurl4 nginx
Get:1 http://mirror.example/debian bookworm/main amd64 libcurl4 amd64 7.88.1 [390 kB]
Fetched 1,230 kB in 1s (1,901 kB/s)
(Reading database ... 45%\r(Reading database ... 100%\rSetting up nginx (1.22.1-9) ...
Processing triggers for libc-bin (2.36-9) ...
"""


@pytest.mark.parametrize("name", ["sglang", "vllm", "llamacpp", "transformers", "tgi", "trtllm", "anyone"])
@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n\r\n\r", NGINX, APT, random.Random(7).randbytes(200_000), b"\x00" * 5000,
     b"\x1f\x8b\x08" + b"\xff\xfe" * 999, b"hello", "ünï\n".encode("utf-16"), b"running failed error exception\n"],
    ids=["empty", "blank", "nginx", "apt", "junk", "nuls", "gzip", "torn", "utf-16", "words"],
)  # fmt: skip
def test_what_is_no_start_is_not_judged(name: str, data: bytes) -> None:
    known = anyone() if name == "anyone" else engine(name)
    for part in (data, data[: len(data) // 2]):
        found = judge(known, part)
        assert found.state in ("none", "starting")
        assert found.cause is None
    if name == "anyone":
        assert judge(known, data).state == "none"


@pytest.mark.parametrize("data", [b"", NGINX, APT])
def test_nobodys_log_is_nobodys(data: bytes, tmp_path: Path) -> None:
    assert whose(data.decode()) == "generic"
    log = tmp_path / "x.log"
    log.write_bytes(data)
    found = judge_file([str(log)])
    assert (found.state, found.engine, found.cause) == ("none", "generic", None)


@pytest.mark.parametrize(
    ("line", "class_"),
    [
        ("error: invalid argument: --no-such-flag", "invalid-flag"),
        ("vllm: error: unrecognized arguments: --x", "invalid-flag"),
        (OOM, None),
        ("bash: line 1: vllm: command not found", None),
        ("OSError: [Errno 98] Address already in use", "port-in-use"),
    ],
)
def test_one_line_that_no_engine_signed_is_explained_all_the_same(
    line: str, class_: str | None, tmp_path: Path
) -> None:
    log = tmp_path / "x.log"
    log.write_text(line + "\n")
    found = judge_file([str(log)], exit_=Exit(1))
    assert found.state == "failed"
    assert found.cause is not None
    assert class_ is None or found.cause.class_ == class_


# -- several files ----------------------------------------------------------------------------------------------


def test_several_files_are_the_ranks_of_one_start(tmp_path: Path) -> None:
    parts = {
        "rank0.log": START + b"[2026-12-01 02:49:35 TP0] waiting\n",
        "rank1.log": START.replace(b"TP0", b"TP1") + trace("TP1", OOM),
        "rank2.log": START.replace(b"TP0", b"TP2") + trace("TP2", OOM),
    }
    for name, data in parts.items():
        (tmp_path / name).write_bytes(data)
    found = judge_file([str(tmp_path / name) for name in parts])
    assert outcome_of(found) == ("failed", None, "gpu-oom-weights")
    assert found.evidence[0].source == "rank1.log"
    assert [line.source for line in found.consequences if line.source == "rank2.log"]


def test_a_start_is_ready_if_one_rank_says_so_and_none_failed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes((LOGS / "sglang/0523_ok_tp1.log").read_bytes())
    (tmp_path / "b").write_bytes(START)
    assert judge_file([str(tmp_path / "b"), str(tmp_path / "a")]).state == "ready"
    assert judge_file([str(tmp_path / "b"), str(tmp_path / "b")]).state == "starting"
