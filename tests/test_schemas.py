"""The JSON documents against their schemas: whatever the facts hold, and words that must be refused."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError

from bringup import errors
from bringup.facts import (
    PHASES,
    Cause,
    Change,
    Diagnosis,
    Engine,
    Event,
    EventKind,
    Exit,
    Line,
    PhaseSpan,
    Probe,
    Remedy,
)
from bringup.report.documents import (
    diagnosis_document,
    error_document,
    event_document,
    new_run_document,
    probe_document,
    remedy_document,
    runs_document,
    safe,
)
from bringup.schemas import KINDS, load
from bringup.states import State

VALIDATORS = {kind: Draft202012Validator(load(kind)) for kind in KINDS}

text = st.text(st.characters(), max_size=40) | st.sampled_from(["", "\ud800", "\x1b[31m", "[bold]", "a\nb\0"])
maybe_text = st.none() | text
fraction = st.floats(0, 1)
number = st.floats() | st.integers(-(10**20), 10**20)
seconds = st.none() | st.floats(-10, 1e9)
lines = st.lists(st.builds(Line, text, st.integers(0, 10**12), maybe_text, text), max_size=3).map(tuple)
classes = st.sampled_from(["gpu-oom-weights", "other-unspecified", "tp-not-divisible"])
causes = st.builds(Cause, text.filter(bool), classes, text, text, fraction)
changes = st.builds(
    Change,
    st.sampled_from(["flag", "env", "package", "host", "action"]),
    text,
    maybe_text,
    maybe_text,
    st.sampled_from(["memory", "capacity", "graph", "retry", "network"]),
)
anything = st.recursive(
    st.none() | st.booleans() | number | text | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3) | st.tuples(inner),
    max_leaves=8,
)
remedies = st.builds(
    Remedy,
    text,
    st.lists(changes, min_size=1, max_size=3).map(tuple),
    text,
    st.lists(text, max_size=2).map(tuple),
    st.none() | st.dictionaries(text, anything, max_size=2),
    st.sampled_from([None, "starts", "does-not-start"]),
    st.none() | st.lists(text, max_size=3).map(tuple),
)
exits = st.builds(Exit, st.none() | st.integers(0, 255), st.sampled_from([None, "SIGKILL", "SIGTERM"]), st.booleans())
spans = st.builds(PhaseSpan, st.sampled_from(PHASES), seconds, seconds, st.none() | fraction)
diagnoses = st.builds(
    Diagnosis,
    state=st.sampled_from([*(s.word for s in State), "none"]),
    engine=st.sampled_from(get_args(Engine)),
    after=st.sampled_from([None, "stopped", "died"]),
    engine_version=maybe_text,
    phase=st.none() | st.sampled_from(PHASES),
    exit=st.none() | exits,
    cause=st.none() | causes,
    evidence=lines,
    consequences=lines,
    remedies=st.lists(remedies, max_size=2).map(tuple),
    also=st.lists(causes, max_size=2).map(tuple),
    figures=st.dictionaries(text, number | text, max_size=4),
    settings=st.dictionaries(text, anything, max_size=4),
    phases=st.lists(spans, max_size=3).map(tuple),
)


def valid(kind: str, document: dict[str, Any]) -> None:
    """*document* fits its schema, and is the same after a trip through UTF-8 JSON."""
    printed = json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8")
    VALIDATORS[kind].validate(json.loads(printed))
    assert json.loads(printed) == document


def run_document(**changed: Any) -> dict[str, Any]:
    new = new_run_document(run="1abc", name="chat", target="local", engine="vllm", model="Qwen/Qwen3-8B")
    return {**new, **changed}


def event(kind: EventKind, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    at = "2026-01-31T10:20:30.123Z"
    return event_document(Event(kind, data, seq=3, run="1abc", attempt=1, at=at, t_s=1.5, **more))


@pytest.mark.parametrize("kind", KINDS)
def test_every_schema_is_one_and_stands_alone(kind: str) -> None:
    schema = load(kind)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:bringup:schema:{kind}:1"
    with pytest.raises(ValidationError):
        VALIDATORS[kind].validate({"schema": "bringup.other/1"})


def test_no_schema_for_a_kind_that_is_not_printed() -> None:
    with pytest.raises(KeyError):
        load("../common")


@settings(max_examples=150, deadline=None)
@given(diagnoses)
def test_any_diagnosis_is_valid_json_of_its_schema(diagnosis: Diagnosis) -> None:
    document = diagnosis_document(diagnosis)
    valid("diagnosis", document)
    valid("run", run_document(state="failed", diagnosis=document))
    valid("event", event("diagnosis", {"provisional": True, "diagnosis": document}))


@settings(max_examples=100, deadline=None)
@given(anything)
def test_anything_is_made_safe_for_json(value: Any) -> None:
    made = safe(value)
    assert json.loads(json.dumps(made, allow_nan=False, ensure_ascii=False).encode("utf-8")) == made
    assert safe(made) == made


def test_safe_keeps_what_json_knows_and_turns_the_rest_to_text() -> None:
    assert safe({"a": (1, 2.5, None, True, "ü")}) == {"a": [1, 2.5, None, True, "ü"]}
    assert safe([math.nan, math.inf, -math.inf]) == [None, None, None]
    assert safe({3: {2, 1}}) == {"3": [1, 2]}
    assert safe(b"\xff") == "\ufffd"
    assert "\\udcff" in safe("name\udcff")
    assert isinstance(safe(object()), str)


def test_a_new_run_has_every_key_of_the_contract() -> None:
    document = run_document()
    valid("run", document)
    asked = (
        "run name target engine engine_version model state after link phase progress eta_s endpoint pid started "
        "ready_s attempts plan probes diagnosis"
    )
    assert set(asked.split()) <= set(document)


def test_a_run_in_full_is_valid() -> None:
    probe = probe_document(Probe("completion", "ok", 1.5, None, {"text": "hi", "tokens": 3, "tokens_per_s": 9.5}))
    attempt = {
        "attempt": 1, "command": ["vllm", "serve"], "changes": [], "state": "ready",
        "started": "2026-01-31T10:20:30.123Z", "seconds": 1.5,
    }  # fmt: skip
    progress = {"fraction": 0.6, "done": 3.0, "total": 5.0, "rate": None, "eta_s": 4.0}
    full = run_document(
        state="ready", probes=[probe], attempts=[attempt], progress=progress, endpoint="http://127.0.0.1:8000",
        phase="ready", pid=77, started=attempt["started"], ready_s=1.5, ended=None, later_key={"may": "come"},
    )  # fmt: skip
    valid("run", full)
    valid("runs", runs_document([full, run_document()]))
    valid("runs", runs_document([]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "running"},
        {"phase": "loading"},
        {"engine": "ollama"},
        {"link": "down"},
        {"after": "crashed"},
        {"started": "yesterday"},
        {"endpoint": "127.0.0.1:8000"},
        {"pid": "77"},
        {"progress": {"fraction": 1.5, "done": None, "total": None, "rate": None, "eta_s": None}},
        {"progress": {"fraction": 0.5}},
        {"probes": [{"rung": "ping", "status": "ok", "at_s": None, "why": None}]},
        {"probes": [{"rung": "port", "status": "good", "at_s": None, "why": None}]},
        {"attempts": [{"attempt": 0}]},
        {"diagnosis": {"state": "failed"}},
        {"schema": "bringup.run/2"},
    ],
    ids=lambda w: next(iter(w)),
)
def test_words_and_shapes_outside_the_contract_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        VALIDATORS["run"].validate(run_document(**wrong))


DATA: dict[str, dict[str, Any]] = {
    "state": {"state": "starting", "code": 40, "from": "launching", "why": None},
    "phase": {"name": "weights", "worker": "draft"},
    "progress": {
        "phase": "weights", "rule": "x.y", "fraction": 0.5, "done": 1.0, "total": 2.0, "rate": None, "eta_s": 1.0,
    },
    "figure": {"rule": "x.y", "figures": {"weights_gib": 14.4}},
    "settings": {"settings": {"tp_size": 2, "nested": {"a": [1]}}},
    "symptom": {"rule": "x.y", "class": "gpu-oom-weights", "role": "cause", "fatal": True, "text": "out of memory"},
    "probe": probe_document(Probe("port", "waiting", 0.1, "connection refused")),
    "link": {"link": "lost"},
    "exit": {"code": None, "signal": "SIGKILL", "certain": True, "pid": 77},
    "diagnosis": {"provisional": False, "diagnosis": diagnosis_document(Diagnosis("ready", "vllm"))},
    "change": {"changes": [{"where": "flag", "name": "--tp", "from": "2", "to": "1", "scope": "parallel"}], "why": "x"},
}  # fmt: skip


def test_every_kind_of_event_has_a_schema_for_its_data() -> None:
    assert set(DATA) == set(get_args(EventKind)) == set(load("event")["properties"]["kind"]["enum"])


@pytest.mark.parametrize("kind", DATA)
def test_event_data_is_valid_as_it_is_and_not_without_any_of_its_keys(kind: Any) -> None:
    valid("event", event(kind, DATA[kind]))
    for key in DATA[kind]:
        less = {k: v for k, v in DATA[kind].items() if k != key}
        with pytest.raises(ValidationError):
            VALIDATORS["event"].validate(event(kind, less))


@pytest.mark.parametrize("kind", DATA)
def test_an_event_with_the_data_of_another_kind_is_refused(kind: Any) -> None:
    other = "exit" if kind == "link" else "link"
    with pytest.raises(ValidationError):
        VALIDATORS["event"].validate(event(kind, DATA[other]))


def test_a_log_that_begins_again_says_how_often() -> None:
    valid("event", event("phase", {"name": "args", "worker": None, "restart": 1}, source="log", offset=9, line=2))


def test_errors_are_valid_and_every_exit_code_is_known() -> None:
    for code in errors.EXIT_CODES:
        if code:
            valid("error", error_document(code, "it is wrong", "do this"))
    valid("error", error_document(2, "it is wrong", None))
    with pytest.raises(ValidationError):
        VALIDATORS["error"].validate(error_document(3, "it is wrong", None))


def test_the_words_of_the_schemas_are_the_words_of_the_code() -> None:
    defs = load("run")["$defs"]["bringup-common"]["$defs"]
    assert defs["state"]["enum"] == [s.word for s in State]
    assert defs["phase"]["enum"] == list(PHASES)
    assert defs["engine"]["enum"] == list(get_args(Engine))
    codes = load("event")["$defs"]["state"]["properties"]["code"]["enum"]
    assert codes == [int(s) for s in State]


def test_keys_that_python_cannot_spell_are_spelt_as_in_the_contract() -> None:
    remedy = Remedy("r", (Change("flag", "--tp", "2", "1", "parallel"),), "why", command=("vllm", "serve"))
    document = remedy_document(remedy)
    assert document["changes"] == [{"where": "flag", "name": "--tp", "from": "2", "to": "1", "scope": "parallel"}]
    assert document["command"] == ["vllm", "serve"]
    cause = Cause("x.y", "gpu-oom-weights", "s", "e", 0.5)
    assert diagnosis_document(Diagnosis("failed", "vllm", cause=cause))["cause"]["class"] == "gpu-oom-weights"
