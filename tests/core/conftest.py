"""A state in the middle of things, and plans written by hand."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.columns import BEGIN, ROW, UNIT
from rota.core.costs import RESTART
from rota.core.engine import JobsEngine
from rota.core.instant import Instant
from rota.core.policy import Needs, Plan
from rota.workload.jobs import workload

NO_ROWS = np.zeros(0, np.int32)


@pytest.fixture
def state_of() -> Callable[..., JobsEngine]:
    """Gives a function that makes a state in which jobs of these gang sizes have arrived at 0 s.

    Rows are given out in order, so job i is in row i; `later` jobs are in the workload but not there yet.
    """

    def make(
        gangs: Sequence[int],
        cluster: Cluster,
        sharing: int = 1,
        later: int = 0,
        kinds: Sequence[tuple[str, ...]] = (),
    ) -> JobsEngine:
        n = len(gangs) + later
        jobs = workload(
            "by hand", [f"j{i}" for i in range(n)], [0.0] * n, [*gangs, *[1] * later], ["bert"] * n,
            duration_s=[100.0] * n, kinds=kinds,
        )  # fmt: skip
        state = JobsEngine(jobs.table(cluster), cluster, RESTART, Needs(("mark",), sharing=sharing))
        state.apply(Instant(0.0, NO_ROWS, arrivals=len(gangs)))
        return state

    return make


@pytest.fixture
def plan_of() -> Callable[..., Plan]:
    """Gives a function that writes a plan: for each unit the rows in it and the slots they share."""

    def make(*units: tuple[Sequence[int], Sequence[int]]) -> Plan:
        plan = Plan(16, 64)
        begin = 0
        for unit, (rows, slots) in enumerate(units):
            for row in rows:
                plan.index[ROW, plan.jobs] = row
                plan.index[UNIT, plan.jobs] = unit
                plan.pace_s[plan.jobs] = 1.0
                plan.jobs += 1
            plan.slots[begin : begin + len(slots)] = slots
            begin += len(slots)
            plan.index[BEGIN, unit + 1] = begin
        return plan

    return make
