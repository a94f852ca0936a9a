"""The timeline of a run: events of jobs as frozen objects to read, and as columns to store."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class EventKind(IntEnum):
    """What happened, as a number in the timeline.

    Of one instant, ends are written first, then arrivals, then nodes, each that is lost with the jobs that it
    pauses, and last what the plan changes: who is paused, then who starts, moves or gets another pace.
    """

    FINISHED = 0
    ARRIVED = 1
    NODE_LOST = 2
    NODE_JOINED = 3
    PAUSED = 4
    STARTED = 5
    MOVED = 6
    PACED = 7
    FAILED = 8


@dataclass(frozen=True, slots=True)
class Event:
    at_s: float


@dataclass(frozen=True, slots=True)
class Arrived(Event):
    job: int


@dataclass(frozen=True, slots=True)
class Started(Event):
    """Runs now, on these slots, at this pace."""

    job: int
    pace_s: float
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Migrated(Event):
    """Ran, and runs on, but on other slots."""

    job: int
    pace_s: float
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Retimed(Event):
    """Runs on where it was, at another pace: its companions changed."""

    job: int
    pace_s: float


@dataclass(frozen=True, slots=True)
class Preempted(Event):
    """Waits again, with so many iterations left."""

    job: int
    remaining: float


@dataclass(frozen=True, slots=True)
class Finished(Event):
    job: int


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """Has ended with so many iterations left, for its attempts are used up; only on real machines."""

    job: int
    remaining: float


@dataclass(frozen=True, slots=True)
class NodeJoined(Event):
    node: int


@dataclass(frozen=True, slots=True)
class NodeLost(Event):
    node: int


def event(kind: EventKind, at_s: float, job: int, value: float, slots: tuple[int, ...]) -> Event:
    """The object for one record of a timeline."""
    match kind:
        case EventKind.ARRIVED:
            return Arrived(at_s, job)
        case EventKind.STARTED:
            return Started(at_s, job, value, slots)
        case EventKind.MOVED:
            return Migrated(at_s, job, value, slots)
        case EventKind.PACED:
            return Retimed(at_s, job, value)
        case EventKind.PAUSED:
            return Preempted(at_s, job, value)
        case EventKind.FINISHED:
            return Finished(at_s, job)
        case EventKind.FAILED:
            return Failed(at_s, job, value)
        case EventKind.NODE_JOINED:
            return NodeJoined(at_s, job)
        case EventKind.NODE_LOST:
            return NodeLost(at_s, job)


EVENT = np.dtype(
    [
        ("at_s", "f8"),
        ("value", "f8"),
        ("begin", "i8"),
        ("job", "i4"),
        ("gpus", "i4"),
        ("kind", "i4"),
    ],
    align=True,
)
"""One thing that happened; `value` is the pace of a start and the work left at a pause or a failure."""


class TimelineWriter:
    """A timeline while it is being written: arrays that double when they are full."""

    __slots__ = ("count", "events", "slots", "used")

    def __init__(self, events: int = 1024, slots: int = 4096) -> None:
        self.events = np.zeros(events, EVENT)
        self.slots = np.zeros(slots, np.int32)
        self.count = 0
        self.used = 0

    def reserve(self, events: int, slots: int) -> None:
        """Make room for so many more."""
        if self.count + events > len(self.events):
            self.events = _doubled(self.events, self.count + events)
        if self.used + slots > len(self.slots):
            self.slots = _doubled(self.slots, self.used + slots)

    def timeline(self) -> "Timeline":
        return Timeline(self.events[: self.count], self.slots[: self.used])


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened, in order."""

    events: NDArray[np.void]
    slots: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        for record in self.events:
            yield self._event(record)

    def _event(self, record: np.void) -> Event:
        begin, gpus = int(record["begin"]), int(record["gpus"])
        slots = tuple(self.slots[begin : begin + gpus].tolist())
        return event(
            EventKind(record["kind"]),
            float(record["at_s"]),
            int(record["job"]),
            float(record["value"]),
            slots,
        )


def _doubled(array: NDArray, at_least: int) -> NDArray:  # type: ignore[type-arg]
    grown = np.zeros(max(at_least, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown
