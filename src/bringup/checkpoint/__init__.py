"""Facts of a model on disk."""

from bringup.checkpoint.shards import missing_shards

__all__ = ["missing_shards"]
