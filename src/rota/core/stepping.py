"""The two compiled calls of an engine: `advance` to the next instant, and `commit` a plan.

All functions here take the record of an engine (`rota.core.memory`), or its address if Python calls them.
"""

import numpy as np

from rota.core.columns import BEGIN, PLACE, SUBMIT_S
from rota.core.compiled import kernel
from rota.core.ends import close, next_ends, stretch
from rota.core.failures import fail_jobs, failures_due, find_failing, next_failure
from rota.core.kernels import add, apply, compare, progress, remove, take_over
from rota.core.memory import (
    actions_of,
    all_rows,
    columns_of,
    engine_at,
    events_of,
    floats,
    index_of,
    ints,
    kept_of,
    load_of,
    nodes_of,
    order_of_jobs,
    pace_of,
    plan_at,
    slot_node_of,
    slots_of,
    speeds_of,
    table_of,
)
from rota.core.nodes import change_nodes, fail_nodes, join_node, lose_node

DONE, STUCK, RESTLESS, GROW = -31, -32, -33, -34
"""What `advance` returns if nothing is to be decided: all jobs are done; jobs wait but nothing will happen;
the policy changes its plan for ever at one time; or an array is full, and nothing was changed yet."""
TOO_EARLY, TOO_MANY = -21, -22
"""What `commit` returns, beside `GROW` and the codes of `rota.core.kernels`, for an illegal plan."""
OK = 0

UNDECIDED = -35
"""What `advance` returns if no plan was committed at the last instant; nothing was changed."""

PATIENCE = 10_000  # instants without progress after which a policy counts as stuck


@kernel
def advance(address):
    """Move to the next instant; return the number of active jobs, or why there is nothing to decide."""
    e = engine_at(address)
    if e.undecided:
        return UNDECIDED
    code = find_next(e)
    if code < 0:
        return code
    if not has_room(e):
        return GROW
    move_time(e, e.at_s)
    turn_over(e, e.ending_now, e.coming)
    if e.failures:
        fail_jobs(e)
        fail_nodes(e)
    if e.changing > 0:
        change_nodes(e)
    e.instants += 1
    e.undecided = 1
    return e.active


@kernel
def find_next(e):
    """Find the next instant: the time, how many jobs end and arrive, and how many nodes change."""
    if e.done == e.jobs:
        return DONE
    submit_s = floats(e.submit_s, e.jobs)
    arrival_s = submit_s[e.arrived] if e.arrived < e.jobs else np.inf
    at_s, ends = next_job_event(e, arrival_s)
    at_s, ends, changing = next_node_event(e, at_s, ends)
    if e.failures:
        at_s, ends, changing = next_failure(e, at_s, ends, changing)
    if at_s == np.inf:
        return STUCK
    arrived = e.arrived
    if arrival_s == at_s:
        while arrived < e.jobs and close(submit_s[arrived], at_s, e.arrivals_rel, 0.0):
            arrived += 1
    idle = 0 if ends > 0 or arrived > e.arrived or at_s > e.now_s else e.idle + 1
    if idle > PATIENCE:
        return RESTLESS
    e.at_s = at_s
    e.ending_now = ends
    e.coming = arrived - e.arrived
    e.changing = changing
    e.idle = idle
    return OK


@kernel
def next_job_event(e, arrival_s):
    """Return the earliest of the next end, arrival and wake-up, and how many jobs end then."""
    end_s = e.end_s
    at_s, ends = end_s, e.ends
    if arrival_s < end_s:
        at_s, ends = arrival_s, 0
    if e.merge_abs > 0.0 and max(end_s, arrival_s) < np.inf:
        near_s = max(e.merge_rel * max(end_s, arrival_s), e.merge_abs)
        if abs(end_s - arrival_s) <= near_s:
            at_s, ends = arrival_s, e.ends
    if e.wake_s < at_s:
        at_s, ends = e.wake_s, 0
    return at_s, ends


@kernel
def next_node_event(e, at_s, ends):
    """Return the same with the next change of a node, and how many nodes change then."""
    changing = 0
    change_s = floats(e.change_s, e.changes)
    if e.changed < e.changes and change_s[e.changed] <= at_s:
        if change_s[e.changed] != at_s:
            at_s, ends = change_s[e.changed], 0
        while e.changed + changing < e.changes and change_s[e.changed + changing] == at_s:
            changing += 1
    return at_s, ends, changing


@kernel
def has_room(e):
    """Return whether the arrays have room for the next instant; if not, note what it needs."""
    if not e.keeps_timeline:
        e.count = 0
        e.used = 0
    e.need_rows = e.active - e.ending_now + e.coming
    e.need_events = e.count + e.ending_now + e.coming
    e.need_slots = 0
    if e.changing > 0:
        e.need_events += e.changing * (1 + 2 * plan_at(e.current).jobs)
    if e.failures:
        e.need_events += failures_due(e)
    fits = e.need_rows <= e.capacity and e.need_events <= e.event_room
    if not fits:
        e.idle -= 1 if e.idle > 0 else 0  # it is looked for again
    return fits


@kernel
def move_time(e, at_s):
    """Let the running jobs make progress until a time."""
    p = plan_at(e.current)
    elapsed_s = at_s - e.now_s
    e.active_s += e.active * elapsed_s
    e.waiting_s += (e.active - e.running) * elapsed_s
    e.running_s += e.running * elapsed_s
    e.busy_s += e.busy * elapsed_s
    if p.jobs > 0:
        progress(columns_of(e), index_of(p), p.jobs, e.now_s, at_s, e.checkpoint_every_s)
    e.now_s = at_s


@kernel
def turn_over(e, ends, arrivals):
    """Remove the first `ends` jobs of `ending`, and add the next jobs of the workload."""
    columns, order, free, events = columns_of(e), all_rows(e), ints(e.free, e.capacity), events_of(e)
    if ends > 0:
        ending = ints(e.ending, e.most_jobs)
        for i in range(ends):
            e.completed_s += e.now_s - columns[SUBMIT_S, ending[i]]
            e.running -= columns[PLACE, ending[i]] >= 0.0
        e.count = remove(columns, order, e.active, free, ending, ends, e.now_s, events, e.count)
        e.active -= ends
        e.done += ends
    if arrivals > 0:
        table = table_of(e)
        e.count = add(columns, order, e.active, free, table, e.arrived, arrivals, e.now_s, events, e.count)
        e.active += arrivals
        e.arrived += arrivals


@kernel
def move_time_at(address, at_s):
    """Do `move_time`, for Python."""
    move_time(engine_at(address), at_s)


@kernel
def turn_over_at(address, ends, arrivals):
    """Do `turn_over`, for Python."""
    turn_over(engine_at(address), ends, arrivals)


@kernel
def change_node_at(address, node, joins):
    """Do `join_node` or `lose_node`, for Python."""
    if joins:
        join_node(engine_at(address), node)
    else:
        lose_node(engine_at(address), node)


@kernel
def commit(address, plan, jobs, wake_s, listed):
    """Check a plan, given by its address, and put it into effect; return OK, or why not.

    `listed` is the list order to leave behind; empty for the present one. If the plan is illegal or an array
    is full (`GROW`), nothing was changed.
    """
    e = engine_at(address)
    if wake_s < e.now_s:
        return TOO_EARLY
    old, new = plan_at(e.current), plan_at(plan)
    if jobs < 0 or jobs > min(e.most_jobs, new.width - 1):
        return TOO_MANY
    columns, nodes, slot_node = columns_of(e), nodes_of(e), slot_node_of(e)
    index, slots, pace_s = index_of(new), slots_of(new), pace_of(new)
    actions, paused = actions_of(e), ints(e.paused, e.most_jobs)
    if e.is_as_placed and e.is_kept_known and e.sharing == 1:
        pauses = take_over(columns, index_of(old), old.jobs, index, jobs, kept_of(e), actions, paused)
        busy = index[BEGIN, jobs]
    else:
        pauses, busy = compare(
            columns, index_of(old), slots_of(old), old.jobs, index, slots, pace_s, jobs,
            nodes, slot_node, e.sharing, load_of(e), actions, paused,
        )  # fmt: skip
    if pauses < 0:
        return pauses
    e.need_rows = e.active
    e.need_events = e.count + 2 * (jobs + pauses)
    e.need_slots = e.used + e.bound
    if e.need_events > e.event_room or e.need_slots > e.arena_room:
        return GROW
    if not e.is_even:
        stretch(
            columns, index, slots, pace_s, jobs, speeds_of(e), nodes, slot_node, e.cross_node, e.cross_switch
        )
    e.count, e.used = apply(
        columns, index, slots, pace_s, jobs, actions, paused, pauses, e.now_s, e.each_instant, e.saves,
        events_of(e), e.count, ints(e.arena, e.arena_room), e.used,
    )  # fmt: skip
    order = order_of_jobs(e)
    if listed.shape[0] > 0:
        order[:] = listed
        e.is_sorted = 0
    new.jobs = jobs
    e.draft = e.second if plan == e.first else e.first
    e.current = plan
    e.wake_s = wake_s
    e.running = jobs
    e.pauses = pauses
    e.is_as_placed = 0
    e.undecided = 0
    e.busy = busy
    e.end_s, e.ends = next_ends(
        columns, index, jobs, order, e.now_s, e.each_instant, e.ends_rel, e.ends_abs,
        ints(e.ending, e.most_jobs),
    )  # fmt: skip
    if e.failures:
        find_failing(e)
    return OK
