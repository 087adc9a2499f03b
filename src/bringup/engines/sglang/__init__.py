"""SGLang: ``python -m sglang.launch_server`` and ``sglang serve``."""

from bringup.engines.sglang.detect import ENGINE

__all__ = ["ENGINE"]
