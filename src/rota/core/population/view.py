"""A population as policies see it: trials, slots, step times and rankings."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rota.core.errors import ConfigError
from rota.core.population.cluster import AssignmentCosts, PopulationCluster, StepTimes
from rota.core.population.events import Hyper, Interval


class Ranking:
    """Trials from worst to best, equal ones by their number; a trial whose value is NaN is not ranked."""

    def __init__(self, values: Iterable[float]) -> None:
        self._values = list(values)
        self._order = sorted((value, trial) for trial, value in enumerate(self._values) if not isnan(value))

    def put(self, trial: int, value: float) -> None:
        """Set the value of a trial."""
        before = self._values[trial]
        if not isnan(before):
            del self._order[bisect_left(self._order, (before, trial))]
        if not isnan(value):
            insort(self._order, (value, trial))
        self._values[trial] = value

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, rank: int) -> int:
        """Return the trial at a rank."""
        return self._order[rank][1]

    def rank(self, trial: int) -> int:
        """Return the rank of a trial, 0 for the worst; -1 if it is not ranked."""
        value = self._values[trial]
        return -1 if isnan(value) else bisect_left(self._order, (value, trial))

    def above(self, trial: int) -> int:
        """Return the lowest rank of the trials that are better than a ranked one."""
        return bisect_right(self._order, (self._values[trial], inf))


class TrialStatus(IntEnum):
    """Status of a trial."""

    WAITING = 0
    ASSIGNED = 1
    """Part of a slot's current assignment."""
    REPORTED = 2
    """Reported, and under review."""
    FINISHED = 3
    STOPPED = 4


WAITING, ASSIGNED, REPORTED, FINISHED, STOPPED = (
    int(status) for status in TrialStatus
)  # plain integers, which NumPy handles faster


class Work(Protocol):
    """Costs of trials by their kind."""

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        """Return the kind of a trial, such as `resnet18 64`; trials of one kind cost the same."""

    def step_s(self, kind: str) -> float:
        """Return the seconds per step on a slot of speed 1."""

    def size_mb(self, kind: str) -> float:
        """Return the size of a checkpoint in MB."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a population is trained."""

    interval: int = 50
    """Steps after which a trial reports."""
    steps: int = 1000
    """Budget of steps of each trial."""
    target: float = inf
    """Metric at which a trial is finished before its budget is used up."""
    least_advanced_first: bool = True
    """Whether the queue is sorted by steps, fewest first; else by time of report."""
    attempts: int = 3
    """Number of failed intervals after which a trial is stopped."""

    def __post_init__(self) -> None:
        for name in ("interval", "steps", "attempts"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if isnan(self.target):
            raise ConfigError("target is not a number")


FORMER_NAMES = {"fleet": "cluster", "paces": "step_times", "part": "interval"}
"""Attribute of a view that policies from outside may still use → its name now."""


class PopulationView:
    """A population as policies see it; they must not change it."""

    def __init__(
        self,
        hypers: Sequence[Hyper],
        cluster: PopulationCluster,
        terms: Terms,
        costs: AssignmentCosts,
        work: Work,
        seed: int = 0,
    ) -> None:
        if not hypers:
            raise ConfigError("population: no trials; give at least one")
        trials, slots = len(hypers), len(cluster.slots)
        self.now_s = 0.0
        self.terms, self.costs, self.cluster = terms, costs, cluster
        self.random = np.random.default_rng(seed)
        """Source of random numbers for evolution."""

        self.hyper = list(hypers)
        self.changes: list[tuple[str, ...]] = [()] * trials
        self.status = np.full(trials, WAITING, np.int64)
        self.steps = np.zeros(trials, np.int64)
        """Trial → steps reported."""
        self.assigned = np.zeros(trials, np.int64)
        """Trial → steps assigned and not reported yet."""
        self.metric = np.full(trials, nan)
        """Trial → metric, higher is better; NaN before its first report."""
        self.fresh = np.zeros(trials, np.int64)
        """Trial → steps since its last review."""
        self.history: list[list[tuple[int, float]]] = [[] for _ in range(trials)]
        """Trial → its reports: total steps and metric."""
        self.failures = np.zeros(trials, np.int64)
        """Trial → number of failed intervals."""
        self.checkpoint_node = np.full(trials, -1, np.int64)
        """Trial → node with its checkpoint; -1 if there is none."""
        self.at = np.full(trials, -1, np.int64)
        """Trial → slot that it is assigned to; -1 if none."""
        self.left = trials
        """Number of trials that are neither finished nor stopped."""
        self.waiting = list(range(trials))
        """Waiting trials, in queue order."""
        self.to_review: list[int] = []
        """Trials that reported at this instant and have to be reviewed."""
        self.leader = 0
        """Steps of the most advanced trial."""
        self.best = nan
        """Best metric so far."""

        self.node = np.array([slot.node for slot in cluster.slots])
        """Slot → node."""
        self.scores = np.array([slot.speed for slot in cluster.slots])
        """Slot → nominal speed."""
        self.up = np.zeros(slots, bool)
        self.retired = np.zeros(slots, bool)
        self.idle: list[int] = []
        """Idle slots, in the order in which they became idle."""
        self.ends_s = np.zeros(slots)
        """Slot → expected end of its assignment."""
        self.trial_s = np.full(slots, inf)
        """Slot → seconds of training per trial in its last assignment; infinite before that."""
        self.measured: list[int] = []
        """Slots that have completed an assignment, in the order of their first one."""
        self.first_s = np.full(slots, inf)
        """Slot → seconds of training in its first assignment; infinite before that."""
        self.freed = 0
        """Number of slots that became idle or retired at this instant."""

        self.work = work
        self._moves_are_free = costs.moves_are_free
        self.kinds: list[str] = []
        self.kind = np.zeros(trials, np.int64)
        """Trial → position of its kind in `kinds`."""
        self._numbers: dict[str, int] = {}
        self.step_times = StepTimes(np.zeros((slots, 0)))
        self._rankings: dict[int, Ranking] = {}
        for trial in range(trials):
            self._set_kind(trial)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in FORMER_NAMES:
                return getattr(self, FORMER_NAMES[name])
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def usable(self) -> np.ndarray:
        """Slot → whether its node is up and it is not retired."""
        return self.up & ~self.retired

    def remaining(self, trial: int) -> int:
        """Return the steps of a trial's budget that are not assigned yet."""
        return self.terms.steps - int(self.steps[trial]) - int(self.assigned[trial])

    def interval(self, trial: int) -> Interval:
        """Return the next interval of a trial, cut to its budget."""
        return Interval(trial, min(self.terms.interval, self.remaining(trial)))

    def first(self, count: int) -> list[Interval]:
        """Return the next interval of each of the first trials in the queue."""
        return [self.interval(trial) for trial in self.waiting[:count]]

    def ranking(self, interval: int) -> Ranking:
        """Return the ranking of all trials that were not stopped, by metric.

        A metric of NaN ranks lowest from `interval` steps on, and is not ranked before.
        """
        if interval not in self._rankings:
            self._rankings[interval] = Ranking(
                self._worth(trial, interval) for trial in range(len(self.metric))
            )
        return self._rankings[interval]

    def _worth(self, trial: int, interval: int) -> float:
        """Return the value of a trial in a ranking."""
        metric = self.metric.item(trial)
        if self.status[trial] == STOPPED:
            return nan
        return -inf if isnan(metric) and self.steps[trial] >= interval else metric

    def move_s(self, trial: int, slot: int) -> float:
        """Return the seconds to transfer a trial's checkpoint to a slot."""
        if self._moves_are_free:
            return 0.0
        here, there = int(self.checkpoint_node[trial]), int(self.node[slot])
        if here in (-1, there):
            return 0.0
        switches = self.cluster.switches
        size_mb = self.work.size_mb(self.kinds[self.kind[trial]])
        return self.costs.move_s(size_mb, across=switches[here] != switches[there])

    def _set_kind(self, trial: int) -> None:
        name = self.work.kind(self.hyper[trial], self.changes[trial])
        if name not in self._numbers:
            self._numbers[name] = len(self.kinds)
            self.kinds.append(name)
            base_s = self.work.step_s(name)
            self.step_times.add_kind(np.array([base_s / slot.speed_of(name) for slot in self.cluster.slots]))
        self.kind[trial] = self._numbers[name]
