"""Secrets are taken out before anything is stored or shown.

Two ways in: values known to be secret (``--api-key VALUE``, ``HF_TOKEN=...``) and shapes that are secret
wherever they stand (``hf_...``, ``sk-...``, ``Bearer ...``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

MASK = "[redacted]"

_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_-])(?:token|secret|password|passwd|passphrase|credential|credentials|auth|"
    r"api[_-]?key|access[_-]?key|private[_-]?key|key)$"
)
#: names that end like a secret and are none
_PLAIN_NAME = re.compile(
    r"(?i)(?:max|num|min|stop|eos|bos|pad|sep|cls|mask|image|sort|primary|partition)[_-]?(?:token|key)$"
)
_SHAPES = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}\b|\bsk-[A-Za-z0-9_-]{16,}\b|\bghp_[A-Za-z0-9]{20,}\b|\bnvapi-[A-Za-z0-9_-]{16,}\b"
    r"|(?<=Bearer )[A-Za-z0-9._~+/=-]{8,}|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
_INLINE = re.compile(
    r"""(?ix)((?:--|['"]|\b)(?:hf[_-]token|(?:admin[_-]|ssl[_-]keyfile[_-])?(?:api[_-]key|password)|auth[_-]token)['"]?\s*[=:\s]\s*)
        (\[[^\]]*\]|'[^']*'|"[^"]*"|[^\s,'")}\]]+)"""
)


def secret_name(name: str) -> bool:
    """Whether a variable or flag of this name holds a secret (``HF_TOKEN``, ``--api-key``)."""
    bare = name.lstrip("-")
    return bool(_SECRET_NAME.search(bare)) and not _PLAIN_NAME.search(bare)


def redact_text(text: str, known: Iterable[str] = ()) -> str:
    """*text* with known secret values and secret shapes masked."""
    for value in known:
        if len(value) >= 4:
            text = text.replace(value, MASK)
    text = _SHAPES.sub(MASK, text)
    return _INLINE.sub(_mask_inline, text)


def _mask_inline(match: re.Match[str]) -> str:
    value = match[2].strip("'\"")
    return match[0] if value in ("None", "none", "null", "") else match[1] + MASK


def redact_env(env: Mapping[str, str]) -> dict[str, str]:
    """*env* with the values of secret names masked."""
    return {k: MASK if secret_name(k) and v else redact_text(v) for k, v in env.items()}


def redact_argv(argv: Iterable[str]) -> list[str]:
    """*argv* with the values of secret flags and ``VAR=value`` words masked."""
    out: list[str] = []
    hide = False
    for word in argv:
        if hide and not word.startswith("-"):
            out.append(MASK)
            continue  # --api-key takes several values in vLLM
        hide = False
        name, eq, value = word.partition("=")
        if eq and secret_name(name) and value:
            out.append(f"{name}={MASK}")
        elif word.startswith("-") and secret_name(word):
            hide = True
            out.append(word)
        else:
            out.append(redact_text(word))
    return out


def secrets_in(argv: Iterable[str], env: Mapping[str, str]) -> frozenset[str]:
    """Every secret value that this argv and environment hold, for masking them in logs."""
    found = {v for k, v in env.items() if secret_name(k) and v}
    take = False
    for word in argv:
        if take and not word.startswith("-"):
            found.add(word)
            continue
        take = False
        name, eq, value = word.partition("=")
        if eq and secret_name(name) and value:
            found.add(value)
        elif word.startswith("-") and secret_name(word):
            take = True
    return frozenset(found)
