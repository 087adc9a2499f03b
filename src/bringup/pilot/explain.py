"""The diagnosis of a run that has none yet: its log as far as it goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bringup.diagnose import Facts, diagnose
from bringup.engines import watching
from bringup.launch.attempt import AttemptDir
from bringup.ledger import RunDir
from bringup.report.documents import diagnosis_document
from bringup.timeline import Timeline


def explain(run_dir: RunDir, document: Mapping[str, Any]) -> dict[str, Any]:
    """The diagnosis document of the newest attempt's log; nothing is recorded."""
    attempt = AttemptDir(run_dir.attempt(max(1, run_dir.last_attempt)))
    known = watching(document["engine"])
    timeline = Timeline(known)
    try:
        with attempt.log.open("rb") as file:
            while block := file.read(1 << 20):
                timeline.feed(block)
    except OSError:
        pass  # no log yet: an empty view is the honest answer
    ended = attempt.read_exit()
    return diagnosis_document(diagnose(timeline.view, known, Facts(exit=ended, ended=ended is not None)))
