"""The timeline of one source: bytes in, typed events out, a view of where the start is."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from bringup.engines import Engine
from bringup.facts import Event, Line
from bringup.redact import MASK, redact_text, secret_name
from bringup.rules import Hit, LineRule
from bringup.timeline.evidence import record
from bringup.timeline.lines import LineSplitter, RawLine
from bringup.timeline.phases import Phases
from bringup.timeline.prefix import Piece
from bringup.timeline.progress import figures, progress
from bringup.timeline.scan import Message, message, scanner_of
from bringup.timeline.traces import Tracebacks
from bringup.timeline.view import KEEP_TAIL, KEEP_TRACES, Seen, Trace, View

#: characters of a line that are kept as evidence
SHOWN = 2000
#: and of a figure that is text
TOLD = 400
KEEP_ERRORS = 20


class Timeline:
    """Reads one source of one start. Feed bytes as they come, ``flush`` when no more will come.

    Events come without ``seq``, ``run``, ``attempt`` and ``at``; ``t_s`` is what the caller says (seconds since
    start), or None for a recorded log. If the source holds several startups, ``view`` is about the last one.
    """

    def __init__(
        self, engine: Engine, source: str = "log", secrets: frozenset[str] = frozenset(), offset: int = 0
    ) -> None:
        self.engine = engine
        self.source = source
        self._secrets = secrets
        self._grammar = engine.grammar
        self._scanner = scanner_of(engine)
        self._splitter = LineSplitter(offset)
        #: grows whenever the source shows life; lines that only our own probes cause do not count
        self.movement = 0
        self._begin(0)

    def _begin(self, restarts: int) -> None:
        self._view = View(engine=self.engine.name, restarts=restarts)
        self._phases = Phases(self._grammar.order, self._view)
        self._traces = Tracebacks()
        self._last_bar: tuple[str | None, str] | None = None
        #: lines for the view's tail; redacted only if somebody looks
        self._tail: deque[tuple[int, str, Piece]] = deque(maxlen=KEEP_TAIL)

    @property
    def view(self) -> View:
        """What is known now. Bounded in size; it goes on changing as bytes are fed."""
        view = self._view
        while self._tail:
            number, line, piece = self._tail.popleft()
            text = line[piece.start : piece.end]
            if text and not text.isspace():
                rank = None if piece.rank is None else line[slice(*piece.rank)]
                view.tail.append(self._shown(number, rank, text))
        return view

    def restart(self) -> None:
        """The source begins again from its first byte (it was cut or replaced)."""
        self._splitter = LineSplitter()
        self._begin(self._view.restarts + 1)

    @property
    def offset(self) -> int:
        """Bytes consumed so far, from the start of the source."""
        return self._splitter.offset

    def feed(self, data: bytes, t_s: float | None = None) -> list[Event]:
        """Events of the lines that *data* completes."""
        events: list[Event] = []
        for line in self._splitter.feed(data):
            self._line(line, t_s, events)
        return events

    def flush(self, t_s: float | None = None) -> list[Event]:
        """Events of a last line without an end."""
        events: list[Event] = []
        for line in self._splitter.flush():
            self._line(line, t_s, events)
        return events

    # -- one line -------------------------------------------------------------------------------------------

    def _line(self, raw: RawLine, t_s: float | None, events: list[Event]) -> None:
        text = raw.text
        if not text:
            return
        for form in self._scanner.forms(text, raw.raw):
            if form.dull and not self._traces.open:
                view = self._view
                view.lines += 1
                view.t_s = t_s
                self.movement += 1
                self._tail.append((raw.number, text[: form.piece.start + SHOWN], form.piece))
            else:
                self._message(raw, message(text, form), form.piece, t_s, events)

    def _message(self, raw: RawLine, message: Message, piece: Piece, t_s: float | None, events: list[Event]) -> None:
        rules = message.rules
        for hit in rules:
            if hit.owner.restart and self._is_restart():
                self._begin(self._view.restarts + 1)
                restart = {"name": self._view.phase, "worker": None, "restart": self._view.restarts}
                events.append(self._event("phase", restart, raw, message, t_s))
                break
        view = self._view
        view.lines += 1
        view.t_s = t_s
        if not rules:
            self.movement += 1
            self._failures(raw, message, piece, t_s, events)
            return
        if not all(h.owner.self_noise for h in rules):
            self.movement += 1
        settings = next((h for h in rules if h.owner.settings), None)
        if settings is not None:
            # Recognised first and kept from every other rule: its names are other rules' words.
            self._settings(settings, raw, message, t_s, events)
            return
        for hit in rules:
            self._known(hit, raw, message, t_s, events)
        if not raw.bar:
            self._failures(raw, message, piece, t_s, events)

    def _is_restart(self) -> bool:
        view = self._view
        return bool(view.settings or view.serving or view.ready or view.stopping or view.phase not in ("spawn", "args"))

    def _settings(
        self, hit: Hit[LineRule], raw: RawLine, message: Message, t_s: float | None, events: list[Event]
    ) -> None:
        view = self._view
        parse = self.engine.settings.get(hit.owner.settings or "")
        found = parse(message.text) if parse else None
        view.known += 1
        view.moved = view.lines
        if found:
            clean = {k: self._redacted(k, v) for k, v in found.items()}
            view.settings.update(clean)
            view.host = str(found["host"]) if found.get("host") else view.host
            if isinstance(found.get("port"), int):
                view.port = found["port"]
            events.append(self._event("settings", {"settings": clean}, raw, message, t_s))
        self._enter(hit.owner, raw, message, t_s, events)

    def _redacted(self, name: str, value: Any) -> Any:
        """A printed argument as it may be stored: JSON types, secrets masked at any depth."""
        if secret_name(name) and value not in (None, "", [], False):
            return MASK
        if isinstance(value, dict):
            return {str(k): self._redacted(str(k), v) for k, v in value.items()}
        if isinstance(value, (list, tuple, set)):
            return [self._redacted("", v) for v in value]
        if isinstance(value, (int, float, bool, type(None))):
            return value
        return redact_text(str(value), self._secrets)

    def _known(
        self, hit: Hit[LineRule], raw: RawLine, message: Message, t_s: float | None, events: list[Event]
    ) -> None:
        rule, view = hit.owner, self._view
        view.known += 1
        if rule.stopping and not view.stopping:
            view.stopping = view.lines
        if rule.self_noise:
            return
        self._endpoint(hit.groups)
        moving = self._progress(rule, hit.groups, raw, message, t_s, events)
        if moving is None:
            found = self._clean(hit.groups)
            if found:
                self._figures(rule, found, raw, message, t_s, events)
        if rule.stopping:
            return
        view.moved = view.lines
        self._enter(rule, raw, message, t_s, events)
        if rule.unready:
            view.ready = 0
        elif rule.ready and not view.ready:
            view.ready = view.lines
        if rule.phase in ("serving", "ready", "warmup") and not view.serving:
            view.serving = view.lines

    def _endpoint(self, groups: Mapping[str, str]) -> None:
        view = self._view
        host, port = groups.get("host"), groups.get("port", "")
        if groups.get("url"):
            parts = urlsplit(groups["url"])
            host, port = parts.hostname, str(parts.port or "")
        if port.isdigit():
            view.port = int(port)
            view.host = host or view.host
        view.version = groups.get("version") or view.version
        view.model = groups.get("model") or view.model

    def _enter(self, rule: LineRule, raw: RawLine, message: Message, t_s: float | None, events: list[Event]) -> None:
        for data in self._phases.see(rule, message.rank, t_s):
            events.append(self._event("phase", data, raw, message, t_s))

    def _progress(
        self,
        rule: LineRule,
        groups: Mapping[str, str],
        raw: RawLine,
        message: Message,
        t_s: float | None,
        events: list[Event],
    ) -> dict[str, Any] | None:
        moving = progress(groups)
        if moving is None:
            return None
        key = (rule.id, f"{moving['done']}/{moving['fraction']}")
        if key != self._last_bar:  # a bar repaints itself many times at the same place
            self._last_bar = key
            self._phases.progress(rule.phase, moving["fraction"])
            data = {"phase": rule.phase, "rule": rule.id, **moving}
            events.append(self._event("progress", data, raw, message, t_s))
        return moving

    def _figures(
        self,
        rule: LineRule,
        found: dict[str, Any],
        raw: RawLine,
        message: Message,
        t_s: float | None,
        events: list[Event],
    ) -> None:
        view = self._view
        if view.worker == "draft" and rule.worker != "target":
            found = {k if k.startswith("draft_") else f"draft_{k}": v for k, v in found.items()}
        for name, value in found.items():
            view.figures.setdefault(name, value)
        events.append(self._event("figure", {"rule": rule.id, "figures": found}, raw, message, t_s))

    # -- failures -------------------------------------------------------------------------------------------

    def _failures(self, raw: RawLine, message: Message, piece: Piece, t_s: float | None, events: list[Event]) -> None:
        view = self._view
        shown: Line | None = None
        if message.raised is not None or message.opens or message.chains or self._traces.open:
            shown = self._trace(raw, message)
        if message.clues:
            shown = shown or self._shown(raw.number, message.rank, message.text)
            base = Seen(shown, view.lines, raw.offset, {})
            for hit in message.clues:
                seen = Seen(shown, view.lines, raw.offset, self._clean(hit.groups)) if hit.groups else base
                found = record(view.found, hit, seen)
                if found is not None:
                    found.after_stop = bool(view.stopping)
                    found.after_ready = bool(view.ready)
                    found.phase = view.phase
                    data = {
                        "rule": found.rule.id, "class": found.rule.class_, "role": found.rule.role,
                        "fatal": found.rule.fatal, "text": shown.text[:400],
                    }  # fmt: skip
                    events.append(self._event("symptom", data, raw, message, t_s))
        if message.rules:
            return
        self._tail.append((raw.number, raw.text[: piece.start + SHOWN], piece))
        if message.error and len(view.first_errors) < KEEP_ERRORS:
            shown = shown or self._shown(raw.number, message.rank, message.text)
            view.first_errors.append((view.lines, shown))

    def _trace(self, raw: RawLine, message: Message) -> Line | None:
        """Follows tracebacks; the line that ends one."""
        view, rank = self._view, message.rank
        if message.opens:
            self._traces.begin(rank, view.lines)
            return None
        if message.chains:
            self._traces.chain(rank)
            return None
        exception = self._traces.feed(message.text, rank, view.lines, message.raised)
        if exception is None or len(view.traces) >= KEEP_TRACES:
            return None
        shown = self._shown(raw.number, rank, message.text)
        said = redact_text(exception.message[:SHOWN], self._secrets)
        trace = Trace(
            exception.first, view.lines, shown, exception.name, said, rank, raw.offset,
            after_stop=bool(view.stopping), chained=exception.chained,
        )  # fmt: skip
        view.traces.append(trace)
        return shown

    def _clean(self, groups: Mapping[str, str]) -> dict[str, Any]:
        """The figures in *groups*; those that are text without secrets."""
        found = figures(groups)
        return {k: redact_text(v[:TOLD], self._secrets) if isinstance(v, str) else v for k, v in found.items()}

    def _shown(self, number: int, rank: str | None, text: str) -> Line:
        return Line(self.source, number, rank, redact_text(text[:SHOWN], self._secrets))

    def _event(self, kind: Any, data: Mapping[str, Any], raw: RawLine, message: Message, t_s: float | None) -> Event:
        return Event(
            kind=kind, data=data, source=self.source, offset=raw.offset, line=raw.number, log_at=message.time,
            t_s=t_s, phase=self._view.phase, worker=self._phases.worker, rank=message.rank,
        )  # fmt: skip
