"""The frozen shapes of rule files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["cause", "fallback", "collateral", "benign"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One phrase to look for in a line: a literal, or a regular expression after ``re:``.

    ``literal`` is a text that every match contains (for the prefilter), or None where none could be derived.
    """

    text: str
    regex: re.Pattern[str] | None
    literal: str | None

    def search(self, line: str) -> re.Match[str] | bool | None:
        """A match object (regex), True (literal found), or None."""
        if self.regex is not None:
            return self.regex.search(line)
        return True if self.text in line else None


@dataclass(frozen=True, slots=True)
class RemedyRule:
    """A remedy as a goal: numbers are ``{placeholders}`` filled from figures and settings, or absent."""

    id: str
    where: Literal["flag", "env", "package", "host", "action"]
    name: str
    scope: str
    why: str
    to: str | None = None
    loss: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailureRule:
    """One way a start fails.

    ``role``: ``cause`` proves a root cause; ``fallback`` counts only if no cause matched; ``collateral`` is what
    follows from a failure elsewhere (never the cause, often the proof of death); ``benign`` is a scary line that
    harms nothing and hides its line from every other rule.
    ``fatal``: the moment it is satisfied the start is failing, even while processes live.
    """

    id: str
    class_: str
    engine: str
    role: Role
    fatal: bool
    specificity: int
    phase: str | None
    all: tuple[Pattern, ...]
    any: tuple[Pattern, ...]
    none: tuple[Pattern, ...]
    exits: tuple[str, ...]
    within: int
    summary: str
    explanation: str
    remedies: tuple[RemedyRule, ...]
    samples: tuple[str, ...]
    not_samples: tuple[str, ...]
    source: str
    versions: str | None = None

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        return self.all + self.any + self.none


@dataclass(frozen=True, slots=True)
class LineRule:
    """One line of a healthy start: the phase it proves, the figures and progress it carries.

    Named groups become figures (``_gib``, ``_s`` and plain numbers are converted), except ``done``, ``total``,
    ``percent``, ``rate``, ``eta`` (progress), ``host``, ``port``, ``url`` (endpoint), ``version``, ``model``.
    ``restart``: seeing it again means a new start in the same file. ``self_noise``: our own probes make such
    lines, so it is no progress.
    """

    id: str
    pattern: Pattern
    phase: str | None = None
    ends: bool = False
    ready: bool = False
    unready: bool = False
    stopping: bool = False
    restart: bool = False
    settings: str | None = None
    worker: Literal["target", "draft"] | None = None
    self_noise: bool = False
    samples: tuple[str, ...] = ()
    not_samples: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Grammar:
    """How one engine writes its start: line prefixes, phase order, line rules.

    ``prefixes`` are regular expressions with named groups among ``time``, ``rank``, ``pid``, ``level``; the
    message is what follows. ``budgets`` are seconds without progress per phase before a stall is told.
    """

    engine: str
    order: tuple[str, ...]
    prefixes: tuple[re.Pattern[str], ...]
    rules: tuple[LineRule, ...]
    budgets: dict[str, float] = field(default_factory=dict)
    default_host: str = "127.0.0.1"
    default_port: int | None = None
    #: whether the log's own ready line is proof enough for a log that nobody can probe
    ready_is_log: bool = True
    #: titles (substrings of the command line) of child processes without which the server is dead
    processes: tuple[str, ...] = ()
