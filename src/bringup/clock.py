"""Wall clock as text, and back. RFC 3339 in UTC, milliseconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now_text(seconds: float | None = None) -> str:
    """``2026-01-31T10:20:30.123Z`` for *seconds* since 1970 (default: now)."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def seconds_of(text: str | None) -> float | None:
    """Seconds since 1970 of an RFC 3339 time; None for None or anything else."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
