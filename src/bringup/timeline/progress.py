"""Numbers out of named groups: figures, and progress with rate and ETA."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: groups that are not figures
RESERVED = frozenset(
    {
        "done",
        "total",
        "percent",
        "rate",
        "eta",
        "elapsed_bar",
        "host",
        "port",
        "url",
        "version",
        "model",
        "bytes",
        "unit",
    }
)
_SIZES = {
    "": 1.0,
    "k": 1e3,
    "m": 1e6,
    "g": 1e9,
    "t": 1e12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
_NUMBER = re.compile(r"^\s*([-+]?[\d.,]+(?:[eE][-+]?\d+)?)\s*([kKMGT]i?)?[Bb]?(?:it|/s)?\s*$")


def figures(groups: Mapping[str, str]) -> dict[str, Any]:
    """Figures of the named *groups*: numbers where they are numbers (``1,048,576`` too), else text."""
    return {k: number(v) for k, v in groups.items() if k not in RESERVED}


def number(text: str) -> Any:
    """*text* as int or float where it is one, else unchanged."""
    bare = (
        text.replace(",", "").replace("_", "") if re.fullmatch(r"[-+]?[\d,_]*\.?\d+(?:[eE][-+]?\d+)?", text) else text
    )
    try:
        return int(bare)
    except ValueError:
        pass
    try:
        return float(bare)
    except ValueError:
        return text


def size(text: str) -> float | None:
    """A size or count as tqdm writes it (``1.2G``, ``512``); None where it is none."""
    match = _NUMBER.match(text)
    if not match:
        return None
    try:
        return float(match[1].replace(",", "")) * _SIZES[(match[2] or "").lower()]
    except ValueError:
        return None


def clock(text: str) -> float | None:
    """Seconds of ``MM:SS``, ``H:MM:SS`` or ``D days, ...``; None for tqdm's ``?``."""
    total = 0.0
    for part in text.strip().split(":"):
        try:
            total = total * 60 + float(part)
        except ValueError:
            return None
    return total


def progress(groups: Mapping[str, str]) -> dict[str, Any] | None:
    """``{fraction, done, total, rate, eta_s}`` of a bar; None where the groups hold no progress.

    ``fraction`` is 0..1; ``done`` and ``total`` keep the bar's own unit; ``rate`` is units a second.
    """
    done = size(groups["done"]) if "done" in groups else None
    total = size(groups["total"]) if "total" in groups else None
    fraction: float | None = None
    if done is not None and total:
        fraction = done / total
    elif "percent" in groups:
        percent = size(groups["percent"])
        fraction = None if percent is None else percent / 100
    if fraction is None:
        return None
    fraction = min(max(fraction, 0.0), 1.0)
    rate = size(groups["rate"]) if "rate" in groups else None
    eta = clock(groups["eta"]) if "eta" in groups else None
    if eta is None and rate and done is not None and total:
        eta = (total - done) / rate
    return {
        "fraction": round(fraction, 4),
        "done": done,
        "total": total,
        "rate": rate,
        "eta_s": None if eta is None else round(eta, 1),
    }
