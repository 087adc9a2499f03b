"""A diagnosis as text: the verdict, the first cause, the lines that prove it, what to change."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from bringup.redact import MASK
from bringup.report.clean import one_line
from bringup.report.paint import Paint, together, width_of, wrapped
from bringup.report.request import shell_line
from bringup.report.words import exit_text, figure, is_number, seconds

_EVIDENCE, _CONSEQUENCES, _REMEDIES, _FIGURES, _ALSO = 6, 4, 5, 12, 5
_STYLES = {"ready": "green", "failed": "red", "failing": "red", "stopped": "yellow"}
_WORDS = {"starting": "still starting", "none": "no startup in this input"}


def render_diagnosis(diagnosis: Mapping[str, Any], color: bool = False, width: int | None = None) -> str:
    """What a start came to and why, for people."""
    paint, columns = Paint(color), width_of(width)
    broke = diagnosis.get("state") in ("failed", "failing") or diagnosis.get("after") == "died"
    cause = diagnosis.get("cause")
    lines = _verdict(diagnosis, paint, columns)
    if cause:
        lines += _cause(cause, paint, columns)
    elif broke:
        lines += ["", *_styled(paint, "bold", wrapped(_unknown(diagnosis), columns))]
    if cause or broke:
        title = "evidence:" if cause else "most telling lines:"
        lines += _quoted(title, diagnosis.get("evidence") or [], _EVIDENCE, columns)
        after = _quoted("what followed from it:", diagnosis.get("consequences") or [], _CONSEQUENCES, columns, 120)
        lines += _styled(paint, "dim", after)
        lines += _remedies(diagnosis.get("remedies") or [], paint, columns)
    lines += _rest(diagnosis, paint, columns)
    return "\n".join(lines)


def _styled(paint: Paint, style: str, lines: Iterable[str]) -> list[str]:
    return [paint(style, line) for line in lines]


def _verdict(diagnosis: Mapping[str, Any], paint: Paint, columns: int) -> list[str]:
    state, after = str(diagnosis.get("state")), diagnosis.get("after")
    word = _WORDS.get(state, state) + (f", then {after}" if after else "")
    engine = one_line(f"{diagnosis.get('engine')} {diagnosis.get('engine_version') or ''}", 80)
    facts = [] if state == "none" else [engine]
    if diagnosis.get("phase") and state not in ("ready", "none"):
        facts.append(f"in phase {diagnosis['phase']}")
    if diagnosis.get("exit"):
        facts.append(f"ended with {exit_text(diagnosis['exit'])}")
    lines = wrapped(f"{word}: {', '.join(facts)}" if facts else word, columns, "", "  ")
    style = "red" if after == "died" else _STYLES.get(state, "cyan")
    if lines[0].startswith(word):
        lines[0] = paint(style, word) + lines[0][len(word) :]
    return lines


def _unknown(diagnosis: Mapping[str, Any]) -> str:
    phase = f"; it was in phase {diagnosis['phase']}" if diagnosis.get("phase") else ""
    return f"unknown failure: no rule knows these lines{phase}"


def _cause(cause: Mapping[str, Any], paint: Paint, columns: int) -> list[str]:
    lines = ["", *_styled(paint, "bold", wrapped(one_line(cause["summary"], 600), columns))]
    sure = f"{cause['confidence'] * 100:.0f}% sure" if is_number(cause.get("confidence")) else "not rated"
    told = f"class {cause['class']}, rule {cause['id']}, {sure}"
    lines += _styled(paint, "dim", wrapped(one_line(told, 300), columns))
    if cause.get("explanation"):
        lines += ["", *wrapped(one_line(cause["explanation"], 3000), columns)]
    return lines


def _quoted(title: str, found: Iterable[Mapping[str, Any]], most: int, columns: int, limit: int = 400) -> list[str]:
    """Lines of a log with where they stand and who wrote them."""
    every = list(found)
    if not every:
        return []
    lines = ["", title]
    for line in every[:most]:
        rank = f" {one_line(line['rank'], 40)}" if line.get("rank") else ""
        where = f"{one_line(line.get('source'), 60)}:{line.get('line')}{rank}"
        lines += wrapped(f"{where}: {one_line(line.get('text'), limit)}", columns, "  ", "      ")
    if len(every) > most:
        lines.append(f"  and {len(every) - most} more lines")
    return lines


def _remedies(remedies: Iterable[Mapping[str, Any]], paint: Paint, columns: int) -> list[str]:
    every = list(remedies)
    if not every:
        return []
    lines = ["", "what to change:" if len(every) == 1 else "what to change, best first:"]
    for remedy in every[:_REMEDIES]:
        for change in remedy.get("changes") or []:
            lines += _styled(paint, "green", [f"  {change_text(change)}"])
        if remedy.get("why"):
            lines += wrapped(f"why: {one_line(remedy['why'], 600)}", columns, "    ", "      ")
        if remedy.get("loss"):
            lines += wrapped(f"costs: {one_line('; '.join(remedy['loss']), 400)}", columns, "    ", "      ")
        if remedy.get("command"):
            fill = " (put the secret in first)" if MASK in "".join(remedy["command"]) else ""
            lines += [f"    run:{fill}", f"      {one_line(shell_line(remedy['command']), 20_000)}"]
    if len(every) > _REMEDIES:
        lines.append(f"  and {len(every) - _REMEDIES} more remedies")
    return lines


def change_text(change: Mapping[str, Any]) -> str:
    """One change as it is pasted or done: ``--flag value``, ``NAME=value``, ``pip install``'s argument, an act."""
    where, name = change.get("where"), one_line(change.get("name"), 300)
    old = f"   (now {one_line(change['from'], 80)})" if change.get("from") not in (None, "") else ""
    new = None if change.get("to") is None else one_line(change["to"], 300)
    if where == "flag":
        if new in (None, ""):
            return f"{name}{old}"
        return f"{name} {shlex.quote(str(new))}{old}"
    if where == "env":
        return f"{name}={shlex.quote(new)}{old}" if new is not None else f"{name}=...{old}"
    if where == "package":
        return f"package {name}{' ' + new if new else ''}{old}"
    return f"{name}: {new}{old}" if new else f"{name}{old}"


def _rest(diagnosis: Mapping[str, Any], paint: Paint, columns: int) -> list[str]:
    """What is good to know beside the cause: other candidates, figures, how long the phases took."""
    lines: list[str] = []
    also = [c for c in diagnosis.get("also") or [] if c.get("id")]
    if also:
        told = ", ".join(f"{c['id']} [{c['class']}]" for c in also[:_ALSO])
        lines += ["", *_styled(paint, "dim", wrapped(one_line(f"also possible: {told}", 600), columns, "", "  "))]
    figures = [figure(str(k), v) for k, v in (diagnosis.get("figures") or {}).items() if is_number(v)]
    if figures:
        more = f", and {len(figures) - _FIGURES} more with --json" if len(figures) > _FIGURES else ""
        told = ", ".join(together(one_line(f, 200)) for f in figures[:_FIGURES]) + more
        lines += ["", *wrapped(f"figures: {told}", columns, "", "  ")]
    spans = [p for p in diagnosis.get("phases") or [] if is_number(p.get("seconds"))]
    if spans:
        told = ", ".join(together(one_line(f"{p['name']} {seconds(p['seconds'])}", 80)) for p in spans)
        lines += ["", *wrapped(f"phases: {told}", columns, "", "  ")]
    return lines
