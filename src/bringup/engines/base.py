"""What an engine is to the rest of bringup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from typing import Any

from bringup.rules import FailureRule, Grammar, load_failures, load_grammar, stack_failures

#: argv without wrappers: program name (basename), then arguments
Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class Options:
    """What bringup needs to know of a command's own arguments; None where they do not say."""

    model: str | None = None
    served_name: str | None = None
    host: str | None = None
    port: int | None = None
    api_key: str | None = None
    task: str | None = None
    config: str | None = None


@dataclass(frozen=True)
class Engine:
    """One engine: how it is recognised, what its arguments say, where its knowledge lies.

    ``claims(words)`` returns the engine's own arguments if these words start it, else None; ``read(args)`` reads
    them (argument order as the engine's own parser has it: the last one wins).
    """

    name: str
    title: str
    package: str
    claims: Callable[[Words], tuple[str, ...] | None]
    read: Callable[[Sequence[str]], Options]
    #: parses a settings line found by the grammar (named by its ``settings`` key) into settings
    settings: Mapping[str, Callable[[str], Mapping[str, Any] | None]] = field(default_factory=dict)
    #: environment variables that set an option: name -> key of ``flags.options``
    env: Mapping[str, str] = field(default_factory=dict)
    #: whether it serves an OpenAI-like API, so that anything else on its port is somebody else
    openai: bool = True
    #: whether it loads its model at the first request when the command names none
    lazy: bool = False
    #: phrases only this engine prints, for telling whose log it is
    fingerprints: tuple[str, ...] = ()
    #: whether the plan room knows this engine's arithmetic
    plans: bool = False

    @cached_property
    def grammar(self) -> Grammar:
        return load_grammar(resources.files(self.package) / "startup.toml")

    @cached_property
    def own_failures(self) -> tuple[FailureRule, ...]:
        file = resources.files(self.package) / "failures.toml"
        return load_failures(file, self.name) if file.is_file() else ()

    @cached_property
    def failures(self) -> tuple[FailureRule, ...]:
        """The engine's failure rules, then those of the stack below it."""
        return self.own_failures + stack_failures()


@dataclass(frozen=True)
class Anyone(Engine):
    """An engine that nobody recognised: no line of a start is known, but every way to fail is."""

    everything: tuple[FailureRule, ...] = ()

    @cached_property
    def failures(self) -> tuple[FailureRule, ...]:
        return self.everything
