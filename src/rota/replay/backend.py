"""The backend that owns virtual time: it replays a workload on machines that exist only on paper."""

from collections.abc import Iterator
from itertools import groupby
from math import isclose

import numpy as np
from numpy.typing import NDArray

from rota.core import columns as c
from rota.core.cluster import Cluster
from rota.core.costs import EXACT, Ties
from rota.core.errors import Stuck
from rota.core.state import Decisions, Instant, State
from rota.replay.kernels import next_ends
from rota.replay.speed import Speed

PATIENCE = 10_000  # instants without anything happening before a policy is said to change its mind for ever


class Replay:
    """Arrivals from a table of jobs, ends from their pace, nodes that come and go."""

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

    def instants(self, state: State) -> Iterator[Instant]:
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
                raise Stuck(f"the policy keeps changing its mind at {at_s:g} s")
            yield instant

    def _next(self, arrival_s: float) -> tuple[float, int]:
        """When something happens next, and how many jobs end then."""
        end_s, wake_s, ties = self._end_s, self._wake_s, self._ties
        at_s, ends = (arrival_s, 0) if arrival_s < end_s else (end_s, self._ends)
        if ties.merge_abs and max(end_s, arrival_s) < np.inf:
            near_s = max(ties.merge_rel * max(end_s, arrival_s), ties.merge_abs)
            if abs(end_s - arrival_s) <= near_s:
                at_s, ends = arrival_s, self._ends
        return (wake_s, 0) if wake_s < at_s else (at_s, ends)

    def perform(self, decisions: Decisions, state: State) -> None:
        """In virtual time everything is done at once; what follows from it is when the next jobs end."""
        plan = decisions.plan
        if self._speed is not None:
            self._speed.apply(plan, state)
        state.confirm(decisions)
        self._wake_s = plan.wake_at_s
        self._end_s, self._ends = next_ends(
            state.columns, plan.index, plan.jobs, state.view.order, state.now_s, not state.cost.each_instant,
            self._ties.ends_rel, self._ties.ends_abs, self._ending,
        )  # fmt: skip


def _stuck(state: State) -> str:
    row = state.order[0]
    job, slots = int(state.columns[c.JOB, row]), int(state.columns[c.GPUS, row])
    first = f"the first, number {job} of the trace, needs {slots} slots"
    return f"at {state.now_s:g} s nothing runs and nothing will happen, but {state.active} jobs wait; {first}"
