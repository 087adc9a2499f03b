"""Whose log is this? Told from phrases that only one engine prints."""

from __future__ import annotations

from bringup.engines import all_engines


def whose(sample: str) -> str:
    """Name of the engine whose fingerprints *sample* (the beginning of a log) holds most of, else ``generic``."""
    scores: dict[str, int] = {}
    for name, known in all_engines().items():
        score = sum(min(sample.count(p), 5) for p in known.fingerprints)
        if score:
            scores[name] = score
    return max(scores, key=lambda n: scores[n]) if scores else "generic"
