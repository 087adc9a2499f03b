"""Follow: the log, the processes, and the end of both."""

from bringup.follow.follower import Follower
from bringup.follow.signals import Data, Exited, ExitFile, Gone, Rotated, Signal, Truncated, Woken

__all__ = ["Data", "ExitFile", "Exited", "Follower", "Gone", "Rotated", "Signal", "Truncated", "Woken"]
