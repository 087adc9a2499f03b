"""What a run document means as an exit code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bringup import errors


def exit_code(run: Mapping[str, Any]) -> int:
    """The contract's exit code for a run in this state (for up, watch and wait)."""
    state = run["state"]
    if state in ("ready", "unhealthy"):
        return errors.READY
    if state == "stopped":
        return errors.STOPPED
    if state == "refused":
        return errors.REFUSED
    if state == "failed":
        known = (run.get("diagnosis") or {}).get("cause")
        return errors.FAILED_KNOWN if known else errors.FAILED_UNKNOWN
    if run.get("link") == "lost":
        return errors.UNREACHABLE
    return errors.STALLED if state == "stalled" else errors.STILL_STARTING
