"""Where a start is, from its bytes: phases, progress, figures, endpoint, restarts; the same for any chunking."""

from __future__ import annotations

import random
import re
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.diagnose import diagnose
from bringup.engines import all_engines, engine
from bringup.engines.sglang.settings import parse_server_args
from bringup.timeline import Timeline, View
from bringup.timeline.scan import Message, Scanner
from tests.logs import LOGS, Recorded, events, recorded, timeline

SGLANG, VLLM, LLAMA = engine("sglang"), engine("vllm"), engine("llamacpp")
NAMES = [r.name for r in recorded()]


def lines(*texts: str) -> bytes:
    return "".join(f"[2026-12-01 02:49:28{t}\n" for t in texts).encode()


# -- chunking ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("log", recorded(), ids=NAMES)
def test_every_recorded_log_gives_the_same_in_any_chunks(log: Recorded) -> None:
    data = log.read()
    pick = random.Random(log.name)
    cuts = sorted(pick.randrange(len(data) + 1) for _ in range(40))
    chunks = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert events(log.engine, chunks) == events(log.engine, [data])


@pytest.mark.parametrize("log", recorded(), ids=NAMES)
def test_events_say_where_they_are_in_the_file(log: Recorded) -> None:
    data = log.read()
    starts = {0} | {m.end() for m in re.finditer(rb"\r\n|\n|\r", data)}
    for event in events(log.engine, [data]):
        assert event.offset in starts
        assert event.line == 1 + data[: event.offset].count(b"\n")


PIECES = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"\r", b"[2026-12-01 02:49:28 TP0] ", b"Traceback (most recent call last):\n",
                         b"  File x\n", b"ValueError: x\n", b"server_args=ServerArgs(a=1, b='", b"server_args={'a': ",
                         b"Load weight begin. ", b"avail mem=1.0 GB\n", b"\xe2\x96\x88", b"10%|",
                         b"torch.OutOfMemoryError: CUDA out of memory.\n"]),
        st.binary(max_size=8),
    ),
    max_size=15,
).map(b"".join)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(PIECES, st.integers(1, 9), st.sampled_from(sorted(all_engines())))
def test_any_bytes_are_read_without_harm(data: bytes, step: int, name: str) -> None:
    known = all_engines()[name]
    reading = Timeline(known)
    found = [e for i in range(0, len(data), step) for e in reading.feed(data[i : i + step])] + reading.flush()
    assert found == events(known, [data])
    assert reading.offset == len(data)
    diagnose(reading.view, known)


def without_memory(scanner: Scanner, text: str) -> list[Message]:
    return scanner.scan(text)


@pytest.mark.parametrize("name", sorted(all_engines()))
def test_remembering_forms_changes_nothing(name: str) -> None:
    known = all_engines()[name]
    remembering = Scanner(known.grammar, known.failures)
    pick = random.Random(name)
    texts = {t for r in recorded() for t in r.read().decode(errors="replace").splitlines() if len(t) < 600}
    for text in pick.sample(sorted(texts), 300):
        for _ in range(2):
            other = re.sub("[0-9]", lambda _: pick.choice("0123456789"), text)
            assert remembering.scan(other, other.encode()) == remembering.scan(other)


# -- phases -----------------------------------------------------------------------------------------------------


def test_the_phases_of_recorded_starts() -> None:
    expected = {
        "sglang/0509_ok_tp1": ["spawn", "args", "distributed", "weights", "kv-cache", "serving", "warmup", "ready"],
        "sglang/0523_ok_tp2": ["spawn", "args", "distributed", "weights", "kv-cache", "serving", "warmup", "ready"],
    }
    for log in recorded():
        if log.healthy:
            names = [s.name for s in timeline(log.engine, log.read()).view.spans]
            assert names[-1] in ("ready", "serving", "warmup"), log.name
            assert len(names) == len(set(names)), log.name
        if log.name in expected:
            assert names == expected[log.name]


def test_the_start_is_where_its_slowest_rank_is() -> None:
    reading = Timeline(SGLANG)

    def at(*texts: str) -> str:
        reading.feed(lines(*texts))
        return reading.view.phase

    assert at(" TP0] Load weight begin. avail mem=19.85 GB", " TP1] Load weight begin. avail mem=19.85 GB") == "weights"
    assert at(" TP0] Memory pool end. avail mem=19.84 GB") == "weights"
    assert at(" TP1] Memory pool end. avail mem=19.84 GB") == "kv-cache"
    assert at(" TP0] Load weight end. elapsed=0.05 s, type=Q, avail mem=1 GB, mem usage=1 GB.") == "kv-cache"


def test_a_draft_model_that_loads_second_is_no_restart() -> None:
    passes = [
        "] Init torch distributed begin.",
        "] Load weight begin. avail mem=46.1 GB",
        "] Load weight end. elapsed=9.0 s, type=Qwen3ForCausalLM, avail mem=20.5 GB, mem usage=25.6 GB.",
        "] Memory pool end. avail mem=6.5 GB",
        "] Capture cuda graph begin. This can take up to several minutes. avail mem=6.57 GB",
    ]
    draft = [p.replace("Qwen3ForCausalLM", "Qwen3ForCausalLMMTP").replace("25.6", "0.8") for p in passes]
    reading = Timeline(SGLANG)
    reading.feed(lines("] server_args=ServerArgs(model_path='m', host='h', port=1)", *passes))
    assert (reading.view.phase, reading.view.worker) == ("graphs", None)
    found = reading.feed(lines(*draft[:2]))
    assert (reading.view.phase, reading.view.worker, reading.view.restarts) == ("weights", "draft", 0)
    assert any(e.kind == "phase" and e.data["worker"] == "draft" for e in found)
    reading.feed(lines(*draft[2:], "] Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)"))
    assert reading.view.worker is None
    assert reading.view.figures["weights_gib"] == 25.6
    assert reading.view.figures["draft_weights_gib"] == 0.8


# -- progress and figures ---------------------------------------------------------------------------------------


def test_progress_has_rate_and_eta_and_is_told_once_for_each_step() -> None:
    bars = (
        b"\rLoading safetensors checkpoint shards:   0% Completed | 0/4 [00:00<?, ?it/s]"
        b"\rLoading safetensors checkpoint shards:  25% Completed | 1/4 [00:10<00:30,  0.10it/s]"
        b"\rLoading safetensors checkpoint shards:  25% Completed | 1/4 [00:10<00:30,  0.10it/s]"
        b"\rLoading safetensors checkpoint shards: 100% Completed | 4/4 [00:40<00:00,  0.10it/s]\n"
    )
    found = [e.data for e in events(SGLANG, [bars]) if e.kind == "progress"]
    assert [d["fraction"] for d in found] == [0.0, 0.25, 1.0]
    assert (found[1]["done"], found[1]["total"], found[1]["rate"], found[1]["eta_s"]) == (1.0, 4.0, 0.1, 30.0)
    assert found[0]["eta_s"] is None
    assert timeline(SGLANG, bars).view.spans[-1].progress == 1.0


def test_a_bar_and_a_line_glued_together_are_two_messages() -> None:
    glued = (
        b"Multi-thread loading shards:  50% Completed | 1/2 [00:09<00:09,  9.02s/it]"
        b"[2026-12-01 02:49:28 TP1] Load weight end. elapsed=0.04 s, type=Q, avail mem=19.85 GB, mem usage=0.50 GB.\n"
    )
    found = events(SGLANG, [glued])
    assert [e.kind for e in found if e.kind != "phase"] == ["progress", "figure"]
    assert [e.rank for e in found if e.kind == "figure"] == ["TP1"]


def test_figures_are_numbers_and_the_first_rank_speaks() -> None:
    view = timeline(
        SGLANG, lines(" TP0] Load weight begin. avail mem=19.85 GB", " TP1] Load weight begin. avail mem=7 GB")
    ).view
    assert view.figures["available_before_load_gib"] == 19.85


def test_times_are_the_callers() -> None:
    reading = Timeline(SGLANG)
    reading.feed(lines("] Load weight begin. avail mem=19.85 GB"), 3.0)
    reading.feed(lines("] Load weight end. elapsed=0.04 s, type=Q, avail mem=1.0 GB, mem usage=0.50 GB."), 7.5)
    (span,) = [s for s in reading.view.spans if s.name == "weights"]
    assert (span.started, span.ended) == (3.0, 7.5)


# -- settings and endpoint --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "data", "endpoint"),
    [
        (SGLANG, lines("] server_args=ServerArgs(model_path='m', host='0.0.0.0', port=31000)"), ("0.0.0.0", 31000)),
        (SGLANG, lines("] server_args={'model_path': 'm', 'host': '::', 'port': 7}"), ("::", 7)),
        (SGLANG, lines("] Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)"), ("127.0.0.1", 30000)),
        (LLAMA, (LOGS / "llamacpp/ok_smollm2.log").read_bytes(), ("127.0.0.1", None)),
        (VLLM, (LOGS / "vllm/ok_qwen3.log").read_bytes(), (None, None)),
    ],
)  # fmt: skip
def test_the_endpoint_is_read(known: object, data: bytes, endpoint: tuple[str | None, int | None]) -> None:
    view = timeline(known, data).view  # type: ignore[arg-type]
    assert endpoint[0] in (None, view.host)
    assert endpoint[1] in (None, view.port)
    assert view.port is not None


def test_secrets_in_the_settings_are_masked_at_any_depth() -> None:
    for body in (
        "ServerArgs(api_key='s3cr3tvalue', model_path='m', x={'auth': {'password': 's3cr3tvalue'}}, y=['hf_"
        + "a" * 30
        + "'])",
        "{'api_key': 's3cr3tvalue', 'model_path': 'm', 'x': {'password': 's3cr3tvalue'}, 'y': ('hf_"
        + "a" * 30
        + "',)}",
    ):
        reading = Timeline(SGLANG)
        found = reading.feed(lines(f"] server_args={body}"))
        assert reading.view.settings["model_path"] == "m"
        assert "s3cr3tvalue" not in repr(found) + repr(reading.view)
        assert "hf_aaa" not in repr(found) + repr(reading.view)


def test_known_secrets_are_masked_in_every_line_that_is_kept() -> None:
    reading = Timeline(SGLANG, secrets=frozenset({"topsecretkey"}))
    found = reading.feed(
        b"got topsecretkey\nValueError: bad topsecretkey\ntorch.OutOfMemoryError: CUDA out of memory topsecretkey\n"
    )
    assert "topsecretkey" not in repr(found) + repr(reading.view)


SETTINGS = st.dictionaries(
    st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8), st.lists(st.integers(), max_size=3),
              st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)),
    max_size=6,
)  # fmt: skip


@given(SETTINGS, st.data())
def test_settings_are_parsed_whole_and_a_cut_line_gives_no_half_value(
    values: dict[str, object], data: st.DataObject
) -> None:
    as_repr = "server_args=ServerArgs(" + ", ".join(f"{k}={v!r}" for k, v in values.items()) + ")"
    for text in (as_repr, f"server_args={values!r}"):
        assert parse_server_args(text) == values
        cut = text[: data.draw(st.integers(0, len(text) - 1))]
        part = parse_server_args(cut)
        assert part is None or (part.items() <= values.items() if not _unhashable(values) else set(part) <= set(values))
        for key, value in (part or {}).items():
            assert values[key] == value


def _unhashable(values: dict[str, object]) -> bool:
    return any(isinstance(v, (list, dict)) for v in values.values())


def test_the_settings_hide_their_words_from_every_rule_even_if_a_value_looks_like_a_prefix() -> None:
    body = "ServerArgs(a='[2026-12-01 02:49:28] torch.OutOfMemoryError: CUDA out of memory', b=7)"
    reading = Timeline(SGLANG)
    found = reading.feed(lines(f"] server_args={body}"))
    assert {e.kind for e in found} <= {"settings", "phase"}
    assert reading.view.settings["b"] == 7


# -- several startups in one source -----------------------------------------------------------------------------


def test_the_last_startup_of_a_long_log_counts() -> None:
    good = (LOGS / "sglang/0523_ok_tp1.log").read_bytes()
    bad = (LOGS / "sglang/0523_fail_truncated_shard.log").read_bytes()
    cut = good[: good.index(b"\n", good.index(b"Load weight begin")) + 1]
    assert outcome(bad + good) == ("ready", 1)
    assert outcome(good + bad) == ("failed", 1)
    assert outcome(good + bad + good + cut) == ("starting", 3)


def outcome(data: bytes) -> tuple[str, int]:
    reading = timeline(SGLANG, data)
    return diagnose(reading.view, SGLANG).state, reading.view.restarts


@pytest.mark.parametrize("name", ["sglang/0509_ok_tp1", "vllm/ok_qwen3", "llamacpp/ok_smollm2"])
def test_a_start_again_looks_like_a_first_start(name: str) -> None:
    log = next(r for r in recorded() if r.name == name)
    data = log.read()
    once, twice = timeline(log.engine, data).view, timeline(log.engine, data + data).view
    assert twice.restarts == 1
    assert (twice.phase, bool(twice.ready), twice.figures) == (once.phase, bool(once.ready), once.figures)


def test_rotation_begins_again_from_the_first_byte() -> None:
    data = (LOGS / "sglang/0523_ok_tp1.log").read_bytes()
    reading = Timeline(SGLANG)
    reading.feed(data[: len(data) // 2])
    reading.restart()
    assert reading.offset == 0
    again = reading.feed(data) + reading.flush()
    first = events(SGLANG, [data])
    assert [(e.kind, e.offset, e.data) for e in again] == [(e.kind, e.offset, e.data) for e in first]
    assert reading.view.restarts == 1


# -- movement, memory -------------------------------------------------------------------------------------------


def test_lines_that_only_probes_cause_are_no_movement() -> None:
    reading = Timeline(SGLANG)
    reading.feed(lines("] Load weight begin. avail mem=19.85 GB"))
    before = reading.movement
    reading.feed(lines('] INFO:     127.0.0.1:34262 - "GET /health HTTP/1.1" 503 Service Unavailable'))
    assert reading.movement == before
    reading.feed(lines("] anything else"))
    assert reading.movement == before + 1


def size_of(view: View) -> int:
    return len(view.tail) + len(view.traces) + len(view.found) + len(view.first_errors) + len(view.figures)


def test_memory_stays_flat_however_long_a_log_grows() -> None:
    pick = random.Random(1)
    noise = b"".join(
        f"[2026-12-01 02:49:28 TP{i % 8}] ERROR {pick.randbytes(4).hex()}: {pick.randbytes(30).hex()}\n".encode()
        for i in range(6000)
    )
    trace = b"Traceback (most recent call last):\n  File x\nRuntimeError: CUDA out of memory\n" * 800
    reading = Timeline(SGLANG)
    reading.feed(noise + trace)
    size, forms = size_of(reading.view), len(reading._scanner._forms)
    assert forms <= 4096
    tracemalloc.start()
    try:
        for _ in range(3):
            reading.feed(noise[::-1].replace(b"\n", b"") + b"\n" + noise + trace)
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert size_of(reading.view) <= size + 400
    assert grown < 24 << 20
    assert reading.view.lines > 20000


def test_a_line_of_megabytes_is_read_once_and_its_end_is_not_believed() -> None:
    import time

    for name in sorted(all_engines()):
        started = time.process_time()
        data = b"[x] a: 1%| 0/1 (y) " * 100_000 + b" torch.OutOfMemoryError: CUDA out of memory\nnext\n"
        view = timeline(all_engines()[name], data).view
        assert view.lines >= 2
        assert time.process_time() - started < 5, name
