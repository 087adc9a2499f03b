"""The run document, kept up to date from events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bringup.states import State

_RUNGS = ("port", "health", "models", "completion")


def apply(document: dict[str, Any], event: Mapping[str, Any]) -> None:
    """Changes *document* by what *event* (an event document) says happened."""
    data, t_s = event["data"], event.get("t_s")
    match event["kind"]:
        case "state":
            _state(document, data["state"], t_s, event["at"])
        case "phase":
            # The log's word `ready` is a claim; the run is ready when it has answered.
            document["phase"] = data["name"] if data["name"] != "ready" else document["phase"]
            document["progress"] = document["eta_s"] = None
        case "progress":
            document["progress"] = {k: data.get(k) for k in ("fraction", "done", "total", "rate", "eta_s")}
            document["eta_s"] = data.get("eta_s")
        case "link":
            document["link"] = data["link"]
        case "probe":
            others = [p for p in document["probes"] if p["rung"] != data["rung"]]
            document["probes"] = sorted([*others, dict(data)], key=lambda p: _RUNGS.index(p["rung"]))
        case "diagnosis":
            found = data["diagnosis"]
            document["diagnosis"] = found
            document["after"] = found.get("after")
            document["engine_version"] = found.get("engine_version") or document.get("engine_version")
    if document["attempts"]:
        current = document["attempts"][-1]
        current["state"] = document["state"]
        if t_s is not None:
            current["seconds"] = round(t_s, 3)


def _state(document: dict[str, Any], word: str, t_s: float | None, at: str) -> None:
    document["state"] = word
    if word == "ready":
        document["ready_s"] = t_s
        document["phase"] = "ready"
        document["progress"] = document["eta_s"] = None
    if State.of(word).final:
        document["ended"] = at
