"""Whether rule files keep their word: every stanza carries its own proof, and this looks at it.

Pure functions over loaded rules. Each returns a list of complaints, one sentence each; empty is good.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

from bringup.facts import PHASES
from bringup.rules.model import FailureRule, Grammar, Pattern

#: words of the ``exit`` key beside signal names and exit codes: what the caller can know without a line
_EXIT_WORD = re.compile(r"^(?:SIG[A-Z]+[0-9]*|\d{1,3}|OOM|VANISHED|WARMUP)$")
_FIELD = re.compile(r"\{(\w+)\}")
_SCOPES = frozenset({"memory", "capacity", "graph", "parallel", "quantisation", "model", "network", "package", "retry"})
_PLACES = frozenset({"flag", "env", "package", "host", "action"})


@cache
def classes() -> frozenset[str]:
    """The classes of startup failure: ``classes.txt``, one word a line."""
    text = (resources.files("bringup.rules") / "classes.txt").read_text(encoding="utf-8")
    return frozenset(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


def messages(text: str, prefixes: Sequence[re.Pattern[str]] = ()) -> list[str]:
    """The messages of *text*: its lines without prefixes, split where a prefix stands in the middle."""
    found: list[str] = []
    for line in text.splitlines():
        cuts = sorted({m.start() for p in prefixes for m in p.finditer(line, 1) if m.groupdict().get("time")})
        for start, end in zip([0, *cuts], [*cuts, len(line)], strict=True):
            message = _bare(line[start:end], prefixes)
            if message or not cuts:
                found.append(message)
    return found


def _bare(piece: str, prefixes: Sequence[re.Pattern[str]]) -> str:
    for _ in range(3):
        match = next((m for p in prefixes if (m := p.match(piece)) and m.end()), None)
        if match is None:
            break
        piece = piece[match.end() :]
    return piece


def satisfied(rule: FailureRule, lines: Sequence[str]) -> bool:
    """Whether *lines* (messages) satisfy *rule*: all and one of any within ``within`` lines, none nowhere."""
    if any(p.search(line) for p in rule.none for line in lines):
        return False
    groups = [_places([p], lines) for p in rule.all]
    if rule.any:
        groups.append(_places(rule.any, lines))
    if not groups or not all(groups):
        return False
    return any(all(any(abs(o - a) <= rule.within for o in g) for g in groups[1:]) for a in groups[0])


def _places(patterns: Sequence[Pattern], lines: Sequence[str]) -> list[int]:
    return [i for i, line in enumerate(lines) if any(p.search(line) for p in patterns)]


def check_grammar(grammar: Grammar) -> list[str]:
    """Complaints about a grammar: samples, ids, phases, budgets."""
    return list(_grammar(grammar))


def _grammar(grammar: Grammar) -> Iterator[str]:
    name = grammar.engine
    yield from _unique(name, [r.id for r in grammar.rules])
    for phase in {*grammar.order, *grammar.budgets, *(r.phase for r in grammar.rules if r.phase)}:
        if phase not in PHASES:
            yield f"{name}: {phase!r} is no phase"
    for phase in {r.phase for r in grammar.rules if r.phase} - set(grammar.order):
        yield f"{name}: phase {phase!r} of a rule is not in `order`"
    for rule in grammar.rules:
        if not rule.samples:
            yield f"{name}: {rule.id} has no samples"
        for sample in rule.samples:
            if not any(rule.pattern.search(m) for m in messages(sample, grammar.prefixes)):
                yield f"{name}: {rule.id} misses its sample {sample!r}"
        for sample in rule.not_samples:
            if any(rule.pattern.search(m) for m in messages(sample, grammar.prefixes)):
                yield f"{name}: {rule.id} matches what it must not: {sample!r}"
        if any(_unsafe(rule.pattern, m) for s in rule.samples for m in messages(s, grammar.prefixes)):
            yield f"{name}: {rule.id}: prefilter literal {rule.pattern.literal!r} is not in a matching line"


def check_failures(rules: Sequence[FailureRule], prefixes: Sequence[re.Pattern[str]] = ()) -> list[str]:
    """Complaints about failure rules as one engine uses them (its own, then the stack's)."""
    return list(_failures(rules, prefixes))


def check_summaries(rules: Sequence[FailureRule], prefixes: Sequence[re.Pattern[str]] = ()) -> list[str]:
    """Complaints about summaries that would show a question mark where a sample's own lines hold no value."""
    return [
        f"{rule.id}: {{{name}}} stays empty in its summary for {sample!r}"
        for rule in rules
        for sample in rule.samples
        for name in sorted(_unfilled(rule, messages(sample, prefixes)))
    ]


def _failures(rules: Sequence[FailureRule], prefixes: Sequence[re.Pattern[str]]) -> Iterator[str]:
    yield from _unique("failures", [r.id for r in rules])
    benign = [r for r in rules if r.role == "benign"]
    for rule in rules:
        yield from _shape(rule)
        yield from _samples(rule, prefixes, benign)
        for sample in rule.samples:
            yield from _rivals(rule, messages(sample, prefixes), sample, rules)


def _shape(rule: FailureRule) -> Iterator[str]:
    if rule.class_ not in classes():
        yield f"{rule.id}: class {rule.class_!r} is not in the taxonomy"
    if rule.phase is not None and rule.phase not in PHASES:
        yield f"{rule.id}: {rule.phase!r} is no phase"
    if not 0 <= rule.specificity <= 100:
        yield f"{rule.id}: specificity {rule.specificity} is not within 0 to 100"
    if not rule.source:
        yield f"{rule.id}: no source"
    for word in rule.exits:
        if not _EXIT_WORD.match(word):
            yield f"{rule.id}: exit {word!r} is neither a code nor a signal"
    if rule.exits and not (rule.all or rule.any) and rule.role != "fallback":
        yield f"{rule.id}: a rule of exits alone must be a fallback"
    for remedy in rule.remedies:
        if remedy.scope not in _SCOPES:
            yield f"{rule.id}: remedy {remedy.id}: no scope {remedy.scope!r}"
        if remedy.where not in _PLACES:
            yield f"{rule.id}: remedy {remedy.id}: no place {remedy.where!r}"


def _samples(rule: FailureRule, prefixes: Sequence[re.Pattern[str]], benign: Sequence[FailureRule]) -> Iterator[str]:
    if (rule.all or rule.any) and not rule.samples:
        yield f"{rule.id}: no samples"
    for sample in rule.samples:
        lines = messages(sample, prefixes)
        if not satisfied(rule, lines):
            yield f"{rule.id} misses its sample {sample!r}"
        if any(_unsafe(p, line) for p in rule.patterns for line in lines):
            yield f"{rule.id}: a prefilter literal is not in a line that matches"
    for sample in rule.not_samples:
        lines = messages(sample, prefixes)
        if rule.role != "benign":
            lines = [line for line in lines if not any(satisfied(b, [line]) for b in benign)]
        if satisfied(rule, lines):
            yield f"{rule.id} matches what it must not: {sample!r}"


def _unfilled(rule: FailureRule, lines: Sequence[str]) -> set[str]:
    """Placeholders of the summary that the rule's own patterns can fill, and did not on *lines*."""
    regexes = [p.regex for p in rule.patterns if p.regex is not None]
    own = {name for r in regexes for name in r.groupindex}
    told = {k for r in regexes for m in map(r.search, lines) if m for k, v in m.groupdict().items() if v}
    return (set(_FIELD.findall(rule.summary)) & own) - told


def _rivals(rule: FailureRule, lines: Sequence[str], sample: str, rules: Sequence[FailureRule]) -> Iterator[str]:
    """Others that would claim *sample*: a benign rule hides it, a cause of another class beats it."""
    for other in rules:
        if other is rule:
            continue
        if other.role == "benign" and rule.role != "benign":
            hidden = [line for line in lines if satisfied(other, [line])]
            rest = [line for line in lines if line not in hidden]
            if hidden and not satisfied(rule, rest):
                yield f"{rule.id}: benign {other.id} hides its sample {sample!r}"
        elif (
            rule.role == "cause"
            and other.role == "cause"
            and other.class_ != rule.class_
            and other.specificity >= rule.specificity
            and satisfied(other, lines)
        ):
            yield f"{rule.id}: {other.id} ({other.class_}) claims its sample {sample!r}"


def _unsafe(pattern: Pattern, line: str) -> bool:
    return bool(pattern.literal and pattern.literal not in line and pattern.search(line))


def _unique(name: str, ids: Sequence[str]) -> Iterator[str]:
    for rule_id in sorted({i for i in ids if ids.count(i) > 1}):
        yield f"{name}: id {rule_id} is used twice"
