"""Reading rule files. A wrong file is told with its name, the stanza and the key; it is never half used."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, get_args

from bringup.rules.match import required_literal
from bringup.rules.model import FailureRule, Grammar, LineRule, Pattern, RemedyRule, Role

_FAILURE_KEYS = {
    "id", "class", "engine", "role", "fatal", "specificity", "phase", "all", "any", "none", "exit", "within",
    "summary", "explanation", "remedy", "samples", "not_samples", "source", "versions",
}  # fmt: skip
_LINE_KEYS = {
    "id", "match", "phase", "ends", "ready", "unready", "stopping", "restart", "settings", "worker",
    "self_noise", "samples", "not_samples", "source",
}  # fmt: skip
_REMEDY_KEYS = {"id", "where", "name", "to", "scope", "why", "loss"}


class RuleError(ValueError):
    """A rule file that cannot be used: the message names file, stanza and key."""


def pattern(text: str) -> Pattern:
    """A phrase as written in a rule file: ``re:...`` is a regular expression, anything else a literal."""
    if not text.startswith("re:"):
        return Pattern(text, None, text)
    source = text[3:]
    return Pattern(text, re.compile(source), required_literal(source))


def load_failures(file: Traversable, engine: str) -> tuple[FailureRule, ...]:
    """The failure rules of *file*. Raises RuleError for any stanza that is not whole."""
    return tuple(_failure(file.name, engine, raw) for raw in _read(file).get("failure", []))


def load_grammar(file: Traversable) -> Grammar:
    """The startup grammar of *file*. Raises RuleError for any stanza that is not whole."""
    data = _read(file)
    name = f"{data.get('engine', '?')}/{file.name}"
    return Grammar(
        engine=str(data["engine"]),
        order=tuple(data["order"]),
        prefixes=tuple(re.compile(p) for p in data.get("prefixes", [])),
        rules=tuple(_line(name, raw) for raw in data.get("line", [])),
        budgets={k: float(v) for k, v in data.get("budgets", {}).items()},
        default_host=str(data.get("default_host", "127.0.0.1")),
        default_port=data.get("default_port"),
        ready_is_log=bool(data.get("ready_is_log", True)),
        processes=tuple(data.get("processes", [])),
    )


@cache
def stack_failures() -> tuple[FailureRule, ...]:
    """Failures of what lies under every engine: torch, CUDA, NCCL, Triton, the hub, Python, Linux."""
    found: list[FailureRule] = []
    folder = resources.files("bringup.rules") / "stack"
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".toml"):
            found.extend(load_failures(file, "stack"))
    return tuple(found)


def _read(file: Traversable) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as exc:
        raise RuleError(f"{file.name}: {exc}") from None


def _failure(file: str, engine: str, raw: Mapping[str, Any]) -> FailureRule:
    where = f"{file}: failure {raw.get('id', '?')!r}"
    _known(where, raw, _FAILURE_KEYS)
    for key in ("id", "class", "summary", "explanation", "source"):
        if not isinstance(raw.get(key), str):
            raise RuleError(f"{where}: `{key}` is missing")
    role = raw.get("role", "cause")
    if role not in get_args(Role):
        raise RuleError(f"{where}: role {role!r} is none of {', '.join(get_args(Role))}")
    exits = tuple(str(e) for e in raw.get("exit", []))
    if not raw.get("all") and not raw.get("any") and not exits:
        raise RuleError(f"{where}: it needs `all`, `any` or `exit`")
    return FailureRule(
        id=raw["id"],
        class_=raw["class"],
        engine=raw.get("engine", engine),
        role=role,
        fatal=bool(raw.get("fatal", False)),
        specificity=int(raw.get("specificity", 50)),
        phase=raw.get("phase"),
        all=_patterns(where, raw.get("all", [])),
        any=_patterns(where, raw.get("any", [])),
        none=_patterns(where, raw.get("none", [])),
        exits=exits,
        within=int(raw.get("within", 400)),
        summary=raw["summary"],
        explanation=raw["explanation"].strip(),
        remedies=tuple(_remedy(where, r) for r in raw.get("remedy", [])),
        samples=tuple(raw.get("samples", [])),
        not_samples=tuple(raw.get("not_samples", [])),
        source=raw["source"],
        versions=raw.get("versions"),
    )


def _remedy(where: str, raw: Mapping[str, Any]) -> RemedyRule:
    _known(where + " remedy", raw, _REMEDY_KEYS)
    for key in ("id", "where", "name", "scope", "why"):
        if not isinstance(raw.get(key), str):
            raise RuleError(f"{where}: a remedy lacks `{key}`")
    to = raw.get("to")
    return RemedyRule(
        id=raw["id"],
        where=raw["where"],
        name=raw["name"],
        scope=raw["scope"],
        why=raw["why"],
        to=None if to is None else str(to),
        loss=tuple(raw.get("loss", [])),
    )


def _line(file: str, raw: Mapping[str, Any]) -> LineRule:
    where = f"{file}: line {raw.get('id', '?')!r}"
    _known(where, raw, _LINE_KEYS)
    for key in ("id", "match", "source"):
        if not isinstance(raw.get(key), str):
            raise RuleError(f"{where}: `{key}` is missing")
    return LineRule(
        id=raw["id"],
        pattern=_patterns(where, [raw["match"]])[0],
        phase=raw.get("phase"),
        ends=bool(raw.get("ends", False)),
        ready=bool(raw.get("ready", False)),
        unready=bool(raw.get("unready", False)),
        stopping=bool(raw.get("stopping", False)),
        restart=bool(raw.get("restart", False)),
        settings=raw.get("settings"),
        worker=raw.get("worker"),
        self_noise=bool(raw.get("self_noise", False)),
        samples=tuple(raw.get("samples", [])),
        not_samples=tuple(raw.get("not_samples", [])),
        source=raw["source"],
    )


def _patterns(where: str, texts: list[str]) -> tuple[Pattern, ...]:
    try:
        return tuple(pattern(t) for t in texts)
    except re.error as exc:
        raise RuleError(f"{where}: {exc}") from None


def _known(where: str, raw: Mapping[str, Any], keys: set[str]) -> None:
    for key in raw:
        if key not in keys:
            raise RuleError(f"{where}: unknown key `{key}`")
