"""Options that several verbs share, and how their values are read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bringup.errors import UsageError
from bringup.paths import state_dir as default_state_dir

F = TypeVar("F", bound=Callable[..., Any])

_DURATION = re.compile(r"(?P<n>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


class Duration(click.ParamType[float] if TYPE_CHECKING else click.ParamType):  # type: ignore[misc]
    """``25s``, ``1m30s``, ``500ms``, ``90`` (seconds)."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        found = list(_DURATION.finditer(value))
        if not found or "".join(m[0] for m in found) != value:
            self.fail(f"`{value}` is no duration; write 25s, 1m30s or 500ms", param, ctx)
        return sum(float(m["n"]) * _UNITS[m["unit"]] for m in found)


def _targets(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    """Checks ``--on``: a target that cannot be used is an error before anything is done."""
    del ctx, param
    if value:
        from bringup.targets import open_target

        for text in value:
            open_target(text)


def common(*, jsonl: bool = False) -> Callable[[F], F]:
    """--state-dir, --json, --quiet, --no-color; with *jsonl* also --jsonl."""

    def add(function: F) -> F:
        decorators: list[Callable[[F], F]] = [
            click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout."),
            click.option("-q", "--quiet", is_flag=True, help="Only the result, no progress."),
            click.option("--no-color", is_flag=True, help="No colour (NO_COLOR does the same)."),
            click.option(
                "--on",
                "on",
                multiple=True,
                metavar="TARGET",
                expose_value=False,
                callback=_targets,
                help="Where it runs; this version knows `local` only.",
            ),
            click.option(
                "--state-dir", metavar="DIR", help="Where runs are kept. [default: $BRINGUP_STATE_DIR, else XDG]"
            ),
        ]
        if jsonl:
            decorators.insert(1, click.option("--jsonl", is_flag=True, help="One JSON event a line on stdout."))
        for decorate in reversed(decorators):
            function = decorate(function)
        return function

    return add


def state_path(state_dir: str | None) -> Path:
    """The state directory in force."""
    return default_state_dir(state_dir)


def env_pairs(pairs: tuple[str, ...], passed: tuple[str, ...]) -> dict[str, str]:
    """``--env K=V`` and ``--pass-env K`` as a mapping. Raises UsageError for a pair without ``=``."""
    found: dict[str, str] = {}
    for name in passed:
        if name not in os.environ:
            raise UsageError(f"--pass-env {name}: there is no variable `{name}` here")
        found[name] = os.environ[name]
    for pair in pairs:
        name, eq, value = pair.partition("=")
        if not eq or not name:
            raise UsageError(f"--env `{pair}` is not NAME=VALUE", "for example `--env HF_HOME=/models/hub`")
        found[name] = value
    return found


def key_from(name: str | None) -> str | None:
    """The API key that ``--api-key-env NAME`` points to. Raises UsageError if the variable is not set."""
    if name is None:
        return None
    value = os.environ.get(name)
    if not value:
        raise UsageError(f"--api-key-env {name}: the variable `{name}` is not set")
    return value


PROBES = click.Choice(["none", "health", "models", "completion"])
