"""States of a run: one table with stable numeric codes.

::

    10 planned --> 15 refused*
        |
        v
    20 queued --> 30 launching --> 40 starting <--> 45 stalled
                       |               |                |
                       |               v                v
                       |           60 ready <--> 65 unhealthy
                       |               |                |
                       +-------+-------+----------------+
                               v
                           50 failing --> 90 failed*
    30..65 --> 70 stopping --> 80 stopped*          (* final)

``failing`` is provisional: the first fatal line or death was seen. ``failed`` comes when the evidence is in.
Losing the link to a target is not a state of the server: ``link`` stands beside the state.
"""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """A run's state; the value is the numeric code, ``word`` is what people and JSON see."""

    PLANNED = 10
    REFUSED = 15
    QUEUED = 20
    LAUNCHING = 30
    STARTING = 40
    STALLED = 45
    FAILING = 50
    READY = 60
    UNHEALTHY = 65
    STOPPING = 70
    STOPPED = 80
    FAILED = 90

    @property
    def word(self) -> str:
        return self.name.lower()

    @property
    def final(self) -> bool:
        return self in FINAL

    @classmethod
    def of(cls, word: str) -> State:
        """The state called *word*. Raises ``KeyError`` for any other word."""
        return cls[word.upper()]


FINAL = frozenset({State.REFUSED, State.STOPPED, State.FAILED})

#: Where each state may go. Anything else is a bug in bringup, and the recorder refuses it.
MOVES: dict[State, frozenset[State]] = {
    State.PLANNED: frozenset({State.REFUSED, State.QUEUED, State.LAUNCHING, State.STOPPED}),
    State.QUEUED: frozenset({State.LAUNCHING, State.STOPPING, State.STOPPED, State.FAILING}),
    State.LAUNCHING: frozenset({State.STARTING, State.FAILING, State.STOPPING, State.STOPPED}),
    State.STARTING: frozenset({State.STALLED, State.FAILING, State.READY, State.STOPPING, State.STOPPED}),
    State.STALLED: frozenset({State.STARTING, State.FAILING, State.READY, State.STOPPING, State.STOPPED}),
    State.FAILING: frozenset({State.FAILED, State.STOPPING, State.STOPPED}),
    State.READY: frozenset({State.UNHEALTHY, State.FAILING, State.STOPPING, State.STOPPED}),
    State.UNHEALTHY: frozenset({State.READY, State.FAILING, State.STOPPING, State.STOPPED}),
    State.STOPPING: frozenset({State.STOPPED, State.FAILING}),
    State.REFUSED: frozenset(),
    State.STOPPED: frozenset(),
    State.FAILED: frozenset(),
}
