"""What a model list says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Served:
    """The models of a list: the names to show and ask for, those and their aliases, what the first can do."""

    names: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    capabilities: frozenset[str] = frozenset()

    def pick(self, asked: str | None) -> str | None:
        """The served name that is meant by *asked*, else the first one; None if nothing is served."""
        for name in self.names:
            if asked and same_model(asked, name):
                return name
        return asked if asked in self.known else next(iter(self.names), None)


def served_models(body: Any) -> Served | None:
    """The models in the answer of ``/v1/models`` (``data`` or ``models``); None if it is no model list."""
    if not isinstance(body, dict):
        return None
    lists = [body[key] for key in ("data", "models") if isinstance(body.get(key), list)]
    if not lists:
        return None
    rows = [row for part in lists for row in part if isinstance(row, dict)]
    names = dict.fromkeys(name for row in rows if (name := _name(row)))
    aliases = [a for row in rows for a in row.get("aliases") or () if isinstance(a, str)]
    return Served(tuple(names), (*names, *aliases), _capabilities(rows[0] if rows else {}, rows))


def same_model(asked: str, name: str) -> bool:
    """Whether a server's *name* is the model *asked* for: equal, the last part of a path, or with a revision."""
    name = name.split("@", 1)[0]
    asked = asked.rstrip("/")
    return asked == name.rstrip("/") or asked.rsplit("/", 1)[-1] == name.rstrip("/").rsplit("/", 1)[-1]


def _name(row: Mapping[str, Any]) -> str | None:
    return next((row[k] for k in ("id", "name", "model") if isinstance(row.get(k), str)), None)


def _capabilities(first: Mapping[str, Any], rows: list[dict[str, Any]]) -> frozenset[str]:
    """What the first model says that it can do; the two lists of one answer speak of the same model."""
    name = _name(first)
    told = [row.get("capabilities") for row in rows if _name(row) == name]
    return frozenset(c for part in told if isinstance(part, list) for c in part if isinstance(c, str))
