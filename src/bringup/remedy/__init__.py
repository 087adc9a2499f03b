"""Pure: remedies filled with numbers, and the corrected command.

A diagnosis brings remedies as goals; where the goal's value is known the corrected command is written out.
"""

from bringup.remedy.apply import corrected, with_commands

__all__ = ["corrected", "with_commands"]
