"""How the start went: the state word for what a source and an exit show."""

from __future__ import annotations

from typing import Literal

from bringup.facts import Exit
from bringup.timeline import View

After = Literal["stopped", "died"] | None

#: signals by which a person or a supervisor ends a process
STOP_SIGNALS = frozenset({"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"})
#: how Python reports one of them: no failure of the server
_INTERRUPTS = ("KeyboardInterrupt", "SystemExit", "CancelledError", "Warning")


def outcome(
    view: View, exit_: Exit | None, *, ready_is_log: bool, ended: bool, probed: bool | None
) -> tuple[str, After]:
    """(state, after) of a start.

    ``probed``: True if a probe saw it ready, False if probes ran and never did, None if nobody probed (a log).
    ``ended``: no more lines will come (a file was read to its end; the process is gone).
    """
    was_ready = probed if probed is not None else bool(view.ready and ready_is_log)
    if was_ready:
        return "ready", _after(view, exit_)
    if exit_ is not None:
        return ("stopped" if _interrupted(view, exit_) else "failed"), None
    if view.stopping and not view.fatal and not _broken(view):
        return "stopped", None
    if view.fatal is not None:
        return "failed", None
    if not view.judged:
        return "none", None
    if ended and _broken(view):
        return "failed", None
    return "starting", None


def _interrupted(view: View, exit_: Exit) -> bool:
    """Whether a start that ended before it was ready was ended by somebody.

    A server that had failed before counts as failed, whoever swept it up; one that was told to stop may end itself
    with SIGKILL (SGLang does).
    """
    if view.fatal is not None or _broken(view):
        return False
    if exit_.signal in STOP_SIGNALS:
        return True
    return bool(view.stopping) and (exit_.code == 0 or exit_.signal == "SIGKILL")


def _after(view: View, exit_: Exit | None) -> After:
    told = view.stopping
    fatal = view.fatal
    broke = fatal is not None and fatal.order > view.ready and (not told or fatal.order < told)
    if broke:
        return "died"
    if told:
        return "stopped"
    if exit_ is not None:
        clean = exit_.code == 0 or exit_.signal in STOP_SIGNALS
        return "stopped" if clean else "died"
    return None


def _broken(view: View) -> bool:
    """Whether a log that simply ends shows a failure: a cause or a traceback after which nothing moved on."""
    last = view.moved
    for found in view.found.values():
        if (
            found.satisfied
            and found.rule.role in ("cause", "fallback")
            and found.rule.class_ != "interrupted"
            and not found.after_stop
            and found.order >= last
        ):
            return True
    return any(t.last >= last and not t.after_stop and not t.exception.endswith(_INTERRUPTS) for t in view.traces)
