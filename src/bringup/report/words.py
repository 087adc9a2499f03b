"""Small pieces of text: numbers with their units, and progress."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

#: what a bar of this phase counts; a bar whose rule says otherwise is in _BY_RULE
_UNITS = {"download": "files", "weights": "shards", "graphs": "graphs", "compile": "shapes"}
_BY_RULE = {"transformers.weights": "tensors", "trtllm.weights": "tensors"}
#: a total above this is a size in bytes and no count
_BYTES = 100_000


def is_number(value: object) -> TypeGuard[float]:
    """Whether *value* is a finite number (a bool is none)."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def seconds(value: object) -> str:
    """``0.38 s``, ``12.3 s``, ``2 min 05 s``, ``1 h 02 min``; ``?`` for what is no number."""
    if not is_number(value):
        return "?"
    found = max(0.0, float(value))
    if found < 9.995:
        return f"{found:.2f} s"
    if found < 99.95:
        return f"{found:.1f} s"
    if found < 120:
        return f"{found:.0f} s"
    minutes, rest = divmod(round(found), 60)
    if minutes < 120:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def short_seconds(value: object) -> str:
    """``4 s``, ``2 min 05 s``: for what is only an estimate."""
    if not is_number(value):
        return "?"
    found = max(0.0, float(value))
    return f"{math.ceil(found)} s" if found < 120 else seconds(found)


def number(value: object) -> str:
    """``5``, ``33.5``, ``1,048,576``; text of anything else."""
    if not is_number(value):
        return str(value)
    found = float(value)
    if found == int(found):
        return f"{int(found):,}"
    return f"{found:,.1f}" if abs(found) >= 10 else f"{found:.3g}"


def size(value: float) -> str:
    """Bytes as ``1.2 GB`` (10^9, as the bars that are read count)."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value:.0f} B"


def percent(fraction: float) -> str:
    """``60%``. Never 100 before it is."""
    return f"{min(99, round(fraction * 100)) if fraction < 1 else 100}%"


def progress_text(phase: str | None, progress: Mapping[str, Any] | None) -> str:
    """``60% 3/5 shards, 1.5 shards/s, about 4 s left``; empty where there is none."""
    if not progress or not is_number(progress.get("fraction")):
        return ""
    text = percent(float(progress["fraction"]))
    done, total, rate, eta = (progress.get(k) for k in ("done", "total", "rate", "eta_s"))
    unit = _BY_RULE.get(str(progress.get("rule")), _UNITS.get(phase or "", "steps"))
    in_bytes = is_number(total) and total >= _BYTES
    if is_number(done) and is_number(total):
        pair = f"{size(float(done))} of {size(float(total))}" if in_bytes else f"{number(done)}/{number(total)}"
        text += f" {pair}" if in_bytes else f" {pair} {unit}"
    if is_number(rate) and float(rate) > 0:
        text += f", {size(float(rate))}/s" if in_bytes else f", {number(rate)} {unit}/s"
    if is_number(eta) and float(eta) > 0 and float(progress["fraction"]) < 1:
        text += f", about {short_seconds(eta)} left"
    return text


#: ending of a figure's name -> its unit; the ending is left out of the words
_SUFFIXES = {
    "_gib": "GiB",
    "_gb": "GB",
    "_mib": "MiB",
    "_mb": "MB",
    "_kib": "KiB",
    "_bytes": "bytes",
    "_s": "s",
    "_ms": "ms",
    "_tokens": "tokens",
    "_percent": "%",
    "_blocks": "blocks",
}


def figure(name: str, value: object) -> str:
    """``weights_gib`` and 14.42 as ``weights 14.42 GiB``; a name without a unit stays as it is."""
    shown = f"{value or 0:,}" if is_number(value) else str(value)  # a rounded -0.0 is 0
    for ending, unit in _SUFFIXES.items():
        if name.endswith(ending) and len(name) > len(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')} {shown} {unit}"
    return f"{name.replace('_', ' ')} {shown}"


def exit_text(ended: Mapping[str, Any]) -> str:
    """An exit document for people: ``code 1``, ``SIGKILL``, ``SIGKILL or code 137``."""
    code, signal = ended.get("code"), ended.get("signal")
    if signal and (ended.get("certain", True) or code is None):
        return str(signal)
    if signal:
        return f"{signal} or code {code}"
    return f"code {code}" if code is not None else "unknown exit"
