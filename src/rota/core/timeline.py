"""The timeline of a run of jobs: events as frozen objects to read, and as columns to store."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class EventKind(IntEnum):
    """The kind of an event, as its number in a timeline.

    At one instant, ends come first, then arrivals, then failed attempts, then nodes (each lost node followed
    by the jobs that it preempts), and then the changes of the plan: preemptions first, then starts,
    migrations and new step times. What a job loses is written before the event by which it loses it.
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
    ATTEMPT_FAILED = 9
    ROLLED_BACK = 10
    RESIZED = 11


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a time, in seconds."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Arrived(Event):
    """A job that was submitted."""

    job: int


@dataclass(frozen=True, slots=True)
class Started(Event):
    """A waiting job that started on these slots, with this step time."""

    job: int
    pace_s: float
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Migrated(Event):
    """A running job that was put on other slots."""

    job: int
    pace_s: float
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Resized(Event):
    """A running job whose gang became larger or smaller, with this step time from now on."""

    job: int
    pace_s: float
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Retimed(Event):
    """A running job that has a new step time on the same slots, since the jobs that share them changed."""

    job: int
    pace_s: float


@dataclass(frozen=True, slots=True)
class Preempted(Event):
    """A running job that waits again, with this many iterations left."""

    job: int
    remaining: float


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """A job that has no iterations left."""

    job: int


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """A job that failed for good, with this many iterations left."""

    job: int
    remaining: float


@dataclass(frozen=True, slots=True)
class AttemptFailed(Event):
    """A running job that failed, and waits for its next attempt with this many iterations left."""

    job: int
    remaining: float


@dataclass(frozen=True, slots=True)
class RolledBack(Event):
    """A job that goes on from its last checkpoint, so that it does this many iterations again."""

    job: int
    iterations: float


@dataclass(frozen=True, slots=True)
class NodeJoined(Event):
    """A node whose slots can be used from now on."""

    node: int


@dataclass(frozen=True, slots=True)
class NodeLost(Event):
    """A node that is gone; its jobs continue from their last checkpoints elsewhere."""

    node: int


PLAIN = {
    EventKind.ARRIVED: Arrived,
    EventKind.FINISHED: Finished,
    EventKind.NODE_JOINED: NodeJoined,
    EventKind.NODE_LOST: NodeLost,
}
"""Events of a job or node that say no more."""
VALUED = {
    EventKind.PACED: Retimed,
    EventKind.PAUSED: Preempted,
    EventKind.FAILED: Failed,
    EventKind.ATTEMPT_FAILED: AttemptFailed,
    EventKind.ROLLED_BACK: RolledBack,
}
"""Events that say a number, too."""
PLACED = {EventKind.STARTED: Started, EventKind.MOVED: Migrated, EventKind.RESIZED: Resized}
"""Events that say a step time and slots."""


def event(kind: EventKind, at_s: float, job: int, value: float, slots: tuple[int, ...]) -> Event:
    """Return the object for one record of a timeline."""
    if kind in PLAIN:
        return PLAIN[kind](at_s, job)
    if kind in VALUED:
        return VALUED[kind](at_s, job, value)
    return PLACED[kind](at_s, job, value, slots)


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
"""An event; `value` is the step time of a start, the iterations left at a preemption or failure, or those
that were lost."""


class TimelineWriter:
    """A timeline being written: arrays that double when they are full."""

    __slots__ = ("count", "events", "slots", "used")

    def __init__(self, events: int = 1024, slots: int = 4096) -> None:
        self.events = np.zeros(events, EVENT)
        self.slots = np.zeros(slots, np.int32)
        self.count = 0
        self.used = 0

    @classmethod
    def for_jobs(cls, jobs: int) -> "TimelineWriter":
        """Return one with room for what so many jobs usually write; room that is not used takes no memory."""
        return cls(max(1024, 6 * jobs), max(4096, 8 * jobs))

    def reserve(self, events: int, slots: int) -> None:
        """Make room for more events and slots."""
        if self.count + events > len(self.events):
            self.events = _doubled(self.events, self.count + events)
        if self.used + slots > len(self.slots):
            self.slots = _doubled(self.slots, self.used + slots)

    def timeline(self) -> "Timeline":
        """Return the timeline of all events so far."""
        return Timeline(self.events[: self.count], self.slots[: self.used])


@dataclass(frozen=True, slots=True)
class Timeline:
    """The events of a run, in order."""

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
