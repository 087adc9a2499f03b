"""A remedy becomes a command to paste, or none: never a wrong one."""

from __future__ import annotations

import pytest

from bringup.diagnose import Facts, diagnose
from bringup.engines import engine
from bringup.facts import Change, Remedy
from bringup.remedy import corrected, with_commands
from bringup.timeline import Timeline


def remedy(*changes: Change) -> Remedy:
    return Remedy("r", changes, "because")


def flag(name: str, to: str | None) -> Change:
    return Change("flag", name, None, to)


@pytest.mark.parametrize(
    ("argv", "name", "to", "expected"),
    [
        ("vllm serve M", "--port", "2", "vllm serve M --port 2"),
        ("vllm serve M --port 1 --x", "--port", "2", "vllm serve M --port 2 --x"),
        ("vllm serve M --port=1 --x", "--port", "2", "vllm serve M --port=2 --x"),
        ("vllm serve M --port 1 --port 3", "--port", "2", "vllm serve M --port 1 --port 2"),
        ("vllm serve M --port=1 --port 3", "--port", "2", "vllm serve M --port=1 --port 2"),
        ("vllm serve M --port", "--port", "2", "vllm serve M --port 2"),
        ("vllm serve M --port --x", "--port", "2", "vllm serve M --port 2 --x"),
        ("llama-server -ngl -1 -m M", "-ngl", "5", "llama-server -ngl 5 -m M"),
        ("vllm serve M", "--enforce-eager", "", "vllm serve M --enforce-eager"),
        ("vllm serve M --enforce-eager --x", "--enforce-eager", "", "vllm serve M --enforce-eager --x"),
        ("A=1 vllm serve M --port-x 5", "--port", "2", "A=1 vllm serve M --port-x 5 --port 2"),
        ("nohup env A=1 vllm serve M", "--port", "2", "nohup env A=1 vllm serve M --port 2"),
    ],
)
def test_flags_are_replaced_where_they_count_else_appended(argv: str, name: str, to: str, expected: str) -> None:
    assert corrected(argv.split(), remedy(flag(name, to))) == tuple(expected.split())


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("vllm serve M", "X=2 vllm serve M"),
        ("X=1 Y=1 vllm serve M", "X=2 Y=1 vllm serve M"),
        ("env X=1 vllm serve M", "env X=2 vllm serve M"),
        ("env -i Y=1 vllm serve M", "env -i X=2 Y=1 vllm serve M"),
    ],
)
def test_variables_go_where_they_arrive(argv: str, expected: str) -> None:
    assert corrected(argv.split(), remedy(Change("env", "X", None, "2"))) == tuple(expected.split())


@pytest.mark.parametrize(
    "argv",
    ["bash -c X", "/bin/sh -ec X", "nohup bash -lc X", "A=1 bash --login -c X", "env B=1 zsh -c X", "", "A=1"],
)
def test_what_cannot_be_edited_safely_is_not(argv: str) -> None:
    assert corrected(argv.split(), remedy(flag("--port", "2"))) is None


def test_changes_beside_the_command_line_give_no_command() -> None:
    words = ["vllm", "serve", "M"]
    assert corrected(words, remedy(Change("package", "numpy", None, "1.26"))) is None
    assert corrected(words, remedy(flag("--port", None))) is None
    assert corrected(words, remedy()) is None
    assert corrected(["sudo", *words], remedy(Change("env", "X", None, "2"))) is None
    assert corrected(["sudo", *words], remedy(flag("--port", "2"))) == ("sudo", *words, "--port", "2")


def test_several_changes_are_made_together() -> None:
    both = remedy(Change("env", "X", None, "1"), flag("--a", "2"), flag("--b", ""))
    assert corrected(["serve", "--a=1"], both) == ("X=1", "serve", "--a=2", "--b")


def test_a_diagnosis_brings_the_command_where_the_goal_has_a_value() -> None:
    known = engine("sglang")
    reading = Timeline(known)
    reading.feed(
        b"[2026-03-02 10:00:01] Max running requests is reset to 48 for speculative decoding.\n"
        b"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    )
    found = with_commands(diagnose(reading.view, known, Facts()), ["python", "-m", "sglang.launch_server"])
    commands = {r.id: r.command for r in found.remedies}
    assert commands["smaller-state"] == ("python", "-m", "sglang.launch_server", "--mamba-ssm-dtype", "bfloat16")
    assert commands["fewer-running-requests"] is None  # nobody has computed a number yet
