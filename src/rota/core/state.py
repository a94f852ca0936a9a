"""The state of a run of jobs: the only owner of everything that changes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.core import columns as c
from rota.core import kernels
from rota.core.cluster import Cluster, Preferences, as_listed
from rota.core.costs import CostModel
from rota.core.errors import IllegalPlan
from rota.core.placement import Style, first_fit, scratch_rows
from rota.core.policy import Plan
from rota.core.timeline import EventKind, Timeline, TimelineWriter


class Instant:
    """Everything that happened at one time."""

    __slots__ = ("arrivals", "at_s", "ends", "finished", "first_job", "joined", "lost", "measured")

    def __init__(
        self,
        at_s: float,
        finished: NDArray[np.int32],
        ends: int = 0,
        first_job: int = 0,
        arrivals: int = 0,
        joined: Sequence[int] = (),
        lost: Sequence[int] = (),
        measured: Mapping[int, float] | None = None,
    ) -> None:
        self.at_s = at_s
        self.finished = finished
        """Rows of the jobs that ended; only the first `ends` are valid."""
        self.ends = ends
        self.first_job = first_job
        """Index of the first job that arrived; `arrivals` jobs did, from this one on."""
        self.arrivals = arrivals
        self.joined = joined
        self.lost = lost
        self.measured = measured
        """Row → iterations left, where they are measured and not computed from step times: in real runs."""


class Decisions:
    """The difference between a plan and what runs: what a backend has to do."""

    __slots__ = ("actions", "paused", "pauses", "plan")

    def __init__(self, plan: Plan, actions: NDArray[np.int8], paused: NDArray[np.int32], pauses: int) -> None:
        self.plan = plan
        self.actions = actions
        """KEEP, START or MOVE for each job of the plan."""
        self.paused = paused
        """Rows to preempt; only the first `pauses` are valid."""
        self.pauses = pauses


class ClusterView:
    """What a policy may read: the columns of the active jobs, and the nodes.

    A column has one value per *row*. `order` lists the rows of the active jobs in list order (new arrivals
    last); rows that are not in `order` hold stale values.
    """

    cluster: Cluster
    cost: CostModel
    now_s: float
    slots: int
    capacity: int
    """Number of rows."""
    order: NDArray[np.int32]
    columns: NDArray[np.float64]
    """All columns, for kernels; a policy writes only to its own."""
    own_slots: NDArray[np.float64]
    """The policy's own columns over the slots."""
    nodes: NDArray[np.int32]
    """The nodes, as in `rota.core.columns`."""
    slot_node: NDArray[np.int32]
    """The node of each slot."""
    current: Plan
    """The plan that runs now."""
    draft: Plan
    """A spare plan to fill."""
    scratch: NDArray[np.int32]
    """Spare rows for placement (`placement.scratch_rows`), wide enough for nodes, slots and gang sizes."""
    memo: dict[str, Any]
    """A policy's cache of computed values; it must not affect decisions."""
    ranked: NDArray[np.int32] | None = None
    """The last ranking of all active jobs, known to be a permutation; `request` skips its check."""
    remaining: NDArray[np.float64]
    """Iterations left."""
    iteration_s: NDArray[np.float64]
    """Seconds per iteration, alone on the reference device."""
    gpus: NDArray[np.float64]
    """Gang size: number of slots that a job occupies."""
    submit_s: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    priority: NDArray[np.float64]
    executed_s: NDArray[np.float64]
    place: NDArray[np.float64]
    """Position in the current plan; -1 if the job waits."""

    @property
    def remaining_s(self) -> NDArray[np.float64]:
        """Seconds of work left, alone on the reference device."""
        return self.remaining * self.iteration_s

    @property
    def waited_s(self) -> NDArray[np.float64]:
        """Seconds since submission in which the job had no slots."""
        return self.now_s - self.submit_s - self.executed_s

    def rank(self, key: NDArray[np.float64], order: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Return the rows by ascending key; equal keys stay in list order."""
        rows = self.order if order is None else order
        ranked = np.empty_like(rows)
        kernels.sort_by(rows, key, ranked)
        if order is None or order is self.ranked:
            self.ranked = ranked
        return ranked

    def first_fit(
        self,
        order: NDArray[np.int32],
        *,
        style: Style = "consolidated",
        strict: bool = False,
        keep: bool | None = None,
    ) -> Plan:
        """Return a plan of the jobs that fit, in this order; with `strict`, up to the first that does not.

        With `keep` (by default: unless the cost model is `interval`) a running job stays on its slots unless
        a job before it needs them. `style` says how a gang is placed on nodes: on as few as possible
        (`consolidated`), on as many (`spread`), or on any free slots (`anywhere`).
        """
        return first_fit(self, order, style=style, strict=strict, keep=keep)


class JobsState:
    """The active jobs, their slots, and the timeline so far; changed by `apply`, `request` and `confirm`."""

    def __init__(
        self,
        table: NDArray[np.float64],
        cluster: Cluster,
        cost: CostModel,
        sharing: int = 1,
        own: Sequence[str] = (),
        own_slots: Sequence[str] = (),
        preferences: Preferences | None = None,
    ) -> None:
        """`preferences` says which nodes jobs prefer; by default those that the cluster lists first."""
        preferences = preferences or as_listed(cluster)
        self.table = preferences.put_into(table)
        self.cost = cost
        self.sharing = sharing
        self._own = len(own)
        self.now_s = 0.0
        self.active = 0
        self.journal = TimelineWriter()
        self.nodes = np.vstack([cluster.table(), preferences.rows])
        self.slot_node = cluster.slot_nodes()
        slots = cluster.slots
        jobs = min(slots * sharing, table.shape[1])
        self._load = np.zeros((2, slots), np.int32)
        self._actions = np.zeros(jobs, np.int8)
        self._paused = np.zeros(jobs, np.int32)
        self.plan = Plan(jobs, slots * sharing)
        self._bound = slots * sharing
        self.view = ClusterView()
        self.view.cluster = cluster
        self.view.cost = cost
        self.view.nodes = _frozen(self.nodes)
        self.view.slot_node = _frozen(self.slot_node)
        self.view.slots = slots
        self.view.memo = {}
        self.view.own_slots = np.zeros((len(own_slots), slots))
        self.view.draft = Plan(jobs, slots * sharing)
        widest = max(slots, len(cluster.nodes), int(table[c.GPUS].max(initial=0)) + 1)
        self.view.scratch = np.zeros((scratch_rows(len(preferences.rows) // c.PREFERRED), widest), np.int32)
        self.columns = np.zeros((0, 0))
        self.order = np.zeros(0, np.int32)
        self.free = np.zeros(0, np.int32)
        self.capacity = 0
        self._resize(64)

    def apply(self, instant: Instant) -> None:
        """Advance to the time of an instant, then take in what happened."""
        if instant.at_s < self.now_s:
            raise AssertionError(f"time runs backwards: {instant.at_s} after {self.now_s}")
        plan, journal = self.plan, self.journal
        if plan.jobs:
            kernels.advance(
                self.columns, plan.index, plan.jobs, self.now_s, instant.at_s, self.cost.checkpoint_every_s
            )
        self.now_s = instant.at_s
        if instant.measured:
            for row, remaining in instant.measured.items():
                self.columns[c.REMAINING, row] = remaining
        ends, arrivals = instant.ends, instant.arrivals
        if ends or arrivals:
            if self.active - ends + arrivals > self.capacity:
                self._resize(self.active + arrivals)
            journal.reserve(ends + arrivals, 0)
            self.active = kernels.turn_over(
                self.columns, self.order, self.active, self.free, instant.finished, ends, self.table,
                instant.first_job, arrivals, self.now_s, journal.events, journal.count,
            )  # fmt: skip
            if instant.measured and ends:
                self._mark_failures(instant)
            journal.count += ends + arrivals
        if instant.joined or instant.lost:
            self._change_nodes(instant)  # after the ends: jobs that are done lose nothing
        view = self.view
        view.now_s = self.now_s
        view.order = self.order[: self.active]
        view.ranked = None

    def request(self, plan: Plan) -> Decisions:
        """Check a plan and return how it differs from what runs. Raises IllegalPlan."""
        old = self.plan
        if plan.wake_at_s < self.now_s:
            raise IllegalPlan(
                f"at {self.now_s} s: the plan sets a wake-up in the past, at {plan.wake_at_s} s"
            )
        if plan.jobs > len(self._actions):
            raise IllegalPlan(
                f"at {self.now_s} s: the plan runs {plan.jobs} jobs; {len(self._actions)} can share the slots"
            )
        if plan.order is not None and plan.order is not self.view.ranked:
            self._check_order(plan.order)
        pauses = kernels.compare(
            self.columns, old.index, old.slots, old.jobs, plan.index, plan.slots, plan.pace_s, plan.jobs,
            self.nodes, self.slot_node, self.sharing, self._load, self._actions, self._paused,
        )  # fmt: skip
        if pauses < 0:
            raise IllegalPlan(f"at {self.now_s} s: {_ILLEGAL[pauses]}")
        return Decisions(plan, self._actions, self._paused, pauses)

    def _check_order(self, order: NDArray[np.int32]) -> None:
        if len(order) != self.active:
            raise IllegalPlan(f"at {self.now_s} s: the plan orders {len(order)} of {self.active} jobs")
        if not kernels.names_each_once(order, self.columns):
            raise IllegalPlan(f"at {self.now_s} s: the plan's order does not name each active job once")

    def confirm(self, decisions: Decisions) -> None:
        """Make decisions that were carried out part of the state, and of the timeline."""
        plan, journal = decisions.plan, self.journal
        journal.reserve(plan.jobs + decisions.pauses, self._bound)
        journal.count, journal.used = kernels.make_so(
            self.columns, plan.index, plan.slots, plan.pace_s, plan.jobs, decisions.actions, decisions.paused,
            decisions.pauses, self.now_s, self.cost.each_instant, journal.events, journal.count,
            journal.slots, journal.used,
        )  # fmt: skip
        if plan.order is not None:
            self.order[: self.active] = plan.order
        self.view.draft, self.plan = self.plan, plan
        self.view.current = plan

    def timeline(self) -> Timeline:
        """Return the events so far."""
        return self.journal.timeline()

    def _mark_failures(self, instant: Instant) -> None:
        """Mark ended jobs that have iterations left as failed."""
        events, left = self.journal.events, instant.measured or {}
        for number, row in enumerate(instant.finished[: instant.ends].tolist()):
            if left.get(row, 0.0) > 0.0:
                events["kind"][self.journal.count + number] = EventKind.FAILED
                events["value"][self.journal.count + number] = left[row]

    def _change_nodes(self, instant: Instant) -> None:
        for node in instant.lost:
            self.nodes[c.UP, node] = 0
            self._write(EventKind.NODE_LOST, node)
            for k in range(self.plan.jobs):
                row = self.plan.index[c.ROW, k]
                if self.columns[c.PLACE, row] == k and node in self.slot_node[self.plan.slots_of(k)]:
                    kernels.stop(self.columns, row)
                    self._write(
                        EventKind.PAUSED, int(self.columns[c.JOB, row]), self.columns[c.REMAINING, row]
                    )
        for node in instant.joined:
            self.nodes[c.UP, node] = 1
            self._write(EventKind.NODE_JOINED, node)

    def _write(self, kind: EventKind, job: int, value: float = 0.0) -> None:
        journal = self.journal
        journal.reserve(1, 0)
        journal.events[journal.count] = (self.now_s, value, 0, job, 0, kind)
        journal.count += 1

    def _resize(self, at_least: int) -> None:
        """Make room for more active jobs by doubling all arrays over rows."""
        old = self.columns
        capacity = max(at_least, 2 * old.shape[1])
        self.columns = np.zeros((c.OWN + self._own, capacity))
        self.columns[c.JOB] = self.columns[c.PLACE] = self.columns[c.WANTED] = -1.0
        self.columns[c.ITERATION_S] = self.columns[c.GPUS] = 1.0
        order = np.zeros(capacity, np.int32)
        self.free = np.arange(capacity - 1, -1, -1, dtype=np.int32)
        if self.active:
            self.columns[:, : old.shape[1]] = old
            order[: self.active] = self.order[: self.active]
            used = self.order[: self.active]
            unused = np.setdiff1d(np.arange(capacity, dtype=np.int32), used)[::-1]
            self.free[: len(unused)] = unused
        self.order, self.capacity = order, capacity
        self._show()

    def _show(self) -> None:
        """Give the view its read-only columns."""
        view, columns = self.view, _frozen(self.columns)
        view.columns = self.columns
        view.capacity = self.capacity
        view.current = self.plan
        view.remaining = columns[c.REMAINING]
        view.iteration_s = columns[c.ITERATION_S]
        view.gpus = columns[c.GPUS]
        view.submit_s = columns[c.SUBMIT_S]
        view.duration_s = columns[c.DURATION_S]
        view.priority = columns[c.PRIORITY]
        view.executed_s = columns[c.EXECUTED_S]
        view.place = columns[c.PLACE]


_ILLEGAL = {
    kernels.NOT_ACTIVE: "the plan names a job that is not active",
    kernels.PLANNED_TWICE: "the plan names a job twice",
    kernels.WRONG_GANG: "the plan gives a job more or fewer slots than it needs",
    kernels.BAD_SLOT: "the plan names a slot that is not available",
    kernels.WRONG_KIND: "the plan puts a job on a device kind that it may not use",
    kernels.OVERBOOKED: "the plan puts more jobs on a slot than may share it",
    kernels.BAD_PACE: "the plan gives a job a step time that is not a finite number of seconds above 0",
}


def _frozen(array: NDArray) -> NDArray:  # type: ignore[type-arg]
    view = array.view()
    view.flags.writeable = False
    return view
