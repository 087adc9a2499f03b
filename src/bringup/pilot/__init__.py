"""The only joiner: plan -> launch -> follow -> probe -> diagnose, and what can be done with a run afterwards."""

from bringup.pilot.attach import attach, refresh
from bringup.pilot.foreign import watch_log
from bringup.pilot.judge import judge_file
from bringup.pilot.stopping import stop_run
from bringup.pilot.up import UpOptions, bring_up

__all__ = ["UpOptions", "attach", "bring_up", "judge_file", "refresh", "stop_run", "watch_log"]
