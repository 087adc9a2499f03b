"""Knowledge as data: how rule files are read and matched. What a log line means is in the files, not here.

Two kinds of files, both TOML, both made of stanzas with samples that must match, samples that must not, and a
source: ``startup.toml`` (how an engine's start reads when it goes well) and ``failures.toml`` (how it fails).
"""

from bringup.rules.load import RuleError, load_failures, load_grammar, stack_failures
from bringup.rules.match import Hit, Matcher
from bringup.rules.model import FailureRule, Grammar, LineRule, Pattern, RemedyRule

__all__ = [
    "FailureRule",
    "Grammar",
    "Hit",
    "LineRule",
    "Matcher",
    "Pattern",
    "RemedyRule",
    "RuleError",
    "load_failures",
    "load_grammar",
    "stack_failures",
]
