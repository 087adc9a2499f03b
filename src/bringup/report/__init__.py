"""What a person sees, and the JSON that programs read."""

from bringup.report.reporter import JsonlReporter, NullReporter, QuietReporter, Reporter, choose

__all__ = ["JsonlReporter", "NullReporter", "QuietReporter", "Reporter", "choose"]
