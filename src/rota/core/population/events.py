"""What can happen to a population, in the past tense. The list of these is the result of a run."""

from typing import NamedTuple

from rota.core.population.decisions import Hyper


class Handed(NamedTuple):
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


class Emptied(NamedTuple):
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


class Finished(NamedTuple):
    """A trial has had its steps, is as good as asked, or ended by itself."""

    at_s: float
    trial: int


class Retired(NamedTuple):
    """A slot was given up."""

    at_s: float
    slot: int


class Failed(NamedTuple):
    """A part could not be trained; its trial waits again, or is let go if it failed too often."""

    at_s: float
    slot: int
    trial: int
    why: str


class Lost(NamedTuple):
    """A node failed; what its slots were at is to be done again."""

    at_s: float
    node: int


class Joined(NamedTuple):
    """A node came, or came back."""

    at_s: float
    node: int


Event = Handed | Reported | Emptied | Cloned | Stopped | Finished | Retired | Failed | Lost | Joined
