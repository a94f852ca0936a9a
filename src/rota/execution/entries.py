"""Events and decisions of a population as entries of a journal, and back; numbers stay what they are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, is_dataclass
from typing import Any, get_args

from rota.core.errors import InputError
from rota.core.population.events import Assign, Clone, Decision, Event, Interval, name_in_files
from rota.results.population.timeline_file import checked

LOST = "the run cannot be resumed"
INSTANT, DECIDED = "instant", "decided"
"""Kinds of entries: what happened at one instant, and what was decided then."""
EVENTS: dict[str, Any] = {name_in_files(kind): kind for kind in get_args(Event)}
DECISIONS: dict[str, Any] = {name_in_files(kind): kind for kind in get_args(Decision)}

Record = list[Any]
"""A name, and the fields in their order."""


class PopulationEntries:
    """How a journal speaks of a population."""

    def happened(self, instant: list[Event], state: Any) -> tuple[float, dict[str, Any]]:
        return instant[0].at_s, {"events": event_records(instant)}

    def instant(self, body: Mapping[str, Any], state: Any) -> list[Event]:
        return parse_events(body["events"])

    def decided(self, decisions: list[Decision], state: Any) -> list[Record]:
        return decision_records(decisions)


def event_records(events: Iterable[Event]) -> list[Record]:
    return [[name_in_files(type(event)), *event] for event in events]


def parse_events(records: Sequence[Record]) -> list[Event]:
    """What was written; an error if it is something else."""
    try:
        return [_event(name, fields) for name, *fields in records]
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(f"the journal has what is no event ({error!r}); the run cannot be resumed") from None


def decision_records(decisions: Iterable[Decision]) -> list[Record]:
    """Plain lists, equal to what is read back from JSON."""
    return [[name_in_files(type(decision)), *_fields(decision)] for decision in decisions]


def parse_decisions(records: Sequence[Record]) -> list[Decision]:
    """What was written; an error if it is something else."""
    try:
        return [_decision(name, fields) for name, *fields in records]
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"the journal has what is no decision ({error!r}); the run cannot be resumed"
        ) from None


def _event(name: str, fields: list[Any]) -> Event:
    if name == "Cloned":
        fields[-1] = tuple(fields[-1])
    event: Event = EVENTS[name](*fields)
    return checked(event)


def _fields(decision: Decision) -> Iterable[Any]:
    if isinstance(decision, Assign):
        return decision.slot, [list(part) for part in decision.parts]
    if isinstance(decision, Clone):
        return decision.trial, decision.donor, dict(decision.hyper), list(decision.changes)
    return astuple(decision) if is_dataclass(decision) else tuple(decision)


def _decision(name: str, fields: list[Any]) -> Decision:
    if name == "Hand":
        return Assign(fields[0], [Interval(*part) for part in fields[1]])
    if name == "Clone":
        trial, donor, hyper, changes = fields
        return Clone(trial, donor, hyper, tuple(changes))
    decision: Decision = DECISIONS[name](*fields)
    return decision
