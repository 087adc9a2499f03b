"""What ``bringup up`` without a command brings up: the embedded default engine."""

from __future__ import annotations

from bringup.engines.llamacpp import embedded
from bringup.paths import data_dir
from bringup.report.reporter import Reporter


def default_command(reporter: Reporter) -> tuple[str, ...]:
    """argv of the embedded engine on a free port; its environment is made first where it is missing."""
    found = embedded.ensure(data_dir(), reporter.note)
    port, was_taken = embedded.free_port()
    if was_taken:
        reporter.note(f"port 8080 is taken, using {port}")
    return tuple(found.argv(port))
