"""Pure: what a start came to, and why. Remedies leave here as goals; the remedy room puts numbers in."""

from bringup.diagnose.diagnose import Facts, diagnose
from bringup.diagnose.several import merge
from bringup.diagnose.whose import whose

__all__ = ["Facts", "diagnose", "merge", "whose"]
