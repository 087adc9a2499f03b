"""Rule files keep their word: their own samples match, and nobody else claims them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bringup.diagnose import Facts, diagnose
from bringup.engines import all_engines
from bringup.facts import Exit
from bringup.rules import stack_failures
from bringup.rules.check import (
    check_failures,
    check_grammar,
    check_summaries,
    classes,
    messages,
    satisfied,
)
from bringup.rules.load import pattern
from bringup.rules.model import FailureRule
from bringup.timeline import Timeline

RECORDED = sorted((Path(__file__).parent / "data" / "logs" / "sglang").glob("*.json"))
ENGINES = sorted(all_engines())


def rule(**given: object) -> FailureRule:
    base: dict[str, object] = {
        "id": "x", "class_": "other-unspecified", "engine": "stack", "role": "cause", "fatal": False,
        "specificity": 50, "phase": None, "all": (), "any": (), "none": (), "exits": (), "within": 400,
        "summary": "", "explanation": "", "remedies": (), "samples": (), "not_samples": (), "source": "here",
    }  # fmt: skip
    base.update({k: tuple(map(pattern, v)) if k in ("all", "any", "none") else v for k, v in given.items()})  # type: ignore[arg-type]
    return FailureRule(**base)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ENGINES)
def test_every_line_rule_matches_its_samples_and_no_look_alike(name: str) -> None:
    try:
        grammar = all_engines()[name].grammar
    except FileNotFoundError:
        pytest.skip(f"{name} has no startup.toml")
    assert check_grammar(grammar) == []


@pytest.mark.parametrize("name", ENGINES)
def test_every_failure_rule_matches_its_samples_and_no_other_class_claims_them(name: str) -> None:
    known = all_engines()[name]
    try:
        prefixes = known.grammar.prefixes
    except FileNotFoundError:
        pytest.skip(f"{name} has no startup.toml")
    if not known.own_failures and name != "generic":
        pytest.skip(f"{name} has no failures.toml")
    assert check_failures(known.failures, prefixes) == []


@pytest.mark.parametrize("name", ["sglang", "generic"])
def test_a_summary_never_shows_a_question_mark(name: str) -> None:
    known = all_engines()[name]
    assert check_summaries(known.failures, known.grammar.prefixes) == []


@pytest.mark.parametrize("case", RECORDED, ids=lambda p: p.stem)
def test_a_recorded_start_of_sglang_gets_its_class(case: Path) -> None:
    told = json.loads(case.read_text())
    known = all_engines()["sglang"]
    timeline = Timeline(known)
    list(timeline.feed(case.with_suffix(".log").read_bytes()))
    list(timeline.flush())
    facts = Facts(exit=Exit(**told["exit"]) if told["exit"] else None)
    found = diagnose(timeline.view, known, facts)
    cause = found.cause.class_ if found.cause else None
    assert {"state": found.state, "after": found.after, "class": cause} == told["expected"]


def test_the_stack_has_rules() -> None:
    assert len(stack_failures()) > 40


def test_there_are_as_many_classes_as_the_taxonomy_has() -> None:
    assert len(classes()) == 53


# -- the checker itself --------------------------------------------------------------------------------------


def test_all_and_any_must_be_near_each_other() -> None:
    near = rule(all=["out of memory"], any=["load_model", "load_weights"], within=2)
    assert satisfied(near, ["in load_model", "", "CUDA out of memory"])
    assert not satisfied(near, ["in load_model", "", "", "CUDA out of memory"])
    assert not satisfied(near, ["CUDA out of memory"])


def test_none_forbids_wherever_it_stands() -> None:
    guarded = rule(all=["out of memory"], none=["Process 42"], within=1)
    assert satisfied(guarded, ["out of memory"])
    assert not satisfied(guarded, ["out of memory", *[""] * 9, "Process 42 has 3 GiB"])


def test_no_patterns_are_never_satisfied_by_lines() -> None:
    assert not satisfied(rule(exits=("SIGKILL",)), ["Killed"])


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"all": ["disk is full"], "samples": ("disk is fine",)}, "misses its sample"),
        ({"all": ["full"], "samples": ("full",), "not_samples": ("fullness",)}, "must not"),
        ({"all": ["full"], "samples": ("full",), "class_": "gremlins"}, "taxonomy"),
        ({"all": ["full"], "samples": ("full",), "phase": "lunch"}, "no phase"),
        ({"all": ["full"], "samples": ()}, "no samples"),
        ({"exits": ("SIGKILL",), "role": "cause"}, "must be a fallback"),
        ({"exits": ("killed",), "role": "fallback"}, "neither a code nor a signal"),
    ],
)
def test_a_stanza_that_does_not_keep_its_word_is_told(given: dict[str, object], complaint: str) -> None:
    found = check_failures([rule(**given)])
    assert any(complaint in line for line in found), found


def test_a_rival_of_another_class_is_told_unless_it_is_weaker() -> None:
    mine = rule(id="mine", all=["disk is full"], samples=("the disk is full",), specificity=50)
    loose = rule(id="loose", all=["full"], class_="disk-full", samples=("full",), specificity=50)
    weak = rule(id="weak", all=["full"], class_="disk-full", samples=("full",), specificity=10)
    assert any("loose" in c for c in check_failures([mine, loose]))
    assert check_failures([mine, weak]) == []


def test_a_benign_rule_that_hides_a_cause_is_told() -> None:
    mine = rule(id="mine", all=["disk is full"], samples=("note: the disk is full",))
    noise = rule(id="noise", all=["note:"], role="benign", samples=("note: hello",))
    assert any("hides" in c for c in check_failures([mine, noise]))


def test_a_prefix_in_the_middle_of_a_line_splits_it() -> None:
    prefixes = all_engines()["sglang"].grammar.prefixes
    glued = "Capturing batches:   0%| | 0/9 [00:00<?, ?it/s][2026-12-01 02:49:26 TP0] INFO:     Shutting down"
    assert messages(glued, prefixes) == ["Capturing batches:   0%| | 0/9 [00:00<?, ?it/s]", "Shutting down"]
