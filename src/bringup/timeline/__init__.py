"""Pure: bytes -> lines -> events -> where the start is. Runs on recorded bytes exactly as on live ones."""

from bringup.timeline.lines import LineSplitter, RawLine
from bringup.timeline.reader import Timeline
from bringup.timeline.view import Found, Trace, View

__all__ = ["Found", "LineSplitter", "RawLine", "Timeline", "Trace", "View"]
