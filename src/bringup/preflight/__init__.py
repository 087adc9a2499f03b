"""Pure: checks over facts, before anything is launched. Only certainty refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Check", "program_found"]


@dataclass(frozen=True, slots=True)
class Check:
    """A blocker: what is wrong in one line, and what to do."""

    id: str
    summary: str
    fix: str


def program_found(program: str, exists: Callable[[str], bool]) -> Check | None:
    """A blocker if the command's program is nowhere; ``exists`` looks it up as the launch will."""
    if exists(program):
        return None
    where = "does not exist" if "/" in program else "is not on PATH"
    return Check("program", f"the program `{program}` {where}", "check its name, or pass --venv DIR if it lives in one")
