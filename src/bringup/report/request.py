"""A request to copy that the server of a run answers."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from bringup.report.clean import one_line

_REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 64}),
    "completion": ("/v1/completions", {"prompt": "Hello", "max_tokens": 64}),
    "embedding": ("/v1/embeddings", {"input": "Hello"}),
    "rerank": ("/v1/rerank", {"query": "Hello", "documents": ["hello", "goodbye"]}),
}
_KEY_FLAG = re.compile(r"--(?:admin-)?api-key(?:-file)?(?:=|$)")
_KEY_VARIABLE = re.compile(r"(?i)^(?:[A-Z0-9]+_)*API_KEY$")
_KEY_WANTED = re.compile(r"wants (?:an API|a) key")


def curl(run: Mapping[str, Any]) -> str | None:
    """One command line to paste; None while there is no endpoint. The key itself is never in it."""
    endpoint = run.get("endpoint")
    if not endpoint:
        return None
    probes = {p["rung"]: p for p in run.get("probes") or []}
    rungs = [probes.get(r) or {} for r in ("models", "completion")]
    if all(p.get("status") == "skipped" for p in rungs) and not is_keyed(run):
        return f"curl {shlex.quote(one_line(endpoint).rstrip('/') + '/')}"  # it answers HTTP and is no model server
    data = rungs[1].get("data") or {}
    path, body = _REQUESTS.get(str(data.get("kind")), _REQUESTS["chat"])
    name = served_name(run)
    named = {"model": name, **body} if name else body
    url = shlex.quote(one_line(endpoint).rstrip("/") + path)
    key = ' -H "Authorization: Bearer $KEY"' if is_keyed(run) else ""
    # Escaped to ASCII: whatever the name of the model holds, it is one harmless word for shell and terminal.
    return f"curl {url}{key} -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(named))}"


def served_name(run: Mapping[str, Any]) -> str | None:
    """The name that the server's own list has for the model, else the name in the command."""
    probe = next((p for p in run.get("probes") or [] if p["rung"] == "models"), None)
    served = ((probe or {}).get("data") or {}).get("served")
    names = [str(s) for s in served if s] if isinstance(served, list) else []
    model = run.get("model")
    if model in names or not names:
        return str(model) if model else None
    return names[0]


def is_keyed(run: Mapping[str, Any]) -> bool:
    """Whether the server wants a key, as far as its command, its settings or its answers tell."""
    if any(_KEY_WANTED.search(str(p.get("why") or "")) for p in run.get("probes") or []):
        return True
    attempts = run.get("attempts") or []
    words = attempts[-1].get("command") or [] if attempts else []
    if any(_KEY_VARIABLE.match(str(w).partition("=")[0]) for w in words if "=" in str(w)):
        return True
    if any(_KEY_FLAG.match(str(w)) for w in words):
        return True
    if any(_KEY_VARIABLE.match(name) for name in run.get("environment") or {}):
        return True
    settings = (run.get("diagnosis") or {}).get("settings") or {}
    return any(settings.get(k) not in (None, "", [], False) for k in ("api_key", "api_keys"))


_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def shell_line(argv: Sequence[str]) -> str:
    """*argv* as a line for a shell; ``NAME=value`` in front stays an assignment, which a quoted word is not."""
    words: list[str] = []
    for word in argv:
        name = _ASSIGNMENT.match(word)
        if name and len(words) == sum(1 for w in words if _ASSIGNMENT.match(w)):
            words.append(name[0] + (shlex.quote(word[name.end() :]) if word[name.end() :] else ""))
        else:
            words.append(shlex.quote(word))
    return " ".join(words)
