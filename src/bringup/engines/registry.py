"""Which engines there are, and which one a command starts."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from bringup.engines.base import Anyone, Engine, Words
from bringup.rules import stack_failures

#: The built-in engines, in the order they are asked; ``generic`` claims anything and is asked last.
_BUILT_IN = ("sglang", "vllm", "llamacpp", "transformers", "tgi", "trtllm")


@cache
def all_engines() -> dict[str, Engine]:
    """Every engine by name: built-in ones first, then those that other packages bring, then ``generic``."""
    found: dict[str, Engine] = {n: import_module(f"bringup.engines.{n}").ENGINE for n in _BUILT_IN}
    for point in entry_points(group="bringup.engines"):
        if point.name not in found and point.name != "generic" and not point.value.startswith("bringup."):
            found[point.name] = point.load()
    found["generic"] = import_module("bringup.engines.generic").ENGINE
    return found


def engine(name: str) -> Engine:
    """The engine called *name*. Raises KeyError for an unknown name."""
    if name in _BUILT_IN or name == "generic":  # without touching package metadata, which costs milliseconds
        found: Engine = import_module(f"bringup.engines.{name}").ENGINE
        return found
    return all_engines()[name]


@cache
def anyone() -> Engine:
    """For a log that nobody's phrases are in: an engine called generic that knows how every engine fails."""
    base = engine("generic")
    own = [rule for known in all_engines().values() for rule in known.own_failures]
    return Anyone(
        base.name,
        base.title,
        base.package,
        base.claims,
        base.read,
        openai=base.openai,
        everything=(*own, *stack_failures()),
    )


def watching(name: str) -> Engine:
    """The engine to watch a run of *name* with: one that cannot read its log at least knows how all of them fail."""
    found = engine(name)
    return found if found.grammar.rules else anyone()


def recognise(words: Words) -> tuple[Engine, tuple[str, ...]]:
    """The engine that *words* start and its own arguments; ``generic`` when no other claims them."""
    for candidate in all_engines().values():
        args = candidate.claims(words)
        if args is not None:
            return candidate, args
    raise AssertionError("generic claims everything")
