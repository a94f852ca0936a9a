"""Tiresias: queues by attained service, so that durations need not be known."""

import math
from dataclasses import dataclass

import numpy as np

from rota.core.calls import place
from rota.core.columns import EXECUTED_S, GPUS, JOB, PLACE, ROW
from rota.core.compiled import kernel
from rota.core.costs import Ties
from rota.core.driver import CompiledPlan, decide_placed, options_of
from rota.core.errors import ConfigError
from rota.core.kernels import refresh
from rota.core.memory import columns_of, engine_at, floats, index_of, ints, order_of_jobs, plan_at
from rota.core.placement import STAYS, STYLES, Style, first_fit
from rota.core.policy import Needs, Plan
from rota.core.queues import append, leave_queues, move, place_risen, push, seqs_of, sort_listed
from rota.core.room import ANYWHERE, CONSOLIDATED
from rota.core.stepping import stay
from rota.core.view import ClusterView

NEEDS = Needs(own=("level",), durations="unused", ties=Ties(arrivals_rel=1e-9))
LEVEL = NEEDS.row("level")

BY_COST = -1  # the placement of a compiled plan: that of the cost model


@dataclass(frozen=True, slots=True)
class Tiresias:
    """Discretised two-dimensional least attained service: a job sinks as it uses GPU time."""

    limits_gpu_s: tuple[float, ...] = (3250.0, 7200.0)
    """Attained GPU-seconds at which a job sinks from each queue to the next."""
    placement: Style | None = None
    """How a gang is placed on nodes: consolidated by default; anywhere with `interval`, as in the
    reference."""

    def __post_init__(self) -> None:
        if (
            list(self.limits_gpu_s) != sorted(set(self.limits_gpu_s))
            or min(self.limits_gpu_s, default=1.0) <= 0.0
        ):
            raise ConfigError(f"limits_gpu_s {self.limits_gpu_s}: they must be above 0 and rise")

    @property
    def needs(self) -> Needs:
        return NEEDS

    @property
    def compiled(self) -> CompiledPlan:
        style = BY_COST if self.placement is None else STYLES[self.placement]
        return CompiledPlan(plan_queues, (style, *self.limits_gpu_s), queues=True)

    def plan(self, view: ClusterView) -> Plan:
        limits = view.memo.get("limits")
        if limits is None:
            limits = view.memo["limits"] = np.array(self.limits_gpu_s) * view.cluster.slots_per_gpu
        key = np.empty(view.capacity)
        sink(view.columns, view.order, view.current.index, view.current.jobs, limits, key)
        queued = view.rank(key)
        whole_gpus = view.cluster.slots_per_gpu == 1
        if view.cost.each_instant and self.placement is None and whole_gpus:
            plan = first_fit(view, queued, style="anywhere", keep=True)  # the reference only counts GPUs
        else:
            plan = first_fit(view, queued, style=self.placement or "consolidated")
        plan.wake_at_s = settle(
            view.columns, queued, plan.index, plan.jobs, limits, view.now_s, view.cost.each_instant, key
        )
        plan.order = view.rank(key, queued)
        return plan


@kernel
def plan_queues(address):
    """Plan as `Tiresias.plan`: keys are 2 × level for running jobs, and one more for those that wait."""
    e = engine_at(address)
    options = options_of(e)
    limits = options[1:] * e.slots_per_gpu
    e.is_lazy = 1
    sink_listed(e, limits)
    style, keep = int(options[0]), 1 - e.each_instant
    if style == BY_COST:
        counts_only = e.each_instant and e.slots_per_gpu == 1
        style, keep = (ANYWHERE, 1) if counts_only else (CONSOLIDATED, keep)
    jobs = place(e, address, order_of_jobs(e), style, 0, keep)
    if jobs == STAYS:
        mark(e, plan_at(e.current), plan_at(e.current).jobs, True)
        stay(e, settle_listed(e, limits))
    else:
        leave_queues(e, jobs)
        mark(e, plan_at(e.draft), jobs, False)
        decide_placed(e, jobs, settle_listed(e, limits))


@kernel
def sink_listed(e, limits):
    """Move the running jobs at their limit to the tail of the next queue, and let those that wait do so.

    A job that has just lost its node keeps its place among the running ones until the next plan.
    """
    columns, order, keys, seqs = columns_of(e), order_of_jobs(e), floats(e.keys, e.capacity), seqs_of(e)
    arrived = order.shape[0] - e.coming if e.is_sorted else 0
    listed = 0
    for i in range(order.shape[0]):
        row = order[i]
        runs, level = columns[PLACE, row] >= 0.0, int(columns[LEVEL, row])
        if i >= arrived:
            append(keys, seqs, row, 2.0 * level + (not runs), e)
        if runs and not e.each_instant:
            refresh(columns, row, e.now_s)
        if runs and is_at_limit(columns, row, level, limits):
            columns[LEVEL, row] += 1.0
            append(keys, seqs, row, at_the_tail(columns, row), e)
        if not runs and keys[row] % 2.0 == 1.0:
            push(e, row)
        else:
            order[listed] = row
            listed += 1
    e.is_sorted = 1
    sort_listed(order[:listed], keys)


@kernel
def mark(e, plan, jobs, runs_already):
    """Mark the jobs of a plan that are to run; if it runs already, some of them may have ended or stopped."""
    columns, marks, index = columns_of(e), ints(e.marks, e.capacity), index_of(plan)
    for k in range(jobs):
        if not runs_already or columns[PLACE, index[ROW, k]] == k:
            marks[index[ROW, k]] = 1


@kernel
def settle_listed(e, limits):
    """Put the jobs that are to run, which are marked, before those that wait; return when one will sink."""
    columns, order, keys, seqs = columns_of(e), order_of_jobs(e), floats(e.keys, e.capacity), seqs_of(e)
    marks = ints(e.marks, e.capacity)
    wake_s = np.inf
    for row in order:
        runs = marks[row] == 1
        marks[row] = 0
        move(keys, seqs, row, 2.0 * columns[LEVEL, row] + (not runs), e)
        if runs:
            wake_s = min(wake_s, sinks_at(columns, row, limits, e.now_s, e.each_instant))
    place_risen(order, seqs, e)
    sort_listed(order, keys)
    return wake_s


@kernel
def is_at_limit(columns, row, level, limits):
    """Return whether a running job has used up what the level allows."""
    return level < limits.shape[0] and columns[EXECUTED_S, row] * columns[GPUS, row] >= limits[level]


@kernel
def at_the_tail(columns, row):
    """Return a key behind all jobs of a level, as they came."""
    return 2.0 * columns[LEVEL, row] + 1.0 + columns[JOB, row] / (columns[JOB, row] + 1e9)


@kernel
def sink(columns, order, index, jobs, limits, key):
    """Write the key that moves jobs at their limit to the tail of the next queue, as they came."""
    for i in range(order.shape[0]):
        key[order[i]] = 2.0 * columns[LEVEL, order[i]]
    for k in range(jobs):
        row = index[ROW, k]
        if columns[PLACE, row] == k and is_at_limit(columns, row, int(columns[LEVEL, row]), limits):
            columns[LEVEL, row] += 1.0
            key[row] = at_the_tail(columns, row)


@kernel
def settle(columns, queued, index, jobs, limits, now_s, each_instant, key):
    """Write the key that puts the waiting jobs of each queue behind its running ones.

    Returns when the next job will sink.
    """
    for i in range(queued.shape[0]):
        key[queued[i]] = 2.0 * columns[LEVEL, queued[i]] + 1.0
    wake_s = np.inf
    for k in range(jobs):
        key[index[ROW, k]] -= 1.0
        wake_s = min(wake_s, sinks_at(columns, index[ROW, k], limits, now_s, each_instant))
    return wake_s


@kernel
def sinks_at(columns, row, limits, now_s, each_instant):
    """Return when a job will sink if it runs from now on."""
    level = int(columns[LEVEL, row])
    if level >= limits.shape[0]:
        return np.inf
    sinks_s = now_s + (math.ceil(limits[level] / columns[GPUS, row]) - columns[EXECUTED_S, row])
    if sinks_s > now_s:
        return sinks_s
    if not each_instant:
        return np.nextafter(now_s, np.inf)  # rounding left it just below the limit
    # In the reference, adding no time may round it up to the limit, as executed time is accumulated; if not,
    # it sinks at the next event.
    executed_s = columns[EXECUTED_S, row] + now_s - now_s
    return now_s if executed_s * columns[GPUS, row] >= limits[level] else np.inf
