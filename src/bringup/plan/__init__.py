"""Pure: Checkpoint + Machine + Command -> Plan. No engine's arithmetic is known here yet, and it says so."""

from __future__ import annotations

from bringup.engines import engine
from bringup.facts import Command

__all__ = ["plan_line"]


def plan_line(command: Command) -> str:
    """The plan in one sentence, as ``up`` says it before a launch."""
    return f"no plan: this version cannot predict memory for {engine(command.engine).title}; going on without one"
