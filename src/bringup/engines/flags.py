"""Reading a few flags out of an engine's arguments, the way argparse and its kin would."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from bringup.engines.base import Options


def last_values(
    args: Sequence[str], names: Mapping[str, str], prefixes: bool = True, underscores: bool = False
) -> dict[str, str]:
    """Values of the flags in *names* (spelling -> key); the last one wins; ``--flag=v`` and ``--flag v``.

    With *prefixes*, an unambiguous prefix of a long spelling counts, as argparse accepts it. With *underscores*,
    ``--flag_name`` is ``--flag-name``. A flag without a value is taken for not given.
    """
    found: dict[str, str] = {}
    longs = [n for n in names if n.startswith("--")]
    for i, word in enumerate(args):
        if not word.startswith("-"):
            continue
        flag, eq, value = word.partition("=")
        if underscores:
            flag = flag.replace("_", "-")
        key = names.get(flag)
        if key is None and prefixes and flag.startswith("--") and len(flag) > 4:
            keys = {names[n] for n in longs if n.startswith(flag)}
            key = keys.pop() if len(keys) == 1 else None
        if key is None:
            continue
        if not eq:
            value = args[i + 1] if i + 1 < len(args) else ""
            if not value or (value.startswith("--") and len(value) > 2):
                continue
        found[key] = value
    return found


_SWITCHES = ("--enable-", "--disable-", "--no-", "--skip-", "--use-", "--is-", "--trust-remote-code", "--enforce-eager")


def positionals(args: Sequence[str], switches: Iterable[str] = (), many: Iterable[str] = ()) -> list[str]:
    """The words that are no flag and no flag's value; *switches* are flags that take none, *many* take several.

    Flags that sound like switches (``--enable-...``) are taken for such. Without the engine's whole parser this is
    a reading, not a proof: a word after an unknown flag is taken for its value, and a number for one more.
    """
    bare, greedy = set(switches), set(many)
    out: list[str] = []
    takes = eats = False
    for word in args:
        if word.startswith("-") and len(word) > 1:
            eats = word in greedy
            takes = "=" not in word and word not in bare and not word.startswith(_SWITCHES)
        elif not takes and not eats and not word.isdigit():
            out.append(word)
        else:
            takes = False
    return out


def options(values: Mapping[str, str], model: str | None = None, task: str | None = None) -> Options:
    """Options from values read by ``last_values`` under the keys model, name, host, port, key, config."""
    port = values.get("port")
    return Options(
        model=values.get("model") or model,
        served_name=values.get("name"),
        host=values.get("host"),
        port=_port(port),
        api_key=values.get("key"),
        task=task,
        config=values.get("config"),
    )


def _port(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"[0-9]{1,5}", text):
        return None
    return int(text) if 0 < int(text) < 65536 else None


#: one-letter switches of the interpreter that may stand together, before ``m`` too (``-um module``)
_PYTHON_MODULE = re.compile(r"-[bBdEiIOPqRsSuvx]*m")
_PYTHON_TAKES_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})


def program(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """What *words* really run, and its arguments: ``python -u -m sglang.launch_server -x`` and
    ``python /v/bin/vllm serve`` give ``("sglang.launch_server", ("-x",))`` and ``("vllm", ("serve",))``.

    A path is cut to its last part; a script keeps its ``.py``.
    """
    if not words:
        return "", ()
    name = words[0].rsplit("/", 1)[-1]
    rest = list(words[1:])
    if not is_python(name):
        return name, tuple(rest)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        if match := _PYTHON_MODULE.match(word):
            rest = [word[match.end() :], *rest] if match.end() < len(word) else rest
            return (rest[0], tuple(rest[1:])) if rest else (name, ())
        if word == "-c":
            return name, tuple(words[1:])
        if word in _PYTHON_TAKES_VALUE and rest:
            rest.pop(0)
    if rest:
        return rest[0].rsplit("/", 1)[-1], tuple(rest[1:])
    return name, ()


def is_python(name: str) -> bool:
    """Whether a program of this basename is a Python interpreter."""
    stem = name.rstrip("0123456789.")
    return stem in ("python", "pypy", "pythonw") or name in ("python", "python3")
