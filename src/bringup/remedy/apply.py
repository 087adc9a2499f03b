"""A remedy applied to a command: the argv to paste."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bringup.facts import Change, Diagnosis, Remedy


def with_commands(diagnosis: Diagnosis, argv: Sequence[str]) -> Diagnosis:
    """*diagnosis* whose remedies carry the corrected command, where every change of one is known."""
    remedies = tuple(replace(r, command=corrected(argv, r)) for r in diagnosis.remedies)
    return replace(diagnosis, remedies=remedies)


def corrected(argv: Sequence[str], remedy: Remedy) -> tuple[str, ...] | None:
    """*argv* with the remedy's changes made; None if one of them is no change of the command line.

    A flag is replaced where it stands (both ``--flag v`` and ``--flag=v``), else appended; ``VAR=value`` goes in
    front. A shell string (``bash -c``) is not edited: a wrong edit would be worse than none.
    """
    words = list(argv)
    if not words or not remedy.changes or any(c.to is None for c in remedy.changes):
        return None
    if any(w in ("-c", "-lc", "-ic") for w in words[1:3]) and words[0].rsplit("/", 1)[-1] in ("sh", "bash", "dash", "zsh"):
        return None
    for change in remedy.changes:
        if change.where == "env":
            words = [f"{change.name}={change.to}", *(w for w in words if not w.startswith(f"{change.name}="))]
        elif change.where == "flag":
            words = _with_flag(words, change)
        else:
            return None
    return tuple(words)


def _with_flag(words: list[str], change: Change) -> list[str]:
    value = change.to or ""
    for i, word in enumerate(words):
        if word == change.name:
            if i + 1 < len(words) and value:
                return [*words[: i + 1], value, *words[i + 2 :]]
            return words
        if word.startswith(change.name + "="):
            return [*words[:i], f"{change.name}={value}", *words[i + 1 :]]
    return [*words, change.name, *([value] if value else [])]
