"""Names of runs: from ``--name``, else from the model, numbered where the name is taken by a run that lives."""

from __future__ import annotations

import re
from pathlib import Path

from bringup.errors import UsageError
from bringup.facts import Command
from bringup.ledger import list_runs
from bringup.states import State

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def name_for(asked: str | None, command: Command, state_dir: Path) -> str:
    """The run's name. Raises UsageError for a name that cannot be one, or that a living run has."""
    taken = _living_names(state_dir)
    if asked is not None:
        if not _NAME.fullmatch(asked):
            raise UsageError(f"`{asked}` cannot be a name", "use letters, digits, `.`, `_` and `-`")
        if asked in taken:
            raise UsageError(
                f"a run named `{asked}` is still there",
                f"stop it with `bringup stop {asked}`, or choose another --name",
            )
        return asked
    base = base_name(command)
    name, n = base, 2
    while name in taken:
        name, n = f"{base}-{n}", n + 1
    return name


def base_name(command: Command) -> str:
    """A name out of the model (its last path part, lower case, without a file ending), else the engine's."""
    text = (command.served_name or command.model or command.engine).rstrip("/").rsplit("/", 1)[-1].lower()
    text = re.sub(r"\.(gguf|safetensors|bin)$", "", text)
    text = re.sub(r"[^a-z0-9._-]+", "-", text).strip("-._")
    return text[:60] or command.engine


def _living_names(state_dir: Path) -> set[str]:
    found: set[str] = set()
    for run in list_runs(state_dir):
        document = run.read()
        if document and not State.of(document["state"]).final:
            found.add(document["name"])
    return found
