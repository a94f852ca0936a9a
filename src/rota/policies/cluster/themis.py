"""Themis: finish-time fairness; the worst-off job decides how the cluster is shared."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rota.core.calls import place, sort_rows
from rota.core.columns import EXECUTED_S, GPUS, ITERATION_S, ROW, SIZE, SUBMIT_S, UP
from rota.core.compiled import kernel
from rota.core.costs import Ties
from rota.core.driver import CompiledPlan, decide_placed, options_of
from rota.core.durations import known_left
from rota.core.memory import columns_of, engine_at, floats, index_of, nodes_of, order_of_jobs, plan_at
from rota.core.placement import STYLES, Style, first_fit
from rota.core.policy import Needs, Plan
from rota.core.view import ClusterView

NEEDS = Needs(
    own=("share", "left", "fair_work", "entitled_s", "seen_s"), ties=Ties(ends_rel=1e-9, arrivals_rel=1e-9)
)
SHARE, LEFT, FAIR_WORK, ENTITLED_S, SEEN_S = map(NEEDS.row, NEEDS.own)


@dataclass(frozen=True, slots=True)
class Themis:
    """Minimise the worst ratio of finish time to fair finish time; then serve the largest deficit first."""

    placement: Style = "consolidated"
    """How a gang is placed on nodes."""

    @property
    def needs(self) -> Needs:
        return NEEDS

    @property
    def compiled(self) -> CompiledPlan:
        return CompiledPlan(plan_fairly, (STYLES[self.placement],))

    def plan(self, view: ClusterView) -> Plan:
        capacity = float((view.nodes[SIZE] * view.nodes[UP]).sum())
        ranked = self._rank(view, capacity)
        plan = first_fit(view, ranked, style=self.placement)
        if view.cost.each_instant:
            # The reference places the chosen jobs again, largest first; one that does not fit then waits.
            largest_first = -view.gpus
            plan = first_fit(view, view.rank(largest_first, plan.rows.copy()), style=self.placement)
            plan.order = view.rank(largest_first, ranked)
        return plan

    def _rank(self, view: ClusterView, capacity: float) -> NDArray[np.int32]:
        """Rank by share per executed time, then by what a job is owed, then by share, all descending."""
        shares, owed_s = np.zeros(view.capacity), np.zeros(view.capacity)
        divide(view.columns, view.order, view.now_s, capacity, shares, owed_s)
        urgency = np.where(view.executed_s > 0.0, shares / np.maximum(view.executed_s, 1e-300), shares * 1e9)
        by_share = view.rank(-shares)
        return view.rank(-urgency, view.rank(-owed_s, by_share))


@kernel
def plan_fairly(address):
    """Plan as `Themis.plan`."""
    e = engine_at(address)
    columns, order, style = columns_of(e), order_of_jobs(e), int(options_of(e)[0])
    ranked = rank_fairly(e, columns, order)
    jobs = place(e, address, ranked, style, 0, 1 - e.each_instant)
    if e.each_instant:
        largest_first = floats(e.keys, e.capacity)
        largest_first[:] = -columns[GPUS]
        chosen = np.empty(jobs, np.int32)
        sort_rows(e, index_of(plan_at(e.draft))[ROW, :jobs].copy(), largest_first, chosen)
        jobs = place(e, address, chosen, style, 0, 0)
        sort_rows(e, ranked, largest_first, order)
    else:
        order[:] = ranked
    decide_placed(e, jobs, np.inf)


@kernel
def rank_fairly(e, columns, order):
    """Rank as `Themis._rank`."""
    nodes, key = nodes_of(e), floats(e.keys, e.capacity)
    capacity = 0.0
    for node in range(e.node_count):
        capacity += nodes[SIZE, node] * nodes[UP, node]
    shares, owed_s = np.zeros(e.capacity), np.zeros(e.capacity)
    divide(columns, order, e.now_s, capacity, shares, owed_s)
    ranked, before = np.empty(e.active, np.int32), np.empty(e.active, np.int32)
    key[:] = -shares
    sort_rows(e, order, key, ranked)
    key[:] = -owed_s
    sort_rows(e, ranked, key, before)
    for row in order:
        executed_s = columns[EXECUTED_S, row]
        key[row] = -(shares[row] / executed_s if executed_s > 0.0 else shares[row] * 1e9)
    sort_rows(e, before, key, ranked)
    return ranked


@kernel
def divide(columns, order, now_s, capacity, shares, owed_s):
    """Compute each job's share of its gang and what it is owed, and update its account of fair work."""
    n = order.shape[0]
    if capacity == 0.0:
        return  # no node is up
    left_s = np.empty(n)
    fair = np.empty(n)
    gpus = np.empty(n)
    age_s = np.empty(n)
    for i in range(n):
        row = order[i]
        left = known_left(columns, row)
        if columns[SHARE, row] > 0.0:
            columns[FAIR_WORK, row] += (columns[LEFT, row] - left) / columns[SHARE, row]
        gpus[i] = columns[GPUS, row]
        columns[SHARE, row] = min(1.0, math.ceil(capacity / n) / gpus[i])
        columns[LEFT, row] = left
        # In iterations, not in seconds, as in the reference.
        fair[i] = max(columns[FAIR_WORK, row] + left / columns[SHARE, row], 1e-12)
        left_s[i] = max(left, 1e-12) * columns[ITERATION_S, row]
        age_s[i] = now_s - columns[SUBMIT_S, row]
    x = fairest_shares(left_s, fair, gpus, age_s, capacity)
    for i in range(n):
        row = order[i]
        shares[row] = x[i]
        owed_s[row] = columns[ENTITLED_S, row] - columns[EXECUTED_S, row]
        if columns[SEEN_S, row] > 0.0:
            columns[ENTITLED_S, row] += x[i] * (now_s + 1.0 - columns[SEEN_S, row])
        columns[SEEN_S, row] = now_s + 1.0  # so that 0 means never


@kernel
def fairest_shares(left_s, fair, gpus, age_s, capacity):
    """Minimise the largest (age + left ÷ share) ÷ fair work by bisection; divide the rest evenly."""
    ratio = 0.0
    for i in range(left_s.shape[0]):
        ratio = max(ratio, (age_s[i] + left_s[i]) / fair[i])
    x = np.empty(left_s.shape[0])
    if demand(ratio, left_s, fair, gpus, age_s, x) > capacity:
        low, high = ratio, 2.0 * ratio
        while demand(high, left_s, fair, gpus, age_s, x) > capacity:
            low, high = high, 2.0 * high
        for _ in range(60):
            middle = 0.5 * (low + high)
            if demand(middle, left_s, fair, gpus, age_s, x) > capacity:
                low = middle
            else:
                high = middle
        demand(high, left_s, fair, gpus, age_s, x)
    slack = capacity - np.sum(gpus * x)
    wish = np.sum(gpus * (1.0 - x))
    if slack > 0.0 and wish > 0.0:
        x += min(1.0, slack / wish) * (1.0 - x)
    return x


@kernel
def demand(ratio, left_s, fair, gpus, age_s, x):
    """Compute the least shares with which no job exceeds the ratio; return their total of GPUs."""
    total = 0.0
    for i in range(x.shape[0]):
        x[i] = min(1.0, left_s[i] / max(ratio * fair[i] - age_s[i], left_s[i]))
        total += gpus[i] * x[i]
    return total
