"""The clocks of a watch: when a stall is told, when the evidence is in, when the deadline has passed."""

from __future__ import annotations

from dataclasses import dataclass, field

#: a start that failed is judged this long after the last new evidence, and at the latest this long after the first
QUIET_S = 2.0
LATEST_S = 15.0
#: seconds without progress in a phase whose budget the engine's grammar does not name
DEFAULT_BUDGET_S = 900.0


@dataclass(slots=True)
class Clocks:
    """Monotonic times; None where a clock does not run."""

    moved: float
    budgets: dict[str, float] = field(default_factory=dict)
    deadline: float | None = None
    failing: float | None = None
    evidence: float | None = None

    def judged_at(self) -> float | None:
        """When a failing start becomes a failed one, if nothing new comes and something still lives."""
        if self.failing is None:
            return None
        return min((self.evidence or self.failing) + QUIET_S, self.failing + LATEST_S)

    def stalls_at(self, phase: str) -> float:
        """When silence in *phase* becomes a stall."""
        return self.moved + self.budgets.get(phase, DEFAULT_BUDGET_S)

    def new_evidence(self, now: float) -> None:
        self.evidence = now
