"""The recorded logs of real engines, and how they are read in tests."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bringup.diagnose import Facts, diagnose
from bringup.engines import Engine, engine
from bringup.facts import Diagnosis, Event, Exit
from bringup.timeline import Timeline

LOGS = Path(__file__).parent / "data" / "logs"
#: folder of recordings -> engine whose log it is
FOLDERS = {"xllamacpp": "llamacpp"}


@dataclass(frozen=True)
class Recorded:
    """One recorded start: how its process ended, and what it is known to have come to."""

    path: Path
    exit: Exit | None
    state: str
    after: str | None
    class_: str | None

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def engine(self) -> Engine:
        folder = self.path.parent.name
        return engine(FOLDERS.get(folder, folder))

    def read(self) -> bytes:
        return self.path.read_bytes()

    @property
    def healthy(self) -> bool:
        return self.state == "ready" and self.after in (None, "stopped")


@cache
def recorded() -> tuple[Recorded, ...]:
    found = []
    for file in sorted(LOGS.glob("*/*.json")):
        data = json.loads(file.read_text())
        expected, ended = data["expected"], data["exit"]
        found.append(
            Recorded(
                file.with_suffix(".log"),
                None if ended is None else Exit(ended["code"], ended["signal"]),
                expected["state"],
                expected["after"],
                expected["class"],
            )
        )
    return tuple(found)


@cache
def without_exit() -> dict[str, Any]:
    """What a log alone tells, where that differs from what it tells with the exit: name -> expectation."""
    with (LOGS / "expected.toml").open("rb") as file:
        found: dict[str, Any] = tomllib.load(file)["without_exit"]
    return found


def timeline(known: Engine, data: bytes, *, flush: bool = True) -> Timeline:
    reading = Timeline(known)
    reading.feed(data)
    if flush:
        reading.flush()
    return reading


def judge(known: Engine, data: bytes, **facts: Any) -> Diagnosis:
    return diagnose(timeline(known, data).view, known, Facts(**facts))


def outcome_of(found: Diagnosis) -> tuple[str, str | None, str | None]:
    return found.state, found.after, found.cause.class_ if found.cause else None


def events(known: Engine, chunks: list[bytes]) -> list[Event]:
    reading = Timeline(known)
    return [e for chunk in chunks for e in reading.feed(chunk)] + reading.flush()
