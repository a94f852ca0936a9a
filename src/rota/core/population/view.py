"""A population as policies see it: trials, slots, step times and rankings."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from rota.core.arrays import Mask
from rota.core.cluster import Cluster
from rota.core.errors import ConfigError
from rota.core.network import Structure
from rota.core.population import memory
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Hyper, Interval
from rota.core.population.outcomes import ALONG_TREES
from rota.core.population.step_times import StepTimes
from rota.core.record import SharedRecord


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

    # Optional: `kinds`, all kinds in order; `changes_allowed(hyper, changes)`, the changes that a network may
    # make next, without which networks do not grow; `network(hyper, changes)`, its structure and its blocks.


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


Number = TypeVar("Number", int, float)


class RecordField(Generic[Number]):
    """An attribute whose value is a field of the record that compiled code sees."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, view: "PopulationView", owner: type) -> Number:
        return view.numbers[self._name].item()  # type: ignore[no-any-return]

    def __set__(self, view: "PopulationView", value: Number) -> None:
        view.numbers[self._name][0] = value


class RecordList:
    """An attribute that is a list in a row of an array, with its length in the record."""

    def __init__(self, array: str, row: int, count: str) -> None:
        self._array, self._row, self._count = array, row, count

    def __get__(self, view: "PopulationView", owner: type) -> list[int]:
        found: list[int] = view.arrays[self._array][self._row, : view.numbers[self._count].item()].tolist()
        return found

    def __set__(self, view: "PopulationView", values: Sequence[int]) -> None:
        view.arrays[self._array][self._row, : len(values)] = values
        view.numbers[self._count][0] = len(values)


class PopulationView(SharedRecord):
    """A population as policies see it; they must not change it."""

    now_s = RecordField[float]()
    left = RecordField[int]()
    """Number of trials that are neither finished nor stopped."""
    leader = RecordField[int]()
    """Steps of the most advanced trial."""
    best = RecordField[float]()
    """Best metric so far."""
    freed = RecordField[int]()
    """Number of slots that became idle or retired at this instant."""
    decisions = RecordField[int]()
    """Number of intervals assigned so far."""
    waiting = RecordList("trials", memory.QUEUE, "waiting")
    """Waiting trials, in queue order."""
    to_review = RecordList("trials", memory.REVIEWS, "to_review")
    """Trials that reported at this instant and have to be reviewed."""
    idle = RecordList("slots", memory.IDLE, "idle")
    """Idle slots, in the order in which they became idle."""
    measured = RecordList("slots", memory.MEASURED, "n_measured")
    """Slots that have completed an assignment, in the order of their first one."""

    def __init__(
        self,
        hypers: Sequence[Hyper],
        cluster: Cluster,
        terms: Terms,
        costs: AssignmentCosts,
        work: Work,
        seed: int = 0,
    ) -> None:
        if not hypers:
            raise ConfigError("population: no trials; give at least one")
        trials, slots = len(hypers), len(cluster.all_slots)
        self.terms, self.costs, self.cluster = terms, costs, cluster
        self.random = np.random.default_rng(seed)
        """Source of random numbers for evolution."""
        self.hyper = list(hypers)
        self._changes: list[tuple[str, ...]] = [()] * trials
        self._grown_at: list[dict[int, str]] = [{} for _ in range(trials)]
        """Trial → number of its reports so far → the change that was made then."""
        self._growths_seen = 0
        self.lay_out_record(memory.POPULATION)
        self.put(
            trials=np.zeros((memory.TRIAL_ROWS, trials), np.int64),
            metric=np.full(trials, nan),
            slots=np.zeros((memory.SLOT_ROWS, slots), np.int64),
            seconds=np.zeros((memory.SECONDS_ROWS, slots)),
            flags=np.zeros((2, slots), np.bool_),
            switches=np.array(cluster.switches, np.int64),
        )
        rows = self.arrays["trials"]
        rows[[memory.CHECKPOINT, memory.AT]] = -1
        rows[memory.QUEUE] = np.arange(trials)
        rows[memory.BUDGET], rows[memory.INTERVAL] = terms.steps, terms.interval
        slots_ = self.arrays["slots"]
        slots_[memory.NODE] = [slot.node for slot in cluster.all_slots]
        slots_[[memory.FIRST, memory.UNREPORTED, memory.CURRENT, memory.MEMORY]] = -1
        seconds = self.arrays["seconds"]
        seconds[[memory.TRIAL_S, memory.FIRST_S, memory.END_S]] = inf
        seconds[memory.OFF] = 1.0
        seconds[memory.SPEED] = [slot.speed for slot in cluster.all_slots]
        self.write(
            n_trials=trials, n_slots=slots, n_nodes=len(cluster.nodes), left=trials, waiting=trials, best=nan,
            interval=terms.interval, budget=terms.steps, target=terms.target, attempts=terms.attempts,
            least_advanced_first=terms.least_advanced_first, moves_are_free=costs.moves_are_free,
            dispatch_s=costs.dispatch_s, latency_s=costs.latency_s, bandwidth_mb_s=costs.bandwidth_mb_s,
            cross_switch_mb_s=costs.cross_switch_mb_s, keeps_timeline=True, report_each=True, free_part=-1,
            turn=-1, prepared=-1, enough=inf, deadline_s=inf, shortest=terms.interval,
        )  # fmt: skip
        self.work = work
        self.kinds: list[str] = []
        self._numbers: dict[str, int] = {}
        self._sizes_mb: list[float] = []
        self._speeds: list[list[float]] = []
        self.step_times = StepTimes(np.zeros((slots, 0)))
        self._rankings: dict[int, Ranking] = {}
        self._history: list[list[tuple[int, float]]] = [[] for _ in range(trials)]
        self._synced = 0
        """Number of events that rankings and history include."""
        self._show()
        for name in getattr(work, "kinds", ()):
            self._number_of(name)
        for trial in range(trials):
            self._set_kind(trial)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in FORMER_NAMES:
                return getattr(self, FORMER_NAMES[name])
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def history(self) -> list[list[tuple[int, float]]]:
        """Trial → its reports: total steps and metric."""
        self._sync()
        return self._history

    @property
    def changes(self) -> list[tuple[str, ...]]:
        """Trial → the changes of its network since the start, that before its next interval included."""
        return self._changes

    def changes_allowed(self, trial: int) -> tuple[str, ...]:
        """Return the changes that a trial may make before its next interval; none while it does not wait."""
        if self.status[trial] != WAITING or self._trials[memory.GREW, trial]:
            return ()
        ask = getattr(self.work, "changes_allowed", None)
        return () if ask is None else tuple(ask(self.hyper[trial], self.changes[trial]))

    def network(self, trial: int) -> tuple[Structure, tuple[tuple[int, ...], ...]]:
        """Return the network of a trial, and the layers of each block that can grow."""
        ask = getattr(self.work, "network", None)
        return (Structure((), ()), ()) if ask is None else ask(self.hyper[trial], self.changes[trial])

    def choices_made(self, trial: int) -> tuple[str, ...]:
        """Return what was chosen for a trial at each boundary so far: a change, or `nothing`."""
        return tuple(self._grown_at[trial].get(at, "nothing") for at in range(1, len(self.history[trial])))

    def may_change_later(self, trial: int) -> bool:
        """Return whether a trial may change its network before a later interval than the next."""
        return hasattr(self.work, "changes_allowed")

    @property
    def walks_trees(self) -> bool:
        """Whether trials walk along growth trees, whose intervals cannot be cut."""
        return bool(self.numbers["outcome"].item() == ALONG_TREES)

    @property
    def usable(self) -> Mask:
        """Slot → whether its node is up and it is not retired."""
        found: Mask = self.up & ~self.retired
        return found

    def remaining(self, trial: int) -> int:
        """Return the steps of a trial's budget that are not assigned yet."""
        return int(self.budget[trial]) - int(self.steps[trial]) - int(self.assigned[trial])

    def interval(self, trial: int) -> Interval:
        """Return the next interval of a trial, cut to its budget."""
        return Interval(trial, min(int(self.reports_every[trial]), self.remaining(trial)))

    def first(self, count: int) -> list[Interval]:
        """Return the next interval of each of the first trials in the queue."""
        return [self.interval(trial) for trial in self.waiting[:count]]

    def intervals(self, trials: Sequence[int], steps: int) -> list[Interval]:
        """Return intervals of these trials up to a number of steps, one trial after the other."""
        intervals = []
        for trial in trials:
            each = int(self.reports_every[trial])
            wanted = -(-steps // each) * each if self.walks_trees else steps
            mine = min(wanted, self.remaining(trial))
            steps = max(0, steps - mine)
            while mine:
                length = min(each, mine)
                intervals.append(Interval(trial, length))
                mine -= length
            if not steps:
                break
        return intervals

    def ranking(self, interval: int) -> Ranking:
        """Return the ranking of all trials that were not stopped, by metric.

        A metric of NaN ranks lowest from `interval` steps on, and is not ranked before.
        """
        self._sync()
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
        here, there = int(self.checkpoint_node[trial]), int(self.node[slot])
        if self.costs.moves_are_free or here in (-1, there):
            return 0.0
        switches = self.cluster.switches
        size_mb = self._sizes_mb[self.kind[trial]]
        return self.costs.move_s(size_mb, across=switches[here] != switches[there])

    # ── memory ──────────────────────────────────────────────────────────────────────────────────────────────

    def _show(self) -> None:
        """Show the arrays under their names."""
        self.numbers = {name: self.record[name] for name in memory.POPULATION.names or ()}
        trials = self._trials = self.arrays["trials"]
        slots = self._slots = self.arrays["slots"]
        seconds = self.arrays["seconds"]
        self.status, self.kind = trials[memory.STATUS], trials[memory.KIND]
        self.steps = trials[memory.STEPS]
        """Trial → steps reported."""
        self.budget, self.reports_every = trials[memory.BUDGET], trials[memory.INTERVAL]
        """Trial → steps that it may train in all, and steps after which it reports."""
        self.assigned = trials[memory.GIVEN]
        """Trial → steps assigned and not reported yet."""
        self.fresh = trials[memory.FRESH]
        """Trial → steps since its last review."""
        self.failures = trials[memory.FAILURES]
        """Trial → number of failed intervals."""
        self.checkpoint_node = trials[memory.CHECKPOINT]
        """Trial → node with its checkpoint; -1 if there is none."""
        self.at = trials[memory.AT]
        """Trial → slot that it is assigned to; -1 if none."""
        self.metric = self.arrays["metric"]
        """Trial → metric, higher is better; NaN before its first report."""
        self.node = slots[memory.NODE]
        """Slot → node."""
        self.up, self.retired = self.arrays["flags"]
        self.scores = seconds[memory.SPEED]
        """Slot → nominal speed."""
        self.ends_s = seconds[memory.ENDS_S]
        """Slot → expected end of its assignment."""
        self.trial_s = seconds[memory.TRIAL_S]
        """Slot → seconds of training per trial in its last assignment; infinite before that."""
        self.first_s = seconds[memory.FIRST_S]
        """Slot → seconds of training in its first assignment; infinite before that."""

    def _sync(self) -> None:
        """Take new reports into history and rankings."""
        count = self.numbers["count"].item()
        if self._synced == count:
            return
        changed: dict[int, None] = {}
        for event in self.arrays["events"][self._synced : count].tolist():
            *_, metric, kind, _, trial, steps, _ = event
            if kind == memory.REPORTED_EVENT:
                history = self._history[trial]
                history.append(((history[-1][0] if history else 0) + steps, metric))
                changed[trial] = None
            elif kind == memory.STOPPED_EVENT:
                changed[trial] = None
        self._synced = count
        for interval, ranking in self._rankings.items():
            for trial in changed:
                ranking.put(trial, self._worth(trial, interval))

    def _set_kind(self, trial: int) -> None:
        self.kind[trial] = self._number_of(self.work.kind(self.hyper[trial], self.changes[trial]))

    def _number_of(self, name: str) -> int:
        """Return the number of a kind of trial; a new one is added."""
        if name not in self._numbers:
            self._numbers[name] = len(self.kinds)
            self.kinds.append(name)
            base_s, slots, times = self.work.step_s(name), self.cluster.all_slots, self.step_times
            times.add_kind(np.array([base_s / slot.speed_of(name) for slot in slots]))
            self._sizes_mb.append(self.work.size_mb(name))
            self._speeds.append([slot.speed_of(name) for slot in slots])
            self.put(
                step_s=times.step_s, expected_s=times.expected_s, spread=times.spread,
                measured=times.measured, speeds=np.array(self._speeds).T.copy(),
                sizes_mb=np.array(self._sizes_mb, np.float64),
            )  # fmt: skip
            times.off = self.arrays["seconds"][memory.OFF]
            self.write(n_kinds=len(self.kinds))
        return self._numbers[name]
