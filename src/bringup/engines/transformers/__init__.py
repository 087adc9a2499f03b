"""Hugging Face Transformers: ``transformers serve``."""

from bringup.engines.transformers.detect import ENGINE

__all__ = ["ENGINE"]
