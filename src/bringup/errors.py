"""Errors a user can cause or meet, and the exit codes of the contract.

::

    BringupError            1   unexpected
      UsageError            2   the command line or a spec is wrong
      RefusedError         14   will not start; a blocker was found
      TargetError          16   target unreachable or lost
      NothingToJudge       17   no startup in the input
      StopNotProven        19   a process, port or memory of the run may still be there

An error is one line that says what is wrong and, after ``hint:``, what to do. Never a traceback.
"""

from __future__ import annotations

READY = 0
UNEXPECTED = 1
USAGE = 2
FAILED_KNOWN = 10
FAILED_UNKNOWN = 11
STALLED = 12
STILL_STARTING = 13
REFUSED = 14
DEGRADED = 15
UNREACHABLE = 16
NOTHING_TO_JUDGE = 17
STOPPED = 18
STOP_NOT_PROVEN = 19
INTERRUPTED = 130

#: code -> meaning, as the contract has it; the reference page is generated from this table.
EXIT_CODES: dict[int, str] = {
    READY: "ready (up, wait, watch); the log's startup became ready (diagnose); done (all others; stop: proven)",
    UNEXPECTED: "unexpected error in bringup itself",
    USAGE: "usage",
    FAILED_KNOWN: "failed, cause known",
    FAILED_UNKNOWN: "failed, cause unknown",
    STALLED: "stalled (wait; up and watch report a stall and go on, unless --fail-on-stall)",
    STILL_STARTING: "still starting when --timeout or --deadline ran out, or the log ends before a verdict "
    "(diagnose); what runs is left running",
    REFUSED: "will not start (plan); refused by preflight (up); a blocker was found (doctor)",
    DEGRADED: "starts, but something that the user set cannot be had (plan)",
    UNREACHABLE: "target unreachable or lost",
    NOTHING_TO_JUDGE: "nothing to judge: no startup in the input, or plan verdict unknown",
    STOPPED: "the run was stopped by somebody",
    STOP_NOT_PROVEN: "stop could not be proven",
    INTERRUPTED: "interrupted; what was launched goes on",
}


class BringupError(Exception):
    """Base of all errors shown to a user: a message of one line, an optional hint, an exit code."""

    code = UNEXPECTED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(BringupError):
    """The command line, a spec or a file the user named is wrong."""

    code = USAGE


class RefusedError(BringupError):
    """Certain not to start, so nothing was launched."""

    code = REFUSED


class TargetError(BringupError):
    """The target cannot be reached, or was lost."""

    code = UNREACHABLE


class NothingToJudge(BringupError):  # noqa: N818  (a verdict, and the contract's own words)
    """The input holds no startup."""

    code = NOTHING_TO_JUDGE


class StopNotProven(BringupError):  # noqa: N818  (the contract's own words)
    """Something of the run may still be there."""

    code = STOP_NOT_PROVEN
