"""argv -> Command: which engine it starts and what its own arguments say.

The argv is kept as typed. ``VAR=value`` words in front of it are the command's own environment, as a shell would
take them; everything else is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from bringup.engines import Engine, Options, engine, recognise
from bringup.engines.flags import options
from bringup.facts import Command
from bringup.peel import Peeled, leading_assignments, peel

#: reads a file named in a command (relative to the command's own directory); None where it cannot be read
ReadText = Callable[[str], str | None]


def parse(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: str | None = None,
    read_text: ReadText | None = None,
) -> Command:
    """The command that *argv* is. ``environ`` is what it will run under; ``read_text`` opens ``--config`` files."""
    peeled, known, args = _find_engine(peel(argv))
    own_env, _ = leading_assignments(argv)
    env = {**(environ or {}), **peeled.env}
    found = known.read(args)
    if found.config and read_text is not None:
        found = _merge(found, _from_config(known, read_text(found.config)))
    found = _merge(found, options({key: env[name] for name, key in known.env.items() if env.get(name)}))
    grammar = known.grammar
    return Command(
        argv=tuple(argv),
        engine=known.name,
        args=args,
        env=own_env,
        cwd=cwd,
        model=found.model,
        served_name=found.served_name,
        host=found.host or grammar.default_host,
        port=found.port or grammar.default_port,
        api_key=found.api_key,
        task=found.task,
    )


def runnable(command: Command) -> tuple[str, ...]:
    """What is given to exec: the argv after its own ``VAR=value`` words."""
    return leading_assignments(command.argv)[1]


def _find_engine(peeled: Peeled) -> tuple[Peeled, Engine, tuple[str, ...]]:
    for candidate in (*peeled.alternatives, peeled):
        if candidate.words:
            known, args = recognise(candidate.words)
            if known.name != "generic":
                return candidate, known, args
    return peeled, engine("generic"), tuple(peeled.words[1:])


def _merge(first: Options, second: Options) -> Options:
    """*first* with its gaps filled from *second*."""
    values: dict[str, Any] = {}
    for field in fields(Options):
        value = getattr(first, field.name)
        values[field.name] = getattr(second, field.name) if value is None else value
    return Options(**values)


def _from_config(known: Engine, text: str | None) -> Options:
    """Options from an engine's YAML configuration file; empty where it is not a mapping."""
    if text is None:
        return Options()
    import yaml

    try:
        data = yaml.safe_load(text)
    except Exception:  # PyYAML lets through whatever its constructors raise: ValueError, IndexError, RecursionError
        return Options()
    if not isinstance(data, dict):
        return Options()
    args: list[str] = []
    for key, value in data.items():
        flag = "--" + str(key).replace("_", "-")
        if value is True:
            args.append(flag)
        elif value is not False and value is not None:
            value = value[0] if isinstance(value, list) and value else value
            args.append(f"{flag}={value}")
    return known.read(args)
