"""A backend with a journal: what happened and what was decided is written before it is acted on."""

import json
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from rota.core.errors import InputError, RotaError
from rota.execution.entries import DECIDED, INSTANT
from rota.execution.folder import RunPaths
from rota.execution.journal import Body, Journal, JournalEntry, Line


class RunClock:
    """Seconds of a run; a resumed run continues where it stopped."""

    def __init__(self, tick: Callable[[], float] = time.monotonic) -> None:
        self._tick = tick
        self._began = tick()

    def now_s(self) -> float:
        """Return the time of the run in seconds."""
        return self._tick() - self._began

    def at_least(self, at_s: float) -> None:
        """Advance the clock to this time, unless it is later already."""
        self._began = min(self._began, self._tick() - at_s)

    def go_on_from(self, at_s: float) -> None:
        """Set the clock to this time."""
        self._began = self._tick() - at_s


class OtherDecision(RotaError):
    """A resumed policy does not repeat the decision that is in the journal."""


class EntryFormat(Protocol):
    """How the instants and decisions of one family, populations or jobs, are written to a journal."""

    def happened(self, instant: Any, state: Any) -> tuple[float, Body]:
        """Return time and content of an instant that is not yet applied to the state."""

    def instant(self, body: Body, state: Any) -> Any:
        """Return the instant that was written."""

    def decided(self, decisions: Any, state: Any) -> list[Any]:
        """Return decisions as plain lists, equal to what is read back from JSON; empty if there are none."""


class ResumableBackend(Protocol):
    """A backend whose past instants and decisions can be restored."""

    def instants(self, state: Any) -> Iterator[Any]: ...

    def perform(self, decisions: Any, state: Any) -> None: ...

    def recall(self, instant: Any) -> None:
        """Restore an instant from the journal, without acting on it."""

    def remember(self, decisions: Any, state: Any) -> None:
        """Restore decisions from the journal; what they began and did not end is still to be done."""


class JournalObserver(Protocol):
    """An observer of all instants and decisions, from the first entry of the journal on."""

    def see(self, instant: Any) -> None:
        """Observe an instant."""

    def decide(self, decisions: Any) -> None:
        """Observe the decisions of the latest instant."""


class Journaled:
    """A backend that first repeats the instants of its journal, then continues and extends it.

    A policy that does not repeat its decisions of the journal raises OtherDecision.
    """

    def __init__(
        self,
        inner: ResumableBackend,
        journal: Journal,
        entry_format: EntryFormat,
        observer: JournalObserver | None = None,
    ) -> None:
        self._inner, self._journal, self._format, self._observer = inner, journal, entry_format, observer
        self._decided: list[object] | None = None
        """The decisions in the journal for the present instant; None if there are none yet."""
        self._live = False
        self._happened: list[Line] = []
        """The present instant, if it is not yet in the journal."""
        self.restored = 0
        """Number of instants from the journal."""

    def instants(self, state: Any) -> Iterator[Any]:
        """Yield the instants of the journal, then those of the backend."""
        for instant in self._past(state):
            yield self._seen(instant)
        self._decided, self._live = None, True
        for instant in self._inner.instants(state):
            at_s, body = self._format.happened(instant, state)
            self._happened = [(at_s, INSTANT, body)]
            yield self._seen(instant)

    def _seen(self, instant: Any) -> Any:
        if self._observer is not None:
            self._observer.see(instant)
        return instant

    def perform(self, decisions: Any, state: Any) -> None:
        """Write new decisions, then act on them; compare repeated ones with the journal."""
        if self._observer is not None:
            self._observer.decide(decisions)
        said = self._format.decided(decisions, state)
        if self._decided is None:
            lines = self._happened
            if said:
                lines.append((state.now_s, DECIDED, {"decisions": said}))
            if lines:
                self._journal.append_all(lines)
            self._happened = []
            (self._inner.perform if self._live else self._inner.remember)(decisions, state)
            return
        if said != self._decided:
            raise OtherDecision(
                f"at {state.now_s:g} s the policy decides {_short(said)}, but the journal says "
                f"{_short(self._decided)}; resume with the version and the configuration that began the run"
            )
        self._inner.remember(decisions, state)

    def _past(self, state: Any) -> Iterator[Any]:
        """Yield the instants of the journal; the last one may still lack its decisions."""
        entries = _of_the_run(self._journal)
        entry = next(entries, None)
        while entry is not None:
            instant = self._format.instant(entry.body, state)
            entry = next(entries, None)
            if entry is not None and entry.kind == DECIDED:
                self._decided = entry.body["decisions"]
                entry = next(entries, None)
            else:
                self._decided = [] if entry is not None else None
            self._inner.recall(instant)
            self.restored += 1
            yield instant


def _of_the_run(journal: Journal) -> Iterator[JournalEntry]:
    return (entry for entry in journal.read() if entry.kind in (INSTANT, DECIDED))


def _short(value: object, most: int = 200) -> str:
    text = str(value)
    return text if len(text) <= most else text[:most] + "…"


BEGAN, RESUMED, STOPPED, ENDED = "began", "resumed", "stopped", "ended"
"""Kinds of entries at the beginning and the end of each process of a run."""

Record = dict[str, Any]
"""The facts about a run as plain values; `run` is its name, `config` the digest of its configuration."""


def begin_or_resume(journal: Journal, paths: RunPaths, described: Callable[[str], Record]) -> Record:
    """Return the facts in the journal; write `described(name of the run)` first if it is new."""
    entries = journal.read()
    first = next(entries, None)
    if first is None:
        paths.check_nothing_was_made()
        record = described(secrets.token_hex(8))
        journal.append(BEGAN, record)
        journal.settle()
        return record
    check_config(journal.file, first.body, described(first.body.get("run", "")))
    for _ in entries:  # nothing is added to a journal of which something is damaged
        pass
    journal.append(RESUMED, {})
    return first.body


def check_config(file: Path, found: Record, described: Record) -> None:
    """Raise InputError if a journal is of another run than the configuration describes."""
    described = json.loads(json.dumps(described))  # lists, as they are read back
    known = {"config": described["config"], **found}  # older journals do not say
    if known == described:
        return
    if {**known, "config": described["config"]} == described:
        what = "the configuration has been changed since this run began; bring back what it was"
    else:
        what = "of another run than the configuration says; bring back the configuration that it began with"
    raise InputError(f"{file}: {what}, or choose another folder")
