"""llama.cpp: ``llama-server`` and the HTTP server embedded in xllamacpp."""

from bringup.engines.llamacpp.detect import ENGINE

__all__ = ["ENGINE"]
