"""RUN as people write it: an id, a unique prefix of one, or a name; without it the newest run."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from bringup.errors import UsageError
from bringup.ledger.rundir import RunDir

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id(now: float | None = None) -> str:
    """An id that sorts by time: 7 base-32 characters of seconds since 1970, then 4 random ones."""
    seconds = int(time.time() if now is None else now)
    head = "".join(_ALPHABET[(seconds >> (5 * i)) & 31] for i in reversed(range(7)))
    return head + "".join(secrets.choice(_ALPHABET) for _ in range(4))


def list_runs(state_dir: Path) -> Iterator[RunDir]:
    """Every run of this state directory, newest first."""
    folder = state_dir / "runs"
    try:
        names = sorted((p.name for p in folder.iterdir() if not p.name.startswith(".")), reverse=True)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise UsageError(
            f"cannot read `{folder}`: {exc.strerror}", "pass --state-dir or set BRINGUP_STATE_DIR"
        ) from None
    for name in names:
        run = RunDir(folder / name)
        if (run.path / "run.json").is_file():
            yield run


def find_run(state_dir: Path, word: str | None) -> RunDir:
    """The run that *word* means. Raises UsageError if none or several do."""
    if word is None:
        newest = next(list_runs(state_dir), None)
        if newest is None:
            raise UsageError("there is no run yet", "start one with `bringup up -- COMMAND...`")
        return newest
    word = word.removeprefix("run:")
    runs = list(list_runs(state_dir))
    exact = [r for r in runs if r.id == word]
    if exact:
        return exact[0]
    prefixed = [r for r in runs if word and r.id.startswith(word)]
    if len(prefixed) == 1:
        return prefixed[0]
    for run in runs:  # newest first: a name is reused by later runs
        document = run.read()
        if document and document.get("name") == word:
            return run
    if prefixed:
        raise UsageError(f"`{word}` is the beginning of {len(prefixed)} run ids", "write more of the id")
    raise UsageError(f"there is no run `{word}`", "see the runs with `bringup ps`")
