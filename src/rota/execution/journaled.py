"""A backend that keeps a journal: what happened and what was decided is written before it is acted on."""

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
    """Seconds in which the run was run: they go on where they were when it is resumed."""

    def __init__(self, tick: Callable[[], float] = time.monotonic) -> None:
        self._tick = tick
        self._began = tick()

    def now_s(self) -> float:
        return self._tick() - self._began

    def at_least(self, at_s: float) -> None:
        """It is known to be so late."""
        self._began = min(self._began, self._tick() - at_s)

    def go_on_from(self, at_s: float) -> None:
        self._began = self._tick() - at_s


class OtherDecision(RotaError):
    """The policy does not decide again what it decided then."""


class EntryFormat(Protocol):
    """How instants and decisions are written: of a population, of jobs."""

    def happened(self, instant: Any, state: Any) -> tuple[float, Body]:
        """When, and what. The state has not taken it in yet."""

    def instant(self, body: Body, state: Any) -> Any:
        """What was written."""

    def decided(self, decisions: Any, state: Any) -> list[Any]:
        """Plain lists, equal to what is read back from JSON; empty if nothing was."""


class ResumableBackend(Protocol):
    """A backend that can be told what happened before."""

    def instants(self, state: Any) -> Iterator[Any]: ...

    def perform(self, decisions: Any, state: Any) -> None: ...

    def recall(self, instant: Any) -> None:
        """This happened before: nothing is to be done about it."""

    def remember(self, decisions: Any, state: Any) -> None:
        """This was decided before; whatever of it has not happened yet is still to be done."""


class JournalObserver(Protocol):
    """Whoever is told what the journal is told, at each beginning from its first entry."""

    def see(self, instant: Any) -> None:
        """This happened."""

    def decide(self, decisions: Any) -> None:
        """This was decided about it."""


class Journaled:
    """Gives the instants of the journal first. That policies decide again what they did is checked."""

    def __init__(
        self,
        inner: ResumableBackend,
        journal: Journal,
        words: EntryFormat,
        witness: JournalObserver | None = None,
    ) -> None:
        self._inner, self._journal, self._words, self._witness = inner, journal, words, witness
        self._decided: list[object] | None = None
        """What the journal says was decided at the present instant; None if it does not."""
        self._live = False
        self._happened: list[Line] = []
        """What happened at the present instant, if the journal does not have it yet."""
        self.replayed = 0
        """Instants that came from the journal."""

    def instants(self, state: Any) -> Iterator[Any]:
        for instant in self._past(state):
            yield self._seen(instant)
        self._decided, self._live = None, True
        for instant in self._inner.instants(state):
            at_s, body = self._words.happened(instant, state)
            self._happened = [(at_s, INSTANT, body)]
            yield self._seen(instant)

    def _seen(self, instant: Any) -> Any:
        if self._witness is not None:
            self._witness.see(instant)
        return instant

    def perform(self, decisions: Any, state: Any) -> None:
        if self._witness is not None:
            self._witness.decide(decisions)
        said = self._words.decided(decisions, state)
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
        """What happened before. The last instant may have no decisions yet: they are made and written now."""
        entries = _of_the_run(self._journal)
        entry = next(entries, None)
        while entry is not None:
            instant = self._words.instant(entry.body, state)
            entry = next(entries, None)
            if entry is not None and entry.kind == DECIDED:
                self._decided = entry.body["decisions"]
                entry = next(entries, None)
            else:
                self._decided = [] if entry is not None else None
            self._inner.recall(instant)
            self.replayed += 1
            yield instant


def _of_the_run(journal: Journal) -> Iterator[JournalEntry]:
    return (entry for entry in journal.read() if entry.kind in (INSTANT, DECIDED))


def _short(value: object, most: int = 200) -> str:
    text = str(value)
    return text if len(text) <= most else text[:most] + "…"


BEGAN, RESUMED, STOPPED, ENDED = "began", "resumed", "stopped", "ended"
"""Kinds of entries besides those of the loop: at the beginning and the end of each process of a run."""

Record = dict[str, Any]
"""What a run is, as plain values; its name is under `run`, the digest of its configuration under `config`."""


def begin_or_resume(journal: Journal, books: RunPaths, described: Callable[[str], Record]) -> Record:
    """What the journal says the run is; written there if it is new. `described` takes the name of the run."""
    entries = journal.read()
    first = next(entries, None)
    if first is None:
        books.check_nothing_was_made()
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
    """Raise InputError if a journal is of another run than the configuration says."""
    described = json.loads(json.dumps(described))  # lists, as they are read back
    known = {"config": described["config"], **found}  # older journals do not say
    if known == described:
        return
    if {**known, "config": described["config"]} == described:
        what = "the configuration has been changed since this run began; bring back what it was"
    else:
        what = "of another run than the configuration says; bring back the configuration that it began with"
    raise InputError(f"{file}: {what}, or choose another folder")
