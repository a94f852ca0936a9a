"""Scheduling policies: the plan that they return, their requirements on the state, and their base class."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rota.core.columns import BEGIN, OWN, ROW, UNIT
from rota.core.costs import EXACT, Ties
from rota.core.durations import DurationUse
from rota.core.memory import PLAN

if TYPE_CHECKING:
    from rota.core.view import ClusterView


class Plan:
    """The jobs that should run now and their slots, in arrays that are refilled at each instant.

    Jobs are grouped in units; the jobs of a unit share its slots. The job at position `k` has row
    `index[ROW, k]`, unit `index[UNIT, k]` and step time `pace_s[k]`; unit `u` has the slots
    `slots[index[BEGIN, u] : index[BEGIN, u + 1]]`.
    """

    __slots__ = ("_index", "_pace_s", "_slots", "address", "jobs", "order", "record", "wake_at_s")

    def __init__(self, jobs: int, slots: int) -> None:
        self._index = np.zeros((3, jobs + 1), np.int32)
        self._slots = np.zeros(slots, np.int32)
        self._pace_s = np.zeros(jobs)
        self.record = np.zeros(1, PLAN)
        self.record["index"], self.record["width"] = self.index.ctypes.data, jobs + 1
        self.record["slots"], self.record["room"] = self.slots.ctypes.data, slots
        self.record["pace_s"] = self.pace_s.ctypes.data
        self.address = self.record.ctypes.data
        """Address of this plan, for kernels."""
        self.jobs = 0
        self.order: NDArray[np.int32] | None = None
        """The list order to keep for the next instant; None leaves it unchanged."""
        self.wake_at_s = np.inf
        """Time at which the policy is asked again if nothing happens before."""

    @property
    def index(self) -> NDArray[np.int32]:
        """The rows, units and beginnings; kernels know its address, so what is assigned is copied into it."""
        return self._index

    @index.setter
    def index(self, values: NDArray[np.int32]) -> None:
        self._index[:, : values.shape[1]] = values

    @property
    def slots(self) -> NDArray[np.int32]:
        """The slots of the units, one unit after the other; what is assigned is copied into it."""
        return self._slots

    @slots.setter
    def slots(self, values: NDArray[np.int32]) -> None:
        self._slots[: len(values)] = values

    @property
    def pace_s(self) -> NDArray[np.float64]:
        """The step times in seconds; what is assigned is copied into it."""
        return self._pace_s

    @pace_s.setter
    def pace_s(self, values: NDArray[np.float64]) -> None:
        self._pace_s[: len(values)] = values

    def __reduce__(self) -> Any:
        raise TypeError("a plan is part of its engine; it cannot be copied or pickled")

    def dense(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return copies of index and slots in which units are numbered from 0 on, without gaps."""
        index = self._index[:, : self.jobs + 1].copy()
        units, index[UNIT, : self.jobs] = np.unique(index[UNIT, : self.jobs], return_inverse=True)
        slots = [self._slots[self._index[BEGIN, u] : self._index[BEGIN, u + 1]] for u in units]
        index[BEGIN, : len(units) + 1] = np.cumsum([0, *map(len, slots)])
        return index, np.concatenate([*slots, np.zeros(0, np.int32)])

    @property
    def rows(self) -> NDArray[np.int32]:
        """The rows of the planned jobs."""
        return self.index[ROW, : self.jobs]

    def slots_of(self, position: int) -> NDArray[np.int32]:
        """Return the slots of the job at a position."""
        unit = self.index[UNIT, position]
        return self.slots[self.index[BEGIN, unit] : self.index[BEGIN, unit + 1]]


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements of a policy on the state that it plans on.

    Own columns are in the view by their names, and may be written to: with `own=("served",)`, `view.served`
    has a number per row. In kernels that is the row `NEEDS.row("served")` of the columns.
    """

    own: tuple[str, ...] = ()
    """Names of the policy's own columns over the active jobs; 0 when a job arrives."""
    own_slots: tuple[str, ...] = ()
    """Names of the policy's own columns over the slots; 0 at the start."""
    own_groups: tuple[str, ...] = ()
    """Names of the policy's own columns over the groups of jobs, and all jobs as the last group; 0 at the
    start."""
    sharing: int = 1
    """Number of jobs that may share a slot."""
    resizes: bool = False
    """Whether the policy resizes gangs of jobs that can have several sizes: `gpus` and `iteration_s` are then
    those of the smallest one, and `view.grow` makes them larger."""
    durations: DurationUse = "needed"
    """How the policy uses durations: `needed` if it cannot do without, `optional` if it takes what is known
    (`view.knows`), `unused` if it does not ask; then the view does not show what is left of a job."""
    ties: Ties = EXACT
    """Times that the reference implementation treats as one instant; used with the `interval` cost."""

    def row(self, name: str) -> int:
        """Return the row of an own column among all columns of jobs, or own columns of slots or groups."""
        if name in self.own:
            return OWN + self.own.index(name)
        return self.own_slots.index(name) if name in self.own_slots else self.own_groups.index(name)

    @property
    def own_names(self) -> tuple[str, ...]:
        """Names of all own columns."""
        return *self.own, *self.own_slots, *self.own_groups


class Policy(Protocol):
    """A rule that decides at each instant which jobs run, where, and which of them share slots."""

    @property
    def needs(self) -> Needs: ...

    def plan(self, view: "ClusterView") -> Plan:
        """Return what should run now. Called once per instant; must not change the view."""


class Scheduler(ABC):
    """Base class of schedulers, which decide at each instant which jobs run, and where.

    A subclass implements `plan(view)`. If it is a dataclass, its fields are its options. Its name is the
    attribute `name` of the class, or else the class name in kebab-case: `ShortestFirst` is `shortest-first`.

    >>> from dataclasses import dataclass
    >>> import rota
    >>> @dataclass(frozen=True)
    ... class Aging(rota.Scheduler):
    ...     patience: float = 0.1
    ...
    ...     def plan(self, view):
    ...         return view.first_fit(view.rank(view.remaining_s - self.patience * view.waited_s))
    >>> jobs = rota.synthetic_trace(jobs=50, gpus=16, seed=1)
    >>> rota.simulate(jobs, rota.Cluster.uniform(nodes=2, gpus=8), Aging(2.0)).scheduler
    'aging'
    """

    @property
    def needs(self) -> Needs:
        """Requirements on the state; none by default."""
        return Needs()

    @abstractmethod
    def plan(self, view: "ClusterView") -> Plan:
        """Return what should run now.

        Called once per instant; it must not change the view. `view` has a column per property of the active
        jobs: `remaining_s`, `waited_s`, `executed_s` and `submit_s` in seconds, `gpus`, `priority` …
        `view.rank` sorts jobs by a key; `view.first_fit` assigns slots to the jobs that fit, in that order.
        """
