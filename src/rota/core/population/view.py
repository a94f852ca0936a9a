"""A population as policies see it: trials, slots, step times and the ranking."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import inf, isnan, nan
from typing import Protocol

import numpy as np

from rota.core.errors import ConfigError
from rota.core.population.cluster import AssignmentCosts, PopulationCluster, StepTimes
from rota.core.population.events import Hyper, Interval


class Ranking:
    """Trials, worst first, equals by their number. Whose value is not a number has no place in it."""

    def __init__(self, values: Iterable[float]) -> None:
        self._values = list(values)
        self._order = sorted((value, trial) for trial, value in enumerate(self._values) if not isnan(value))

    def put(self, trial: int, value: float) -> None:
        """From now on it is as good as this."""
        before = self._values[trial]
        if not isnan(before):
            del self._order[bisect_left(self._order, (before, trial))]
        if not isnan(value):
            insort(self._order, (value, trial))
        self._values[trial] = value

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, place: int) -> int:
        """Which trial has a place."""
        return self._order[place][1]

    def place(self, trial: int) -> int:
        """0 is the worst; -1 if it has none."""
        value = self._values[trial]
        return -1 if isnan(value) else bisect_left(self._order, (value, trial))

    def above(self, trial: int) -> int:
        """The first place of those that are better than a trial which has one."""
        return bisect_right(self._order, (self._values[trial], inf))


class TrialStatus(IntEnum):
    """Where a trial stands."""

    WAITING = 0
    HANDED = 1
    """On a slot, or on the list of one."""
    JUDGED = 2
    """It reported, and what becomes of it is being decided."""
    FINISHED = 3
    STOPPED = 4


WAITING, HANDED, JUDGED, FINISHED, STOPPED = (
    int(status) for status in TrialStatus
)  # which NumPy takes in faster


class Work(Protocol):
    """What trials are made of, as far as their cost goes."""

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        """Trials of one kind cost the same: `resnet18 64`."""

    def step_s(self, kind: str) -> float:
        """Seconds per step on a slot of speed 1."""

    def size_mb(self, kind: str) -> float:
        """Of a checkpoint."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a population is trained."""

    interval: int = 50
    """Steps after which a trial reports."""
    steps: int = 1000
    """That a trial gets."""
    target: float = inf
    """A trial that is as good as this is done, too."""
    least_advanced_first: bool = True
    """In the queue; else who reported first."""
    attempts: int = 3
    """A trial whose parts failed so often in all is let go."""

    def __post_init__(self) -> None:
        for name in ("interval", "steps", "attempts"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if isnan(self.target):
            raise ConfigError("target is not a number")


class PopulationView:
    """A population as policies see it. They change nothing in it."""

    def __init__(
        self,
        hypers: Sequence[Hyper],
        fleet: PopulationCluster,
        terms: Terms,
        costs: AssignmentCosts,
        work: Work,
        seed: int = 0,
    ) -> None:
        if not hypers:
            raise ConfigError("population: no trials; give at least one")
        trials, slots = len(hypers), len(fleet.slots)
        self.now_s = 0.0
        self.terms, self.costs, self.fleet = terms, costs, fleet
        self.random = np.random.default_rng(seed)
        """What evolution draws from."""

        self.hyper = list(hypers)
        self.changes: list[tuple[str, ...]] = [()] * trials
        self.status = np.full(trials, WAITING, np.int64)
        self.steps = np.zeros(trials, np.int64)
        """Trial → steps that it has reported."""
        self.handed = np.zeros(trials, np.int64)
        """Trial → steps that it has been handed and not reported yet."""
        self.metric = np.full(trials, nan)
        """Trial → how good it is; NaN before it has reported."""
        self.fresh = np.zeros(trials, np.int64)
        """Trial → steps since evolution last looked at it."""
        self.history: list[list[tuple[int, float]]] = [[] for _ in range(trials)]
        """Trial → its reports: steps, and how good it was after them."""
        self.failures = np.zeros(trials, np.int64)
        """Trial → how often a part of it could not be trained."""
        self.place = np.full(trials, -1, np.int64)
        """Trial → node with its checkpoint; -1 before there is one."""
        self.at = np.full(trials, -1, np.int64)
        """Trial → slot whose list it is on; -1 if it is on none."""
        self.left = trials
        """How many trials are not done."""
        self.waiting = list(range(trials))
        """Trials, in the order of the queue."""
        self.judged: list[int] = []
        """Trials that reported at this instant and go on, unless something else is decided."""
        self.leader = 0
        """Steps of the trial that is furthest."""
        self.best = nan
        """The best metric that there has been."""

        self.node = np.array([slot.node for slot in fleet.slots])
        """Slot → node."""
        self.scores = np.array([slot.speed for slot in fleet.slots])
        """Slot → speed that it is said to have."""
        self.up = np.zeros(slots, bool)
        self.retired = np.zeros(slots, bool)
        self.idle: list[int] = []
        """Slots, in the order in which they became so."""
        self.ends_s = np.zeros(slots)
        """Slot → when its list is expected to be done."""
        self.trial_s = np.full(slots, inf)
        """Slot → seconds of training per trial in its last list; infinite before that."""
        self.measured: list[int] = []
        """Slots that have done a list, in the order of their first."""
        self.first_s = np.full(slots, inf)
        """Slot → seconds of training in its first list; infinite before that."""
        self.freed = 0
        """How many slots became idle at this instant, or were done with their last list."""

        self.work = work
        self._moves_are_free = costs.moves_are_free
        self.kinds: list[str] = []
        self.kind = np.zeros(trials, np.int64)
        """Trial → position of its kind in `kinds`."""
        self._numbers: dict[str, int] = {}
        self.paces = StepTimes(np.zeros((slots, 0)))
        self._rankings: dict[int, Ranking] = {}
        for trial in range(trials):
            self._set_kind(trial)

    @property
    def usable(self) -> np.ndarray:
        """Slot → whether it is there and not given up."""
        return self.up & ~self.retired

    def remaining(self, trial: int) -> int:
        """Steps that a trial may still be handed."""
        return self.terms.steps - int(self.steps[trial]) - int(self.handed[trial])

    def part(self, trial: int) -> Interval:
        """An interval of a trial, or what is left of its budget."""
        return Interval(trial, min(self.terms.interval, self.remaining(trial)))

    def first(self, count: int) -> list[Interval]:
        """An interval of each of the first in the queue."""
        return [self.part(trial) for trial in self.waiting[:count]]

    def ranking(self, interval: int) -> Ranking:
        """Trials by how good they are, but for those that were stopped.

        A metric that is not a number is the worst there is after so many steps, and none before that.
        """
        if interval not in self._rankings:
            self._rankings[interval] = Ranking(
                self._worth(trial, interval) for trial in range(len(self.metric))
            )
        return self._rankings[interval]

    def _worth(self, trial: int, interval: int) -> float:
        """What counts in a ranking."""
        metric = self.metric.item(trial)
        if self.status[trial] == STOPPED:
            return nan
        return -inf if isnan(metric) and self.steps[trial] >= interval else metric

    def move_s(self, trial: int, slot: int) -> float:
        """What it would take to have the checkpoint of a trial on a slot."""
        if self._moves_are_free:
            return 0.0
        here, there = int(self.place[trial]), int(self.node[slot])
        if here in (-1, there):
            return 0.0
        switches = self.fleet.switches
        size_mb = self.work.size_mb(self.kinds[self.kind[trial]])
        return self.costs.move_s(size_mb, across=switches[here] != switches[there])

    def _set_kind(self, trial: int) -> None:
        name = self.work.kind(self.hyper[trial], self.changes[trial])
        if name not in self._numbers:
            self._numbers[name] = len(self.kinds)
            self.kinds.append(name)
            base_s = self.work.step_s(name)
            self.paces.add_kind(np.array([base_s / slot.speed_of(name) for slot in self.fleet.slots]))
        self.kind[trial] = self._numbers[name]
