"""The readiness ladder: ready means answered.

``port -> health -> models -> completion``, each rung with its time and, where it is not met, why. No engine is
named here: what differs between engines comes in as data (the task, whether models load lazily, whether the
command is known to speak the OpenAI API).
"""

from bringup.probe.endpoint import Endpoint
from bringup.probe.ladder import Ladder, Upto
from bringup.probe.prober import Prober, check_alive, climb

__all__ = ["Endpoint", "Ladder", "Prober", "Upto", "check_alive", "climb"]
