"""What can happen to a job, in the past tense: frozen objects to read, numbers in the timeline."""

from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
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
class Moved(Event):
    """Ran, and runs on, but on other slots."""

    job: int
    pace_s: float
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Paced(Event):
    """Runs on where it was, at another pace: its companions changed."""

    job: int
    pace_s: float


@dataclass(frozen=True, slots=True)
class Paused(Event):
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


def event(kind: Kind, at_s: float, job: int, value: float, slots: tuple[int, ...]) -> Event:
    """The object for one record of a timeline."""
    match kind:
        case Kind.ARRIVED:
            return Arrived(at_s, job)
        case Kind.STARTED:
            return Started(at_s, job, value, slots)
        case Kind.MOVED:
            return Moved(at_s, job, value, slots)
        case Kind.PACED:
            return Paced(at_s, job, value)
        case Kind.PAUSED:
            return Paused(at_s, job, value)
        case Kind.FINISHED:
            return Finished(at_s, job)
        case Kind.FAILED:
            return Failed(at_s, job, value)
        case Kind.NODE_JOINED:
            return NodeJoined(at_s, job)
        case Kind.NODE_LOST:
            return NodeLost(at_s, job)
