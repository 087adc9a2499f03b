"""Small pieces of text: durations, rates, and text from elsewhere made harmless."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless(text: str, limit: int = 400) -> str:
    """Text from a log or a model as one line that cannot touch the terminal, cut at *limit* characters."""
    flat = _CONTROL.sub("", text[: limit * 4].replace("\t", "    ").replace("\n", " ").replace("\r", " "))
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def seconds(value: float | None) -> str:
    """``0.38 s``, ``12.3 s``, ``2 min 05 s``, ``1 h 02 min``; ``?`` for None."""
    if value is None:
        return "?"
    if value < 10:
        return f"{value:.2f} s"
    if value < 120:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 120:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def amount(value: float | None) -> str:
    """A count or size with a unit prefix where it is large: ``5``, ``1.2 G``."""
    if value is None:
        return "?"
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 10 * factor:
            return f"{value / factor:.0f}{unit}"
        if value >= factor:
            return f"{value / factor:.1f}{unit}"
    return f"{value:g}"


def percent(fraction: float) -> str:
    return f"{fraction * 100:.0f} %"


def progress_text(progress: dict[str, object] | None) -> str:
    """``60 %, 3 of 5, about 12.0 s left``; empty where there is none."""
    if not progress or not isinstance(progress.get("fraction"), (int, float)):
        return ""
    parts = [percent(float(progress["fraction"]))]  # type: ignore[arg-type]  # checked above
    done, total, eta = progress.get("done"), progress.get("total"), progress.get("eta_s")
    if isinstance(done, (int, float)) and isinstance(total, (int, float)):
        parts.append(f"{amount(done)} of {amount(total)}")
    if isinstance(eta, (int, float)) and eta > 0:
        parts.append(f"about {seconds(float(eta))} left")
    return ", ".join(parts)
