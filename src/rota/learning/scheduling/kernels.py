"""What an agent that schedules jobs observes, and scores that are linear in it; compiled."""

import numpy as np

from rota.core.columns import (
    BEGIN,
    ESTIMATE,
    EXECUTED_S,
    GPUS,
    GROUP,
    ITERATION_S,
    KIND,
    KINDS,
    MODEL,
    PACE_S,
    PLACE,
    PRIORITY,
    ROW,
    SIZE,
    STARTUP_S,
    SUBMIT_S,
    UNIT,
    UP,
)
from rota.core.compiled import kernel
from rota.core.durations import known_left_s
from rota.core.lanes import (
    groups_of,
    lane_at,
    mask_of,
    observed_cluster,
    observed_jobs,
)
from rota.core.memory import (
    all_rows,
    columns_of,
    engine_at,
    index_of,
    nodes_of,
    plan_at,
    slot_node_of,
    slots_of,
    speeds_of,
)

LIMIT = 100.0
"""Largest observed number; only extreme speeds are clipped."""

JOB_FEATURES = (
    *("present", "running", "gang", "gpus", "age", "waited", "attained", "remaining", "solo"),
    *("startup", "priority", "fits", "speed", "group_mean", "group_count"),
)
"""Names of the numbers that are observed of a job; the speeds of its model on each device kind follow."""
CLUSTER_FEATURES = ("active", "running", "unseen", "idle", "up", "pressure", "since", "ended_mean")
"""Names of the numbers that are observed of the cluster; the idle share of each device kind follows."""


@kernel
def observe(address):
    """Write what is observed in a lane, and which positions have a job."""
    lane = lane_at(address)
    e = engine_at(lane.engine)
    jobs, cluster, mask = observed_jobs(lane), observed_cluster(lane), mask_of(lane)
    shown = min(e.active, lane.width)
    jobs[shown : max(shown, lane.shown)] = 0.0
    mask[:shown] = 1
    mask[shown:] = 0
    lane.shown = shown
    if shown == 0:
        cluster[:] = 0.0
        return
    idle = observe_cluster(lane, e, cluster)
    for i in range(shown):
        observe_job(lane, e, all_rows(e)[i], idle, jobs[i])


@kernel
def observe_cluster(lane, e, cluster):
    """Write what is observed of the cluster; return the number of idle slots."""
    columns, order, nodes, groups = columns_of(e), all_rows(e), nodes_of(e), groups_of(lane)
    running, busy, asked = 0, 0.0, 0.0
    for i in range(e.active):
        gpus = columns[GPUS, order[i]]
        asked += gpus
        if columns[PLACE, order[i]] >= 0.0:
            running += 1
            busy += gpus
    up = 0
    for node in range(e.node_count):
        up += nodes[SIZE, node] * nodes[UP, node]
    cluster[0] = log1p(e.active)
    cluster[1] = log1p(running)
    cluster[2] = log1p(e.active - lane.shown)
    cluster[3] = (up - busy) / e.slots
    cluster[4] = up / e.slots
    cluster[5] = log1p(asked / max(up, 1))
    cluster[6] = log1p(e.now_s - lane.decided_s)
    cluster[7] = groups[0, 0] / max(groups[1, 0], 1.0)
    observe_kinds(e, cluster[len(CLUSTER_FEATURES) :])
    return up - busy


@kernel
def observe_kinds(e, idle):
    """Write the share of the slots of each device kind that is idle."""
    columns, nodes, slot_node, p = columns_of(e), nodes_of(e), slot_node_of(e), plan_at(e.current)
    index, slots = index_of(p), slots_of(p)
    idle[:] = 0.0
    sizes = np.zeros(idle.shape[0], np.float32)
    for node in range(e.node_count):
        sizes[nodes[KIND, node]] += nodes[SIZE, node]
        idle[nodes[KIND, node]] += nodes[SIZE, node] * nodes[UP, node]
    for k in range(p.jobs):
        if columns[PLACE, index[ROW, k]] == k:
            unit = index[UNIT, k]
            for i in range(index[BEGIN, unit], index[BEGIN, unit + 1]):
                idle[nodes[KIND, slot_node[slots[i]]]] -= 1.0
    for kind in range(idle.shape[0]):
        idle[kind] /= max(sizes[kind], np.float32(1.0))


@kernel
def observe_job(lane, e, row, idle, out):
    """Write what is observed of a job."""
    columns, groups, speeds = columns_of(e), groups_of(lane), speeds_of(e)
    runs = columns[PLACE, row] >= 0.0
    gpus, executed_s = columns[GPUS, row], columns[EXECUTED_S, row]
    age_s = e.now_s - columns[SUBMIT_S, row]
    group = 1 + int(columns[GROUP, row])
    out[0] = 1.0
    out[1] = runs
    out[2] = gpus / e.slots
    out[3] = log1p(gpus)
    out[4] = log1p(age_s)
    out[5] = log1p(age_s - executed_s)
    out[6] = log1p(executed_s)
    out[7] = 0.0
    out[8] = 0.0
    if lane.knows_durations:
        out[7] = log1p(known_left_s(columns, row))
        out[8] = log1p(columns[ESTIMATE, row] * columns[ITERATION_S, row])
    out[9] = log1p(columns[STARTUP_S, row])
    out[10] = columns[PRIORITY, row]
    out[11] = not runs and gpus <= idle
    out[12] = min(columns[ITERATION_S, row] / columns[PACE_S, row], LIMIT) if runs else 0.0
    out[13] = groups[0, group] / max(groups[1, group], 1.0)
    out[14] = log1p(groups[1, group])
    model, kinds = int(columns[MODEL, row]), columns[KINDS, row]
    for kind in range(e.kinds):
        allowed = kinds < 0.0 or (int(kinds) >> kind) & 1 == 1
        out[len(JOB_FEATURES) + kind] = min(speeds[model, kind], LIMIT) if allowed else 0.0


@kernel
def log1p(value):
    """Return ln(1 + value), in single precision; 0 for values below 0, which are rounding errors."""
    return np.log(np.float32(1.0) + np.float32(max(value, 0.0)))


@kernel
def linear(jobs, cluster, parameters, scores):
    """Score each job by the sum of what is observed of it, each number times its parameter."""
    for i in range(jobs.shape[0]):
        total = 0.0
        for k in range(parameters.shape[0]):
            total += jobs[i, k] * parameters[k]
        scores[i] = total
