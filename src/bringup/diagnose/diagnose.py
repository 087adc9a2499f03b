"""The diagnosis of one start."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bringup.diagnose.outcome import outcome
from bringup.diagnose.rank import Ranked, rank
from bringup.engines import Engine
from bringup.facts import Cause, Change, Diagnosis, Exit, Line, PhaseSpan, Remedy
from bringup.rules import FailureRule
from bringup.timeline import Found, Trace, View
from bringup.timeline.view import Seen

_KEEP = 12
_INTERRUPTED = "interrupted"
_KILLED_FOR_MEMORY = "host-oom-killed"
#: what the survivors raise when a process is killed beside them
_OF_LOST_PEERS = ("EOFError", "BrokenPipeError", "ConnectionResetError", "ConnectionRefusedError", "BrokenProcessPool")
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known beside the log. All optional: a log alone can be judged.

    ``exit``: how the process ended. ``ended``: no more lines will come. ``probed``: see ``outcome``.
    ``oom_kills``: processes that the kernel's out-of-memory killer took since the launch (None: not readable).
    ``vanished``: titles of essential child processes that are gone while the main one lives.
    ``timed_out``: the deadline that was passed, as text, if that is why it ended.
    ``warmup``: what the probe said when the first request failed.
    ``stopped``: somebody stopped the run through bringup.
    """

    exit: Exit | None = None
    ended: bool = True
    probed: bool | None = None
    oom_kills: int | None = None
    vanished: tuple[str, ...] = ()
    warmup: str | None = None
    stopped: bool = False


def diagnose(view: View, engine: Engine, facts: Facts | None = None) -> Diagnosis:
    """What the start in *view* came to. A wrong cause is worse than none: without proof the cause is None."""
    facts = facts or Facts()
    state, after = outcome(
        view, facts.exit, ready_is_log=engine.grammar.ready_is_log, ended=facts.ended, probed=facts.probed
    )
    if state not in ("ready", "stopped") and (facts.vanished or facts.warmup):
        state = "failed"
    elif state == "ready" and facts.vanished and after is None:
        after = "died"
    if facts.stopped and state != "ready":
        state = "stopped"
    ranked = rank(view)
    blame = state == "failed" or after == "died" or bool(facts.vanished or facts.warmup)
    best, others = _choose(view, engine, facts, ranked, state, blame, after)
    figures = dict(view.figures)
    if best is not None:
        figures.update(best.figures())
    values = {**{k: v for k, v in view.settings.items() if isinstance(v, (str, int, float))}, **figures}
    return Diagnosis(
        state=state,
        after=after,
        engine=view.engine,
        engine_version=view.version,
        phase="ready" if state == "ready" else view.phase,
        exit=facts.exit,
        cause=_cause(best, values, facts) if best is not None else None,
        evidence=_evidence(view, best, blame),
        consequences=_consequences(view, best, ranked) if blame else (),
        remedies=tuple(_remedies(best.rule, values)) if best is not None and blame else (),
        also=tuple(_cause(f, {**values, **f.figures()}, facts) for f in others[:5]),
        figures=figures,
        settings=dict(view.settings),
        phases=tuple(PhaseSpan(s.name, s.started, s.ended, s.progress) for s in view.spans),
    )


def _choose(
    view: View, engine: Engine, facts: Facts, ranked: Ranked, state: str, blame: bool, after: str | None
) -> tuple[Found | None, list[Found]]:
    """The cause, and the candidates that were not chosen."""
    told = [*ranked.causes, *ranked.fallbacks]
    if facts.oom_kills == 0:  # the kernel's own counter says that it killed nobody: no guess may say otherwise
        told = [f for f in told if f.rule.role == "cause" or f.rule.class_ != _KILLED_FOR_MEMORY]
    if state == "stopped":
        return _interruption(view, engine, facts), [f for f in told if f.rule.class_ != _INTERRUPTED]
    if not blame:
        return None, told
    if after == "died":  # what was overcome before it was ready is no cause of a later death
        told = [f for f in told if f.order > view.ready] or []
    silent = [Found(r, satisfied=True) for r in _by_exit(view, engine, facts)]
    if any(_telling_trace(t) and t.last > (view.ready if after == "died" else 0) for t in view.traces):
        # Something did say a word before it died, even if no rule knows it: then nobody interrupted it.
        silent = [f for f in silent if f.rule.class_ != _INTERRUPTED]
    specific = [f for f in told if f.rule.role == "cause"]
    if facts.oom_kills and not specific and silent:
        return silent[0], told
    order = [*specific, *(f for f in told if f.rule.role != "cause"), *silent]
    if specific == [] and silent and silent[0].rule.specificity > max((f.rule.specificity for f in told), default=0):
        order = [*silent, *told]
    return (order[0], order[1:]) if order else (None, [])


def _telling_trace(trace: Trace) -> bool:
    """Whether a traceback is more than the echo of a peer that is gone."""
    return not trace.after_stop and not trace.exception.endswith(_OF_LOST_PEERS)


def _interruption(view: View, engine: Engine, facts: Facts) -> Found | None:
    """What says that somebody stopped it: a line of the log, else the signal."""
    told = [f for f in view.found.values() if f.satisfied and f.rule.class_ == _INTERRUPTED and f.hits]
    silent = [Found(r, satisfied=True) for r in _by_exit(view, engine, facts) if r.class_ == _INTERRUPTED]
    return min(told, key=lambda f: f.order, default=None) or next(iter(silent), None)


def _by_exit(view: View, engine: Engine, facts: Facts) -> list[FailureRule]:
    """Rules for deaths that leave no line, most specific first; none that a line of the log rules out."""
    words: set[str] = set()
    if facts.oom_kills:
        words.add("OOM")
    if facts.vanished:
        words.add("VANISHED")
    if facts.warmup:
        words.add("WARMUP")
    if facts.exit is not None:
        if facts.exit.signal:
            words.add(facts.exit.signal)
        if facts.exit.code is not None and (facts.exit.certain or not facts.exit.signal):
            words.add(str(facts.exit.code))
    # Such a rule has no patterns but `none`, so any hit of it speaks against it.
    rules = [r for r in engine.failures if words & set(r.exits) and r.id not in view.found]
    return sorted(rules, key=lambda r: -r.specificity)


def _ruled_out(rule: FailureRule, view: View) -> bool:
    found = view.found.get(rule.id)
    positive = len(rule.all) + len(rule.any)
    return found is not None and any(i >= positive for i in found.hits)


def _cause(found: Found, values: Mapping[str, Any], facts: Facts) -> Cause:
    rule = found.rule
    if rule.role == "cause":
        confidence = 0.6 if rule.specificity < 20 else min(0.95, 0.7 + rule.specificity / 300)
    else:
        confidence = 0.8 if "OOM" in rule.exits and facts.oom_kills else 0.4
    own = {**values, **found.figures(), "vanished": ", ".join(facts.vanished), "warmup": facts.warmup or ""}
    return Cause(
        id=rule.id,
        class_=rule.class_,
        summary=fill(rule.summary, own),
        explanation=fill(rule.explanation, own),
        confidence=round(confidence, 2),
    )


def fill(text: str, values: Mapping[str, Any]) -> str:
    """*text* with its ``{placeholders}`` filled; one that is not known is written as ``?``."""
    return _FIELD.sub(lambda m: str(values.get(m[1], "?")), text)


def _remedies(rule: FailureRule, values: Mapping[str, Any]) -> Iterable[Remedy]:
    for remedy in rule.remedies:
        fields = set(_FIELD.findall(remedy.to or ""))
        to = fill(remedy.to, values) if remedy.to is not None and fields <= set(values) else None
        old = values.get(remedy.name.lstrip("-").replace("-", "_")) if remedy.where == "flag" else None
        name = fill(remedy.name, values)
        change = Change(remedy.where, name, None if old is None else str(old), to, remedy.scope)
        yield Remedy(remedy.id, (change,), fill(remedy.why, values), remedy.loss)


def _evidence(view: View, best: Found | None, blame: bool) -> tuple[Line, ...]:
    """The lines that prove the cause; for an unknown failure the most telling ones."""
    if not blame:
        return ()
    if best is not None and best.hits:
        return tuple(_unique(s.line for s in _proving(best)))[:_KEEP]
    return telling(view)


def _proving(found: Found) -> list[Seen]:
    """The kept hits without those of ``none`` patterns."""
    positive = len(found.rule.all) + len(found.rule.any)
    seen = {s.order: s for i, hits in found.hits.items() if i < positive for s in hits}
    return [seen[k] for k in sorted(seen)]


def telling(view: View) -> tuple[Line, ...]:
    """At most three lines that say most about a failure nobody knows: first exceptions, first errors, the end."""
    picked = [t.line for t in view.traces if not t.after_stop][:2]
    picked += [line for _, line in view.first_errors][:2]
    picked += [line for line in list(view.tail)[-3:] if line.text.strip()]
    return tuple(_unique(picked))[:3]


def _consequences(view: View, best: Found | None, ranked: Ranked) -> tuple[Line, ...]:
    shown = {(s.line.source, s.line.line) for s in best.lines()} if best is not None else set()
    lines: list[tuple[int, Line]] = []
    for found in ranked.consequences:
        lines.extend((s.order, s.line) for s in found.lines()[:2])
    if best is not None:
        for other in (*ranked.causes, *ranked.fallbacks):
            if other is not best and other.order > best.order:
                lines.extend((s.order, s.line) for s in other.lines()[:1])
        lines.extend((t.last, t.line) for t in view.traces if t.last > best.order)
    ordered = [line for _, line in sorted(lines, key=lambda p: p[0]) if (line.source, line.line) not in shown]
    return tuple(once_per_text(ordered))[:_KEEP]


def once_per_text(lines: Iterable[Line]) -> Iterable[Line]:
    """The same failure of many ranks, told once with a count."""
    grouped: dict[str, list[Line]] = defaultdict(list)
    for line in _unique(lines):
        grouped[re.sub(r"\d+", "#", line.text)].append(line)
    for same in grouped.values():
        first = same[0]
        if len(same) > 1:
            yield Line(first.source, first.line, first.rank, f"{first.text}  ({len(same)} such lines)")
        else:
            yield first


def _unique(lines: Iterable[Line]) -> Iterable[Line]:
    seen: set[tuple[str, int, str]] = set()
    for line in lines:
        key = (line.source, line.line, line.text)
        if key not in seen:
            seen.add(key)
            yield line
