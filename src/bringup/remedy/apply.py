"""A remedy applied to a command: the argv to paste."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from bringup.facts import Change, Diagnosis, Remedy
from bringup.peel import leading_assignments

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
#: wrappers that do not hand on the environment they are given
_FRESH = frozenset({"sudo", "doas", "ssh", "pct", "lxc-attach", "docker", "podman", "kubectl", "srun", "mpirun"})
_NEGATIVE = re.compile(r"-\.?\d")


def with_commands(diagnosis: Diagnosis, argv: Sequence[str]) -> Diagnosis:
    """*diagnosis* whose remedies carry the corrected command, where every change of one is known."""
    remedies = tuple(replace(r, command=corrected(argv, r)) for r in diagnosis.remedies)
    return replace(diagnosis, remedies=remedies)


def corrected(argv: Sequence[str], remedy: Remedy) -> tuple[str, ...] | None:
    """*argv* with the remedy's changes made; None if one of them is no change of the command line.

    A flag is replaced where it stands last (both ``--flag v`` and ``--flag=v``; the last one wins), else appended;
    ``VAR=value`` goes in front. A shell string (``bash -c``) is not edited: a wrong edit would be worse than none.
    """
    words = list(argv)
    if not words or not remedy.changes or any(c.to is None for c in remedy.changes):
        return None
    if not leading_assignments(words)[1] or _is_shell_string(words):
        return None
    for change in remedy.changes:
        if change.where == "flag":
            words = _with_flag(words, change)
        elif change.where == "env" and not any(_program(w) in _FRESH for w in words):
            words = _with_variable(words, change)
        else:
            return None
    return tuple(words)


def _program(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def _is_shell_string(words: Sequence[str]) -> bool:
    for i, word in enumerate(words):
        if _program(word) in _SHELLS:
            return any(re.fullmatch(r"[-+][a-z]*c", w) for w in words[i + 1 : i + 4])
    return False


def _with_variable(words: list[str], change: Change) -> list[str]:
    """The variable in front; where ``env`` sets it again, or starts empty, there."""
    word = f"{change.name}={change.to}"
    places = [i for i, w in enumerate(words) if w.startswith(f"{change.name}=")]
    if places:
        return [*words[: places[-1]], word, *words[places[-1] + 1 :]]
    fresh = next((i for i, w in enumerate(words) if w in ("-i", "-", "--ignore-environment") and i), None)
    if fresh is not None and _program(words[fresh - 1]) == "env":
        return [*words[: fresh + 1], word, *words[fresh + 1 :]]
    return [word, *words]


def _with_flag(words: list[str], change: Change) -> list[str]:
    value = change.to or ""
    for i in reversed(range(len(words))):
        if words[i] == change.name:
            if not value:
                return words
            has_value = i + 1 < len(words) and (not words[i + 1].startswith("-") or bool(_NEGATIVE.match(words[i + 1])))
            return [*words[: i + 1], value, *words[i + 1 + has_value :]]
        if words[i].startswith(change.name + "="):
            return [*words[:i], f"{change.name}={value}", *words[i + 1 :]]
    return [*words, change.name, *([value] if value else [])]
