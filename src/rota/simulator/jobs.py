"""Simulation of jobs: a workload, a cluster, a scheduler and a cost model in; a timeline out."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from math import isclose

import numpy as np
from numpy.typing import NDArray

from rota.core import columns as c
from rota.core.cluster import Cluster, Preferences, fastest_first
from rota.core.columns import KIND
from rota.core.costs import EXACT, RESTART, CostModel, Ties
from rota.core.errors import Stuck, unknown
from rota.core.loop import drive
from rota.core.placement import Types
from rota.core.policy import Plan, Policy
from rota.core.state import Decisions, Instant, JobsState
from rota.core.timeline import Timeline
from rota.simulator.kernels import next_ends, stretch
from rota.workload.jobs import Workload, workload
from rota.workload.profiles import MODELS


@dataclass(frozen=True, slots=True)
class Speed:
    """Speeds of models on the devices of a cluster, and slowdowns across nodes and switches."""

    by_model: NDArray[np.float64]
    """Model × device kind → speed relative to the reference device."""
    cross_node: float
    cross_switch: float

    @classmethod
    def of(cls, cluster: Cluster, jobs: Workload) -> "Speed":
        """Return the cluster's own speeds, or else those with which the workload was measured.

        A `default` of the cluster applies to all models that it does not name.
        """
        speeds = {kind: dict(jobs.speeds.get(kind, {})) for kind in cluster.kinds}
        for kind, own in cluster.speeds.items():
            speeds[kind] = {**({} if "default" in own else speeds[kind]), **own}
        known = Cluster(cluster.nodes, speeds=speeds)
        rows = [[known.speed(model, kind) for kind in cluster.kinds] for model in jobs.models]
        return cls(np.array(rows), cluster.cross_node, cluster.cross_switch)

    @property
    def is_even(self) -> bool:
        """Whether every job runs at the reference speed everywhere."""
        return bool(np.all(self.by_model == 1.0)) and self.cross_node == self.cross_switch == 1.0

    def preferences(self, cluster: Cluster) -> Preferences:
        """Return the preferences of jobs that prefer the nodes that are fastest for their model."""
        return fastest_first(cluster, self.by_model, cluster.table()[KIND])

    def apply(self, plan: Plan, state: JobsState) -> None:
        """Convert the step times of a plan from the reference device to its slots."""
        stretch(
            state.columns, plan.index, plan.slots, plan.pace_s, plan.jobs, self.by_model,
            state.nodes, state.slot_node, self.cross_node, self.cross_switch,
        )  # fmt: skip


def odd_speeds(cluster: Cluster, jobs: Workload) -> list[str]:
    """Return a note for each model with a speed that neither the jobs nor rota's profiles have."""
    known = {"default", *jobs.models, *MODELS}
    return [
        f"cluster.speeds.{kind}: {unknown('model', model, ['default', *jobs.models])}; no job has it"
        for kind, speeds in cluster.speeds.items()
        for model in speeds
        if model not in known
    ]


PATIENCE = 10_000  # instants without progress after which a policy counts as stuck


class JobsSimulator:
    """A backend in virtual time: arrivals from a table, ends from step times, nodes that join and leave."""

    def __init__(
        self,
        submit_s: NDArray[np.float64],
        cluster: Cluster,
        ties: Ties = EXACT,
        speed: Speed | None = None,
    ) -> None:
        self._submit_s = submit_s.tolist()
        self._ties = ties
        self._speed = None if speed is None or speed.is_even else speed
        changes = sorted(cluster.changes, key=lambda change: change.at_s)
        self._changes = [
            (at_s, list(same)) for at_s, same in groupby(changes, key=lambda change: change.at_s)
        ]
        self._end_s = np.inf
        self._ends = 0
        self._wake_s = np.inf
        self._ending = np.zeros(1, np.int32)

    def instants(self, state: JobsState) -> Iterator[Instant]:
        submit_s, rel = self._submit_s, self._ties.arrivals_rel
        jobs = len(submit_s)
        done = arrived = idle = 0
        changes = self._changes[::-1]
        self._ending = np.zeros(max(len(state.plan.pace_s), 1), np.int32)
        while done < jobs:
            arrival_s = submit_s[arrived] if arrived < jobs else np.inf
            at_s, ends = self._next(arrival_s)
            if changes and changes[-1][0] <= at_s:
                at_s, ends = changes[-1][0], ends if changes[-1][0] == at_s else 0
            if at_s == np.inf:
                raise Stuck(_stuck(state))
            first = arrived
            if arrival_s == at_s:
                while arrived < jobs and isclose(submit_s[arrived], at_s, rel_tol=rel):
                    arrived += 1
            done += ends
            instant = Instant(at_s, self._ending, ends, first, arrived - first)
            if changes and changes[-1][0] == at_s:
                _, now = changes.pop()
                instant.lost = [change.node for change in now if not change.joins]
                instant.joined = [change.node for change in now if change.joins]
            idle = 0 if ends or arrived > first or at_s > state.now_s else idle + 1
            if idle > PATIENCE:
                raise Stuck(f"the policy keeps changing its plan at {at_s:g} s")
            yield instant

    def _next(self, arrival_s: float) -> tuple[float, int]:
        """Return the time of the next instant, and how many jobs end then."""
        end_s, wake_s, ties = self._end_s, self._wake_s, self._ties
        at_s, ends = (arrival_s, 0) if arrival_s < end_s else (end_s, self._ends)
        if ties.merge_abs and max(end_s, arrival_s) < np.inf:
            near_s = max(ties.merge_rel * max(end_s, arrival_s), ties.merge_abs)
            if abs(end_s - arrival_s) <= near_s:
                at_s, ends = arrival_s, self._ends
        return (wake_s, 0) if wake_s < at_s else (at_s, ends)

    def perform(self, decisions: Decisions, state: JobsState) -> None:
        """Confirm decisions at once, and compute when the next jobs end."""
        plan = decisions.plan
        if self._speed is not None:
            self._speed.apply(plan, state)
        state.confirm(decisions)
        self._wake_s = plan.wake_at_s
        self._end_s, self._ends = next_ends(
            state.columns, plan.index, plan.jobs, state.view.order, state.now_s, state.cost.each_instant,
            self._ties.ends_rel, self._ties.ends_abs, self._ending,
        )  # fmt: skip


def _stuck(state: JobsState) -> str:
    row = state.order[0]
    job, slots = int(state.columns[c.JOB, row]), int(state.columns[c.GPUS, row])
    first = f"the first, number {job} of the trace, needs {slots} slots"
    return f"at {state.now_s:g} s nothing runs and nothing will happen, but {state.active} jobs wait; {first}"


REPORT_EVERY = 512  # instants between two calls of `progress`


@dataclass(frozen=True, slots=True)
class Simulation:
    """The result of a simulation."""

    timeline: Timeline
    instants: int
    """Number of instants at which something happened."""
    wall_s: float
    """Seconds that the simulation took, without reading and compilation."""


def simulate(
    jobs: Workload,
    cluster: Cluster,
    policy: Policy,
    cost: CostModel = RESTART,
    progress: Callable[[int], None] | None = None,
    types: Types = "fastest",
) -> Simulation:
    """Simulate a workload until all jobs have finished; `progress` is called with the number that have.

    `types` says which devices jobs prefer: the fastest for their model, or those that the cluster lists
    first.
    """
    table, needs, speed = jobs.table(cluster), policy.needs, Speed.of(cluster, jobs)
    preferences = speed.preferences(cluster) if types == "fastest" else None
    state = JobsState(table, cluster, cost, needs.sharing, needs.own, needs.own_slots, preferences)
    ties = needs.ties if cost.each_instant else EXACT
    backend = JobsSimulator(table[c.SUBMIT_S], cluster, ties, speed)
    instants = done = 0
    began = time.perf_counter()
    for instant in drive(policy, backend, state):
        instants += 1
        done += instant.ends
        if progress is not None and instants % REPORT_EVERY == 0:
            progress(done)
    wall_s = time.perf_counter() - began
    if progress is not None:
        progress(done)
    return Simulation(state.timeline(), instants, wall_s)


def warm_up(policy: Policy, cost: CostModel = RESTART) -> None:
    """Load or compile all kernels that a simulation with this policy calls, by simulating a few jobs."""
    n = 24
    jobs = workload(
        "warm-up",
        ids=[str(i) for i in range(n)],
        submit_s=np.repeat([0.0, 1.0, 50.0], n // 3),
        gpus=[1, 2, 4, 1] * (n // 4),
        model=[MODELS[i % len(MODELS)] for i in range(n)],
        duration_s=np.linspace(1.0, 5000.0, n),
        priority=[i % 2 for i in range(n)],
    )
    uneven = Cluster(Cluster.uniform(2, 2).nodes, cross_node=1.5)
    simulate(jobs, uneven, policy, cost)
