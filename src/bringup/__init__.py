"""Bring up LLM inference servers: launch detached, follow the start, say ready or exactly why not."""

__version__ = "0.1.0"
