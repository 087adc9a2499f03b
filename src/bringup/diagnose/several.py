"""Several sources of one start (the files of its ranks): one diagnosis, the first cause wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bringup.diagnose.diagnose import once_per_text
from bringup.facts import Diagnosis

_WORST = {"failed": 0, "stopped": 1, "starting": 2, "none": 3, "ready": 4}


def merge(diagnoses: Sequence[Diagnosis]) -> Diagnosis:
    """One diagnosis of several sources of the same start.

    The start failed if any source shows it failed; of several causes the most confident is blamed, and of equals
    the one of the first source. It is ready if one source says so and none failed.
    """
    failed = [d for d in diagnoses if d.state == "failed" or d.after == "died"]
    if failed:
        best = max(failed, key=lambda d: d.cause.confidence if d.cause else 0.0)
        rest = [d for d in failed if d is not best]
        lines = tuple(once_per_text(line for d in rest for line in d.evidence[:1]))
        own = best.cause.id if best.cause else None
        others = tuple({d.cause.id: d.cause for d in rest if d.cause and d.cause.id != own}.values())
        return replace(best, consequences=best.consequences + lines, also=best.also + others)
    ready = [d for d in diagnoses if d.state == "ready"]
    if ready:
        return ready[0]
    return min(diagnoses, key=lambda d: _WORST.get(d.state, 3))
