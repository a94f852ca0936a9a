"""Events of a population, in the past tense, and decisions about trials, in the imperative."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Hyper = Mapping[str, Any]
"""Hyper-parameters: names and plain values."""


class Interval(NamedTuple):
    """Steps that a trial trains between two reports."""

    trial: int
    steps: int


class Assign(NamedTuple):
    """Train these intervals in order on a slot. A trial may occur several times."""

    slot: int
    parts: list[Interval]


class Retire(NamedTuple):
    """Retire a slot once it is idle: it gets no more assignments."""

    slot: int


class Continue(NamedTuple):
    """Continue a trial that reported, unchanged."""

    trial: int
    reviewed: bool = False
    """Whether evolution has compared it with others; if so, its steps since the last review count from 0."""


class Stop(NamedTuple):
    """Stop a trial for good."""

    trial: int


class Grow(NamedTuple):
    """Change the network of a waiting trial, before its next interval."""

    trial: int
    change: str
    """A change such as `deepen 0`."""


@dataclass(frozen=True, slots=True)
class Clone:
    """Continue a trial as a copy of its donor: its network, weights and optimiser state.

    The trial keeps its own budget and count of steps, and its metric until its next report. All its
    hyper-parameters and all changes of its network are given here. A trial that is its own donor keeps its
    weights.
    """

    trial: int
    donor: int
    hyper: Hyper
    changes: tuple[str, ...] = ()
    """Changes of the network since the start, such as `deepen 0`, `widen 1`."""


Decision = Assign | Retire | Continue | Stop | Clone | Grow


class Assigned(NamedTuple):
    """A slot was given an assignment of this many trials and steps."""

    at_s: float
    slot: int
    trials: int
    steps: int


class Reported(NamedTuple):
    """An interval was trained."""

    at_s: float
    slot: int
    trial: int
    steps: int
    began_s: float
    """Start time, before its checkpoint was transferred."""
    ended_s: float
    """End time of its training; earlier than `at_s` if its assignment reports at the end."""
    moved_s: float
    """Seconds before training could start: transfer of its checkpoint, dispatch of its assignment."""
    metric: float
    """Metric of the trial after the interval, higher is better; NaN if it was not measured."""
    ended: bool = False
    """Whether the trial ended by itself, however many steps it has left."""


class Idled(NamedTuple):
    """A slot has completed its assignment."""

    at_s: float
    slot: int


class Cloned(NamedTuple):
    """A trial continues as a copy of its donor."""

    at_s: float
    trial: int
    donor: int
    hyper: Hyper
    changes: tuple[str, ...]


class Stopped(NamedTuple):
    """A trial was stopped."""

    at_s: float
    trial: int


class TrialFinished(NamedTuple):
    """A trial has used up its steps, reached the target, or ended by itself."""

    at_s: float
    trial: int


class Retired(NamedTuple):
    """A slot was retired."""

    at_s: float
    slot: int


class TrialFailed(NamedTuple):
    """An interval failed; its trial waits again, or is stopped if it failed too often."""

    at_s: float
    slot: int
    trial: int
    why: str


class NodeFailed(NamedTuple):
    """A node failed; the current assignments of its slots are lost."""

    at_s: float
    node: int


class Joined(NamedTuple):
    """A node joined or came back."""

    at_s: float
    node: int


class Grown(NamedTuple):
    """The network of a trial was changed, before its next interval."""

    at_s: float
    trial: int
    change: str


Event = (
    Assigned
    | Reported
    | Idled
    | Cloned
    | Stopped
    | TrialFinished
    | Retired
    | TrialFailed
    | NodeFailed
    | Joined
    | Grown
)

NAMES_IN_FILES = {
    "Assign": "Hand",
    "Assigned": "Handed",
    "Idled": "Emptied",
    "NodeFailed": "Lost",
    "TrialFailed": "Failed",
    "TrialFinished": "Finished",
}
"""Names in journals and timelines of the classes that were named differently when the formats were made."""


def name_in_files(kind: type) -> str:
    """Return the name of an event or decision class in journals and timelines."""
    return NAMES_IN_FILES.get(kind.__name__, kind.__name__)
