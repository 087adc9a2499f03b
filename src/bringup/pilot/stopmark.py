"""The mark that says a coming death is wanted: written before the first signal, read by whoever follows the run."""

from __future__ import annotations

import os

from bringup.launch.attempt import AttemptDir


def ask_stop(attempt: AttemptDir) -> None:
    """Marks the attempt as being stopped. A directory that cannot be written changes nothing but the wording."""
    try:
        os.close(os.open(attempt.path / "stop", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        pass  # the run is then told as ended by a signal, which is true too


def stop_asked(attempt: AttemptDir) -> bool:
    """Whether somebody asked through bringup for this attempt to end."""
    return (attempt.path / "stop").exists()
