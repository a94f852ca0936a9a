"""Events of a population, in the past tense, and decisions about trials, in the imperative."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Hyper = Mapping[str, Any]
"""Hyper-parameters: plain values."""


class Interval(NamedTuple):
    """Some steps of a trial; it reports after them."""

    trial: int
    steps: int


class Assign(NamedTuple):
    """Train these one after the other, on this slot. A trial may be there several times."""

    slot: int
    parts: list[Interval]


class Retire(NamedTuple):
    """Give this slot up for good, once it is idle."""

    slot: int


class Continue(NamedTuple):
    """Let a trial that reported go on as it is."""

    trial: int
    looked: bool = False
    """Whether evolution has looked at how good it is: its fresh steps are counted anew from here."""


class Stop(NamedTuple):
    """Let a trial go; it is not trained any more."""

    trial: int


@dataclass(frozen=True, slots=True)
class Clone:
    """Let a trial go on as another: with its network, its weights, the state of its optimiser.

    The trial keeps its own budget of steps, the steps it has had, and its metric until it next reports.
    Its hyper-parameters and what its network has become are said here, in full. A trial that is its own
    donor keeps its weights and goes on with these.
    """

    trial: int
    donor: int
    hyper: Hyper
    changes: tuple[str, ...] = ()
    """What has been done to the network since the beginning: `deepen 0`, `widen 1`."""


Decision = Assign | Retire | Continue | Stop | Clone


class Assigned(NamedTuple):
    """A slot was given a list: so many trials, so many steps."""

    at_s: float
    slot: int
    trials: int
    steps: int


class Reported(NamedTuple):
    """A part was trained."""

    at_s: float
    slot: int
    trial: int
    steps: int
    began_s: float
    """When it began, with what had to be moved first."""
    ended_s: float
    """When its training ended; earlier than `at_s` if its list reports at the end."""
    moved_s: float
    """How long it took before training could begin: moving a checkpoint, and the dispatch of its list."""
    metric: float
    """How good the trial is now; NaN if nothing was measured."""
    ended: bool = False
    """Whether the trial has nothing more to train, whatever steps it has left."""


class Idled(NamedTuple):
    """A slot has done its list."""

    at_s: float
    slot: int


class Cloned(NamedTuple):
    """A trial goes on as another."""

    at_s: float
    trial: int
    donor: int
    hyper: Hyper
    changes: tuple[str, ...]


class Stopped(NamedTuple):
    """A trial was let go."""

    at_s: float
    trial: int


class TrialFinished(NamedTuple):
    """A trial has had its steps, is as good as asked, or ended by itself."""

    at_s: float
    trial: int


class Retired(NamedTuple):
    """A slot was given up."""

    at_s: float
    slot: int


class TrialFailed(NamedTuple):
    """A part could not be trained; its trial waits again, or is let go if it failed too often."""

    at_s: float
    slot: int
    trial: int
    why: str


class NodeFailed(NamedTuple):
    """A node failed; what its slots were at is to be done again."""

    at_s: float
    node: int


class Joined(NamedTuple):
    """A node came, or came back."""

    at_s: float
    node: int


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
)

NAMES_IN_FILES = {
    "Assign": "Hand",
    "Assigned": "Handed",
    "Idled": "Emptied",
    "NodeFailed": "Lost",
    "TrialFailed": "Failed",
    "TrialFinished": "Finished",
}
"""Journals and timelines keep the names that these classes had when their formats were made."""


def name_in_files(kind: type) -> str:
    """Return the name by which a class of events or decisions is known in journals and timelines."""
    return NAMES_IN_FILES.get(kind.__name__, kind.__name__)
