"""Targets: where a server runs."""

from __future__ import annotations

from bringup.errors import UsageError
from bringup.targets.base import Ran, Target
from bringup.targets.local import LocalTarget
from bringup.targets.parse import Hop, format_target, parse_target

__all__ = ["Hop", "LocalTarget", "Ran", "Target", "format_target", "open_target", "parse_target"]


def open_target(text: str = "local") -> Target:
    """The target that *text* names. Raises ``UsageError`` for a bad name and for kinds that are not there yet."""
    hops = parse_target(text)
    for hop in hops:
        if hop.kind == "name":
            raise UsageError(f"unknown target `{hop.id}`", "`local` is the machine that bringup runs on")
        if hop.kind != "local":
            raise UsageError(f"target kind `{hop.kind}` is not supported by this version", "use `local`")
    return LocalTarget()
