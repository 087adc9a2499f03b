"""Where bringup keeps things: the XDG base directories, each with a ``bringup`` folder of its own.

State is what a run is (run directories, the ledger), data is what bringup installs (engine environments).
"""

from __future__ import annotations

import os
from pathlib import Path

from bringup.errors import UsageError

_HINT = "choose another place with --state-dir DIR or BRINGUP_STATE_DIR=DIR"


def state_dir(override: str | None = None) -> Path:
    """The folder of runs and ledger: *override* (``--state-dir``), ``$BRINGUP_STATE_DIR``, XDG state. Absolute."""
    chosen = override or os.environ.get("BRINGUP_STATE_DIR")
    if chosen:
        return _absolute(chosen)
    return _xdg("XDG_STATE_HOME", ".local/state")


def data_dir() -> Path:
    """The folder of what bringup installs for itself, such as the default engine's environment."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def config_dir() -> Path:
    """The folder of the user's configuration."""
    return _xdg("XDG_CONFIG_HOME", ".config")


def cache_dir() -> Path:
    """The folder of what may be deleted at any time."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def run_dir(state: Path, run: str) -> Path:
    """The folder that holds a run's attempts: ``<state>/runs/<run>``."""
    return state / "runs" / run


def ensure_private(path: Path) -> Path:
    """Make *path* with its missing parents, each 0700, and return it.

    An existing folder keeps its mode. Raises ``UsageError`` where that is not possible or *path* is not writable.
    """
    try:
        _make(path)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as e:
        raise UsageError(f"cannot write to `{path}`: {e.strerror or e}", _HINT) from e
    return path


def _make(path: Path) -> None:
    if path.is_dir():
        return
    if path.parent != path:
        _make(path.parent)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():  # somebody else may have made the same folder meanwhile
            raise


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    if value.startswith("/"):  # the XDG specification: a relative value is to be ignored
        return Path(value) / "bringup"
    try:
        return Path.home() / default / "bringup"
    except RuntimeError as e:
        raise UsageError("there is no home directory", f"set HOME; {_HINT}") from e


def _absolute(text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as e:  # ~nobody-of-that-name
        raise UsageError(f"no such home directory: `{text}`", _HINT) from e
