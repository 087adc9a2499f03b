"""Docs that cannot rot: every verb, flag, exit code, state, phase, event kind and class is in the reference."""

from __future__ import annotations

from importlib import import_module, resources
from pathlib import Path
from typing import get_args

import click
import pytest

from bringup.cli.main import VERBS
from bringup.errors import EXIT_CODES
from bringup.facts import PHASES, EventKind
from bringup.states import State

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = (ROOT / "docs/reference.md").read_text()
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("verb", VERBS)
def test_every_flag_is_documented(verb: str) -> None:
    command: click.Command = import_module(f"bringup.cli.{VERBS[verb][0]}").command
    for option in command.params:
        if isinstance(option, click.Option):
            assert any(f"`{name}" in REFERENCE or f"{name}`" in REFERENCE for name in option.opts), option.opts


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_in_the_readme(verb: str) -> None:
    assert f"`bringup {verb}" in README or f"`{verb}" in README


def test_every_exit_code_is_documented_as_it_is() -> None:
    for code, meaning in EXIT_CODES.items():
        assert f"| {code} | {meaning} |" in REFERENCE


def test_every_word_is_documented() -> None:
    classes = (resources.files("bringup.rules") / "classes.txt").read_text().splitlines()
    for word in (*PHASES, *get_args(EventKind), *(c.split()[0] for c in classes if c.strip() and c[0] != "#")):
        assert f"`{word}`" in REFERENCE, word
    for state in State:
        assert f"{int(state)} {state.word}" in REFERENCE


def test_every_schema_is_named() -> None:
    for kind in ("run", "runs", "diagnosis", "event", "error"):
        assert f"`bringup.{kind}/1`" in REFERENCE
