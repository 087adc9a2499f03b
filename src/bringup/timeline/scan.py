"""What one line says, told apart from where in the start it stands.

A log is a few hundred forms of lines with other numbers in them. What the rules find in a line of one form, they
find at the same places in the next, so it is remembered by form: the line's bytes with every digit made a 0.
Rules that ask for certain digits are left out of that and tried each time (``rules.match``). The memory changes
how fast a line is read, never what is read in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from bringup.engines import Engine
from bringup.rules import FailureRule, Grammar, Hit, LineRule, Matcher
from bringup.rules.match import Candidate, Spot
from bringup.timeline.evidence import Clue, harmless, matcher
from bringup.timeline.prefix import Piece, Place, Prefixes
from bringup.timeline.traces import CHAINED, EXCEPTION, START

#: characters of one message that the rules see; only the settings line is read beyond
SEEN = 1 << 14
#: forms that are remembered, their bytes in sum, and the longest line whose form is
FORMS = 4096
FORM_BYTES = 1 << 22
LONGEST = 1 << 13

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_ERROR_LINE = re.compile(
    r"(?:\b(?:ERROR|CRITICAL|FATAL|Error|Exception|Fatal|fatal error|Aborted|panicked)\b|\berror: )"
)
_ERROR_LEVELS = frozenset({"ERROR", "CRITICAL", "FATAL", "E", "F"})

T = TypeVar("T")


class Message(NamedTuple):
    """One message of a line: its prefix, the rules that know it, the failure patterns in it.

    ``opens``: a traceback begins here; ``chains``: the next one follows from the last; ``raised``: it reads like a
    traceback's last line (name, text); ``error``: it calls itself an error.
    """

    text: str
    rank: str | None
    time: str | None
    rules: Sequence[Hit[LineRule]]
    clues: Sequence[Hit[Clue]]
    opens: bool
    chains: bool
    raised: tuple[str, str] | None
    error: bool


@dataclass(frozen=True, slots=True)
class Form:
    """A message of every line of one form: all that cannot differ between them.

    ``dull``: no rule knows it, no failure is in it, and it does not call itself an error.
    """

    piece: Piece
    rules: tuple[Spot[LineRule], ...]
    moody_rules: tuple[Candidate[LineRule], ...]
    clues: tuple[Spot[Clue], ...]
    moody_clues: tuple[Candidate[Clue], ...]
    opens: bool
    chains: bool
    raised: tuple[Place, Place] | None
    error: bool
    dull: bool


_shared: dict[int, tuple[Engine, Scanner]] = {}


def scanner_of(engine: Engine) -> Scanner:
    """The scanner for *engine*'s logs, shared by all timelines of a process: making one costs milliseconds."""
    known = _shared.get(id(engine))
    if known is None or known[0] is not engine:
        if len(_shared) >= 32:
            _shared.clear()
        known = _shared[id(engine)] = (engine, Scanner(engine.grammar, engine.failures))
    return known[1]


class Scanner:
    """Reads lines one by one; knows nothing of the lines before."""

    def __init__(self, grammar: Grammar, failures: Sequence[FailureRule]) -> None:
        self._prefixes = Prefixes(grammar.prefixes)
        self._rules: Matcher[LineRule] = Matcher((r, r.pattern) for r in grammar.rules)
        self._clues = matcher(failures)
        self._forms: dict[bytes, tuple[Form, ...]] = {}
        self._form_bytes = 0

    def scan(self, text: str, raw: bytes = b"") -> list[Message]:
        """The messages of one line; see ``forms``."""
        return [message(text, form) for form in self.forms(text, raw)]

    def forms(self, text: str, raw: bytes = b"") -> tuple[Form, ...]:
        """The forms of the messages of one line. *raw*: its bytes, if its form may be remembered."""
        if not raw or len(raw) > LONGEST or not self._prefixes.steady:
            return self._read(text)
        key = raw.translate(_ZEROS)
        forms = self._forms.get(key)
        if forms is None:
            self._form_bytes += len(key)
            if len(self._forms) >= FORMS or self._form_bytes > FORM_BYTES:
                self._forms.clear()
                self._form_bytes = len(key)
            forms = self._forms[key] = self._read(text)
        return forms

    def _read(self, line: str) -> tuple[Form, ...]:
        forms: list[Form] = []
        for piece in self._prefixes.pieces(line):
            form = self._form(line, piece)
            forms.append(form)
            if any(s.owner.settings for s in form.rules) or any(c.owner.settings for c in form.moody_rules):
                # The settings are one message to the end of the line, whatever their values look like.
                forms[-1] = self._form(line, piece._replace(end=len(line)))
                break
        return tuple(forms)

    def _form(self, line: str, piece: Piece) -> Form:
        text = line[piece.start : min(piece.end, piece.start + SEEN)]
        rules, moody_rules = self._rules.look(text) if text else ([], [])
        clues, moody_clues = self._clues.look(text) if text else ([], [])
        if not moody_clues and harmless(s.owner for s in clues):
            clues = []
        raised = EXCEPTION.match(text)
        level = line[slice(*piece.level)] if piece.level else None
        opens, chains = START in text, bool(CHAINED.search(text))
        error = level in _ERROR_LEVELS or bool(_ERROR_LINE.search(text))
        return Form(
            piece, tuple(rules), tuple(moody_rules), tuple(clues), tuple(moody_clues),
            opens=opens,
            chains=chains,
            raised=(raised.span("name"), raised.span("message")) if raised else None,
            error=error,
            dull=not (rules or moody_rules or clues or moody_clues or opens or chains or raised or error),
        )  # fmt: skip


def message(line: str, form: Form) -> Message:
    """The message that *form* is in *line*."""
    start, end, rank, time, _ = form.piece
    text = line[start:end]
    clues: Sequence[Hit[Clue]] = ()
    if form.clues or form.moody_clues:
        clues = _hits(text, form.clues, form.moody_clues)
        if form.moody_clues and harmless(h.owner for h in clues):
            clues = ()
        else:
            clues = [h for h in clues if h.owner[0].role != "benign"]
    raised = None
    if form.raised is not None:
        (a, b), (c, d) = form.raised
        raised = (text[a:b], text[c:d])
    return Message(
        text,
        None if rank is None else line[rank[0] : rank[1]],
        None if time is None else line[time[0] : time[1]],
        _hits(text, form.rules, form.moody_rules) if form.rules or form.moody_rules else (),
        clues,
        form.opens,
        form.chains,
        raised,
        form.error,
    )


def _hits(text: str, spots: tuple[Spot[T], ...], moody: tuple[Candidate[T], ...]) -> list[Hit[T]]:
    if not moody:
        return [s.hit(text) for s in spots]
    seen = text[:SEEN]
    found = [*spots, *(s for c in moody if (s := c.search(seen)) is not None)]
    return [s.hit(text) for s in sorted(found, key=lambda s: s.index)]
