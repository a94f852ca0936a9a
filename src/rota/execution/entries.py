"""Events and decisions of a population as entries of a journal, and back, without loss of precision."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, is_dataclass
from typing import Any, get_args

from rota.core.errors import InputError
from rota.core.population.events import Assign, Clone, Decision, Event, Interval, name_in_files
from rota.execution.journal import JournalEntry
from rota.results.population.timeline_file import checked

LOST = "the run cannot be resumed"
INSTANT, DECIDED = "instant", "decided"
"""Kinds of entries: the events of one instant, and the decisions about them."""
EVENTS: dict[str, Any] = {name_in_files(kind): kind for kind in get_args(Event)}
DECISIONS: dict[str, Any] = {name_in_files(kind): kind for kind in get_args(Decision)}

Record = list[Any]
"""A name, followed by the fields in order."""


class PopulationEntries:
    """The format of a population's instants and decisions in a journal."""

    def happened(self, instant: list[Event], state: Any) -> tuple[float, dict[str, Any]]:
        return instant[0].at_s, {"events": event_records(instant)}

    def instant(self, body: Mapping[str, Any], state: Any) -> list[Event]:
        return parse_events(body["events"])

    def decided(self, decisions: list[Decision], state: Any) -> list[Record]:
        return decision_records(decisions)


def follow(observer: Any, entry: JournalEntry) -> None:
    """Let an observer `see` the events or `decide` the decisions of an entry, if it has some."""
    if entry.kind == INSTANT:
        observer.see(parse_events(entry.body["events"]))
    elif entry.kind == DECIDED:
        observer.decide(parse_decisions(entry.body["decisions"]))


def event_records(events: Iterable[Event]) -> list[Record]:
    """Return events as plain lists, as `parse_events` reads them."""
    return [[name_in_files(type(event)), *event] for event in events]


def parse_events(records: Sequence[Record]) -> list[Event]:
    """Return the events that were written; raise InputError if they are malformed."""
    try:
        return [_event(name, fields) for name, *fields in records]
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(f"the journal has a malformed event ({error!r}); {LOST}") from None


def decision_records(decisions: Iterable[Decision]) -> list[Record]:
    """Return decisions as plain lists, equal to what is read back from JSON."""
    return [[name_in_files(type(decision)), *_fields(decision)] for decision in decisions]


def parse_decisions(records: Sequence[Record]) -> list[Decision]:
    """Return the decisions that were written; raise InputError if they are malformed."""
    try:
        return [_decision(name, fields) for name, *fields in records]
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(f"the journal has a malformed decision ({error!r}); {LOST}") from None


def _event(name: str, fields: list[Any]) -> Event:
    if name == "Cloned":
        fields[-1] = tuple(fields[-1])
    event: Event = EVENTS[name](*fields)
    return checked(event)


def _fields(decision: Decision) -> Iterable[Any]:
    if isinstance(decision, Assign):
        return decision.slot, [list(interval) for interval in decision.parts]
    if isinstance(decision, Clone):
        return decision.trial, decision.donor, dict(decision.hyper), list(decision.changes)
    return astuple(decision) if is_dataclass(decision) else tuple(decision)


def _decision(name: str, fields: list[Any]) -> Decision:
    if name == "Hand":
        return Assign(fields[0], [Interval(*interval) for interval in fields[1]])
    if name == "Clone":
        trial, donor, hyper, changes = fields
        return Clone(trial, donor, hyper, tuple(changes))
    decision: Decision = DECISIONS[name](*fields)
    return decision
