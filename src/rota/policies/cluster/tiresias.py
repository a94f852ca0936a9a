"""Tiresias: queues by attained service, so that durations need not be known."""

import math
from dataclasses import dataclass

import numpy as np

from rota.core.calls import place, sort_rows
from rota.core.columns import EXECUTED_S, GPUS, JOB, OWN, PLACE, ROW
from rota.core.compiled import kernel
from rota.core.costs import Ties
from rota.core.driver import CompiledPlan, decide_placed, options_of
from rota.core.errors import ConfigError
from rota.core.memory import columns_of, engine_at, floats, index_of, ints, order_of_jobs, plan_at
from rota.core.placement import STYLES, Style, first_fit
from rota.core.policy import Needs, Plan
from rota.core.room import ANYWHERE, CONSOLIDATED
from rota.core.view import ClusterView

LEVEL = OWN

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
        return Needs(own=("level",), ties=Ties(arrivals_rel=1e-9))

    @property
    def compiled(self) -> CompiledPlan:
        style = BY_COST if self.placement is None else STYLES[self.placement]
        return CompiledPlan(plan_queues, (style, *self.limits_gpu_s))

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
        plan.wake_at_s = settle(view.columns, queued, plan.index, plan.jobs, limits, view.now_s, key)
        plan.order = view.rank(key, queued)
        return plan


@kernel
def plan_queues(address):
    """Plan as `Tiresias.plan`."""
    e = engine_at(address)
    columns, order, old, options = columns_of(e), order_of_jobs(e), plan_at(e.current), options_of(e)
    limits = options[1:] * e.slots_per_gpu
    queued, key = ints(e.ranking, e.active), floats(e.keys, e.capacity)
    sink(columns, order, index_of(old), old.jobs, limits, key)
    sort_rows(e, order, key, queued)
    style, keep = int(options[0]), 1 - e.each_instant
    if style == BY_COST:
        counts_only = e.each_instant and e.slots_per_gpu == 1
        style, keep = (ANYWHERE, 1) if counts_only else (CONSOLIDATED, keep)
    jobs = place(e, address, queued, style, 0, keep)
    wake_s = settle(columns, queued, index_of(plan_at(e.draft)), jobs, limits, e.now_s, key)
    sort_rows(e, queued, key, order)
    decide_placed(e, jobs, wake_s)


@kernel
def sink(columns, order, index, jobs, limits, key):
    """Write the key that moves jobs at their limit to the tail of the next queue, as they came."""
    for i in range(order.shape[0]):
        key[order[i]] = 2.0 * columns[LEVEL, order[i]]
    for k in range(jobs):
        row = index[ROW, k]
        level = int(columns[LEVEL, row])
        if columns[PLACE, row] != k or level >= limits.shape[0]:
            continue
        if columns[EXECUTED_S, row] * columns[GPUS, row] >= limits[level]:
            columns[LEVEL, row] += 1.0
            key[row] = 2.0 * columns[LEVEL, row] + 1.0 + columns[JOB, row] / (columns[JOB, row] + 1e9)


@kernel
def settle(columns, queued, index, jobs, limits, now_s, key):
    """Write the key that puts the waiting jobs of each queue behind its running ones.

    Returns when the next job will sink.
    """
    for i in range(queued.shape[0]):
        key[queued[i]] = 2.0 * columns[LEVEL, queued[i]] + 1.0
    wake_s = np.inf
    for k in range(jobs):
        row = index[ROW, k]
        level = int(columns[LEVEL, row])
        key[row] -= 1.0
        if level < limits.shape[0]:
            sinks_s = now_s + (math.ceil(limits[level] / columns[GPUS, row]) - columns[EXECUTED_S, row])
            if sinks_s <= now_s:
                # Rounding left it just below the limit. Adding no time may round it up to the limit, as
                # executed time is accumulated; if not, it sinks at the next event.
                executed_s = columns[EXECUTED_S, row] + now_s - now_s
                sinks_s = now_s if executed_s * columns[GPUS, row] >= limits[level] else np.inf
            wake_s = min(wake_s, sinks_s)
    return wake_s
