"""What can be asked for, in the imperative; and what an allocation hands out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Hyper = Mapping[str, Any]
"""Hyper-parameters: plain values."""


class Part(NamedTuple):
    """Some steps of a trial; it reports after them."""

    trial: int
    steps: int


class Hand(NamedTuple):
    """Train these one after the other, on this slot. A trial may be there several times."""

    slot: int
    parts: list[Part]


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


Decision = Hand | Retire | Continue | Stop | Clone
