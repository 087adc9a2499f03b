"""Secrets are taken out before anything is stored or shown.

Two ways in: values known to be secret (``--api-key VALUE``, ``HF_TOKEN=...``) and shapes that are secret
wherever they stand (``hf_...``, ``sk-...``, ``Bearer ...``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

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
    r"\bhf_[A-Za-z0-9]{16,}\b|\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}\b|\bgithub_pat_\w{20,}\b"
    r"|\bnvapi-[A-Za-z0-9_-]{16,}|\bglpat-[\w-]{16,}|\bAKIA[A-Z0-9]{16}\b"
    r"|(?<=Bearer )[A-Za-z0-9._~+/=-]{4,}|(?<=Basic )[A-Za-z0-9+/=]{8,}|(?<=://)[^/\s:@'\"]+:[^/\s@'\"]+(?=@)"
)
#: ``NAME=value``, ``'name': value``, ``name: value``; what is a name of a secret is asked of ``_inline_name``
_INLINE = re.compile(
    r"""(?x)(?P<head>(?P<name>(?<![\w-])(?:--?)?[A-Za-z][\w-]{2,60})['"]?\s?[=:]\s{0,3})
        (?P<value>\[[^\]]*\]|\([^)]*\)|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s,'")}\]&;|]+)"""
)
#: ``--api-key value value``: between a flag and its values stands a space
_FLAG = re.compile(
    r"""(?x)(?P<head>(?<![\w-])--(?P<name>[A-Za-z][\w-]{2,60})\s+)
        (?P<value>(?:'[^']*'|"[^"]*"|[^\s,'")}\]&;|-][^\s,'")}\]&;|]*)(?:\s+(?:'[^']*'|"[^"]*"|[^\s,'")}\]&;|<>-][^\s,'")}\]&;|]*))*)"""
)
_NAMES_IN_TEXT = re.compile(
    r"(?i)(?:^|[_-])(?:api[_-]?keys?|(?:hf|hub|auth|access|api|bearer|session|refresh|github|gitlab|wandb)[_-]?token|"
    r"(?:secret|access|private|client)[_-]?(?:access[_-]?)?key|secret|password|passwd|passphrase|credentials?)$"
)
_ENV_TOKEN = re.compile(r"^[A-Z][A-Z0-9_]*_(?:TOKEN|SECRET|KEY|PASSWORD)$")
_NO_VALUE = frozenset({"None", "none", "null", "", "True", "False", "true", "false", "[]", "{}", "()"})
#: flags that take several values
_SEVERAL = re.compile(r"(?i)api[_-]?keys?$")


def secret_name(name: str) -> bool:
    """Whether a variable or flag of this name holds a secret (``HF_TOKEN``, ``--api-key``)."""
    bare = name.lstrip("-")
    return bool(_SECRET_NAME.search(bare)) and not _PLAIN_NAME.search(bare)


def redact_text(text: str, known: Iterable[str] = ()) -> str:
    """*text* with known secret values and secret shapes masked."""
    for value in sorted(known, key=len, reverse=True):  # one secret may hold another
        if len(value) >= 4:
            text = text.replace(value, MASK)
    text = _SHAPES.sub(MASK, text)
    if "=" in text or ":" in text:
        text = _INLINE.sub(_mask_inline, text)
    return _FLAG.sub(_mask_flag, text) if "--" in text else text


def _inline_name(name: str) -> bool:
    """Whether ``name=value`` in running text gives a secret away. Stricter than ``secret_name``: a log says
    ``#new-token: 26`` and ``sort-key: x`` all day."""
    bare = name.lstrip("-")
    return bool(_NAMES_IN_TEXT.search(bare) or _ENV_TOKEN.match(bare)) and not _PLAIN_NAME.search(bare)


def _mask_inline(match: re.Match[str]) -> str:
    value = match["value"].strip("'\"")
    if value in _NO_VALUE or MASK in value or not _inline_name(match["name"]):
        return match[0]
    return match["head"] + MASK


def _mask_flag(match: re.Match[str]) -> str:
    if not _inline_name(match["name"]):
        return match[0]
    if _SEVERAL.search(match["name"]):
        return match["head"] + MASK
    first = re.match(r"'[^']*'|\"[^\"]*\"|\S+", match["value"])
    return match["head"] + MASK + match["value"][first.end() if first else 0 :]


def redact_env(env: Mapping[str, str]) -> dict[str, str]:
    """*env* with the values of secret names masked."""
    return {k: MASK if secret_name(k) and v else redact_text(v) for k, v in env.items()}


def redact_argv(argv: Iterable[str], known: Iterable[str] = ()) -> list[str]:
    """*argv* with the values of secret flags and ``VAR=value`` words masked, and these values wherever they recur."""
    words = list(argv)
    secret = dict(_secret_words(words))
    values = {*known, *(value for _, value in secret.values())}
    return [secret[i][0] + MASK if i in secret else redact_text(word, values) for i, word in enumerate(words)]


def secrets_in(argv: Iterable[str], env: Mapping[str, str]) -> frozenset[str]:
    """Every secret value that this argv and environment hold, for masking them in logs."""
    found = {v for k, v in env.items() if secret_name(k) and v}
    return frozenset(found.union(value for _, (_, value) in _secret_words(list(argv))))


def _secret_words(argv: list[str]) -> Iterator[tuple[int, tuple[str, str]]]:
    """Words that hold a secret: (index, (what stands before it in the word, the secret))."""
    several: bool | None = None
    leading = True
    for i, word in enumerate(argv):
        if several is not None and word and not word.startswith("-"):
            yield i, ("", word)
            several = several or None  # vLLM's `--api-key` takes several values, others one
            continue
        several = None
        name, eq, value = word.partition("=")
        leading = leading and bool(eq)
        spaced = any(c.isspace() for c in (name if leading else word))  # `HF_TOKEN=x vllm serve M` is a shell's string
        if eq and value and secret_name(name) and not spaced:
            yield i, (f"{name}=", value)
        elif not eq and word.startswith("-") and secret_name(word):
            several = bool(_SEVERAL.search(word))
