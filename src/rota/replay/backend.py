"""The backend that owns virtual time: it replays a workload on machines that exist only on paper."""

from collections.abc import Iterator

import numpy as np

from rota.core import columns as c
from rota.core.cluster import Cluster
from rota.core.costs import EXACT, Ties
from rota.core.errors import Stuck
from rota.core.state import Decisions, Instant, State
from rota.replay.kernels import next_ends


class Replay:
    """Arrivals from a table of jobs, ends from their pace, nodes that come and go."""

    def __init__(self, submit_s: np.ndarray, cluster: Cluster, ties: Ties = EXACT) -> None:
        self.ties = ties
        self._submit_s = submit_s.tolist()
        self._end_s = np.inf
        self._ends = 0
        self._wake_s = np.inf
        self._ending = np.zeros(1, np.int32)

    def instants(self, state: State) -> Iterator[Instant]:
        submit_s, rel = self._submit_s, self.ties.arrivals_rel
        jobs = len(submit_s)
        done = arrived = 0
        self._ending = np.zeros(max(len(state.plan.pace_s), 1), np.int32)
        while done < jobs:
            arrival_s = submit_s[arrived] if arrived < jobs else np.inf
            at_s = self._end_s if self._end_s < arrival_s else arrival_s
            ends = self._ends if self._end_s <= arrival_s or self._merges(arrival_s) else 0
            if ends and self._merges(arrival_s):
                at_s = arrival_s
            if self._wake_s < at_s:
                at_s, ends = self._wake_s, 0
            first = arrived
            if arrival_s == at_s:
                arrived += 1
                limit_s = at_s + rel * at_s
                while arrived < jobs and submit_s[arrived] <= limit_s:
                    arrived += 1
            if at_s == np.inf:
                raise Stuck(f"at {state.now_s} s: {state.active} jobs wait, nothing runs and nothing will happen")
            done += ends
            yield Instant(at_s, self._ending, ends, first, arrived - first)

    def _merges(self, arrival_s: float) -> bool:
        """Whether the next end and the next arrival are so close that they happen together."""
        ties = self.ties
        if ties.merge_abs == 0.0 or self._end_s == np.inf or arrival_s == np.inf:
            return False
        near = max(ties.merge_rel * max(self._end_s, arrival_s), ties.merge_abs)
        return abs(self._end_s - arrival_s) <= near

    def perform(self, decisions: Decisions, state: State) -> None:
        """In virtual time everything is done at once; what follows from it is when the next jobs end."""
        state.confirm(decisions)
        plan = decisions.plan
        self._wake_s = plan.wake_at_s
        self._end_s, self._ends = next_ends(
            state.columns, plan.index, plan.jobs, state.view.order, state.now_s, not state.cost.each_instant,
            self.ties.ends_rel, self.ties.ends_abs, self._ending,
        )  # fmt: skip
