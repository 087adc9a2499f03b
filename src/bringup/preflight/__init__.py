"""Pure: checks over facts, before anything is launched. Only certainty refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Check", "program_found", "shards_there"]


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


def shards_there(model: str, args: Sequence[str], missing: Sequence[str]) -> Check | None:
    """A blocker if the checkpoint's own index names files that are not there.

    Some engines start all the same and answer from memory that nobody filled. A load format that the command names
    may need no weights, or others: then nothing is certain and nothing is refused.
    """
    if not missing or any(a.replace("_", "-").startswith("--load-f") for a in args):
        return None
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return Check(
        "shards",
        f"the checkpoint `{model}` lacks `{missing[0]}`{more}, which its index names",
        "fetch the missing shard again, or launch all the same with --force",
    )
