"""``up --foreground``, for supervisors: signals go to the server, its log to standard output, its code is ours."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

from bringup.facts import Exit
from bringup.follow import Data, Follower
from bringup.launch.attempt import AttemptDir
from bringup.pilot.session import Session
from bringup.pilot.stopmark import ask_stop

#: what a supervisor may send to the server through us
FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT})


class Foreground:
    """Takes signals from the moment it is entered: one that comes while the server is being launched waits for it."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._early: list[int] = []
        self._target: tuple[AttemptDir, int] | None = None

    def __enter__(self) -> Foreground:
        for name in FORWARDED:
            number = getattr(signal, name)
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def follow(self, session: Session, attempt: AttemptDir, pgid: int) -> int:
        """Follows until the server is gone; returns its own exit code (128 + N for signal N)."""
        self._target = (attempt, pgid)
        early, self._early = self._early, []
        for number in early:
            self._forward(number)
        tee = threading.Thread(target=_tee, args=(attempt,), daemon=True)
        tee.start()
        session.run("end")
        tee.join(2.0)
        return own_code(attempt.read_exit())

    def _take(self, number: int, _: FrameType | None) -> None:
        if self._target is None:
            self._early.append(number)
        else:
            self._forward(number)

    def _forward(self, number: int) -> None:
        assert self._target is not None
        attempt, pgid = self._target
        if number in _ENDING:
            ask_stop(attempt)
        try:
            os.killpg(pgid, number)
        except ProcessLookupError:
            pass  # it ended by itself a moment ago; its exit is on the way


def own_code(ended: Exit | None) -> int:
    """The code that a shell would show for this end; 1 where it is not known."""
    if ended is None:
        return 1
    if ended.code is not None:
        return ended.code
    return 128 + int(signal.Signals[ended.signal]) if ended.signal else 1


def _tee(attempt: AttemptDir) -> None:
    follower = Follower(attempt.log, exit_file=attempt.exit_file)
    over = False
    try:
        while True:
            signals = follower.wait(0.0 if over else None)
            for found in signals:
                if isinstance(found, Data):
                    sys.stdout.buffer.write(found.data)
                    sys.stdout.buffer.flush()
            if over and not any(isinstance(s, Data) for s in signals):
                return
            over = over or attempt.read_exit() is not None
    except (OSError, ValueError):
        return  # nobody reads our output any more; the server and its log go on
    finally:
        follower.close()
