"""vLLM: ``vllm serve`` and ``python -m vllm.entrypoints.openai.api_server``."""

from bringup.engines.vllm.detect import ENGINE

__all__ = ["ENGINE"]
