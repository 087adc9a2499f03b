"""Engines: one folder each. Outside this room no engine is named.

An engine recognises its own command, and brings its log grammar and failure rules as data. Third parties add
engines through the ``bringup.engines`` entry-point group.
"""

from bringup.engines.base import Engine, Options, Words
from bringup.engines.registry import all_engines, anyone, engine, recognise, watching

__all__ = ["Engine", "Options", "Words", "all_engines", "anyone", "engine", "recognise", "watching"]
