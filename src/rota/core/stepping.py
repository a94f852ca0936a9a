"""The two compiled calls of an engine: `advance` to the next instant, and `commit` a plan.

All functions here take the record of an engine (`rota.core.memory`), or its address if Python calls them.
"""

import numpy as np

from rota.core.columns import BEGIN, PACE_S, PLACE, ROW, SUBMIT_S, UNIT
from rota.core.compiled import kernel
from rota.core.durations import note_ended
from rota.core.ends import close, next_ends, stretch
from rota.core.failures import fail_jobs, failures_due, find_failing, next_failure
from rota.core.kernels import WRONG_GANG, add, apply, close_account, compare, refresh, remove, take_over
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
from rota.core.queues import dissolve
from rota.core.sizes import have_sizes

DONE, STUCK, RESTLESS, GROW = -31, -32, -33, -34
"""What `advance` returns if nothing is to be decided: all jobs are done; jobs wait but nothing will happen;
the policy changes its plan for ever at one time; or an array is full, and nothing was changed yet."""
TOO_EARLY, TOO_MANY = -21, -22
"""What `commit` returns, beside `GROW` and the codes of `rota.core.kernels`, for an illegal plan."""
OK = 0

UNDECIDED = -35
"""What `advance` returns if no plan was committed at the last instant; nothing was changed."""

REFIT = -36
"""What `advance` returns if durations are to be predicted anew; nothing was changed."""

RESOLVABLE = (STUCK, RESTLESS, GROW, UNDECIDED, REFIT)
"""What `advance` returns, and is called again, or explained."""

PATIENCE = 10_000  # instants without progress after which a policy counts as stuck


@kernel
def advance(address):
    """Move to the next instant; return the number of active jobs, or why there is nothing to decide."""
    e = engine_at(address)
    if e.undecided:
        return UNDECIDED
    if e.predicts and e.learnt >= e.refit_at:
        return REFIT
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
    if e.predicts:
        note_ended(e)
    if e.changing > 0:
        change_nodes(e)
    if not e.is_lazy and not e.each_instant:
        refresh_all(e)
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
    """Let time pass. Accounts of jobs are closed only where their last bits depend on it."""
    e.before = e.count
    elapsed_s = at_s - e.now_s
    e.active_s += e.active * elapsed_s
    e.waiting_s += (e.active - e.running) * elapsed_s
    e.running_s += e.running * elapsed_s
    e.busy_s += e.busy * elapsed_s
    e.now_s = at_s
    if e.each_instant:
        close_accounts(e)


@kernel
def close_accounts(e):
    """Close the accounts of all running jobs."""
    p, columns = plan_at(e.current), columns_of(e)
    index = index_of(p)
    for k in range(p.jobs):
        if columns[PLACE, index[ROW, k]] == k:  # its node is there, and it has not ended
            close_account(columns, index[ROW, k], e.now_s, e.checkpoint_every_s)


@kernel
def refresh_all(e):
    """Write what all running jobs have left, for policies that read it."""
    p, columns = plan_at(e.current), columns_of(e)
    index = index_of(p)
    for k in range(p.jobs):
        if columns[PLACE, index[ROW, k]] == k:
            refresh(columns, index[ROW, k], e.now_s)


@kernel
def turn_over(e, ends, arrivals):
    """Remove the first `ends` jobs of `ending`, and add the next jobs of the workload."""
    columns, order, free, events = columns_of(e), all_rows(e), ints(e.free, e.capacity), events_of(e)
    listed = e.active - e.queued
    if ends > 0:
        ending = ints(e.ending, e.most_jobs)
        for i in range(ends):
            e.completed_s += e.now_s - columns[SUBMIT_S, ending[i]]
            e.running -= columns[PLACE, ending[i]] >= 0.0
        e.count = remove(columns, order, listed, e.active, free, ending, ends, e.now_s, events, e.count)
        e.active -= ends
        listed -= ends
        e.done += ends
    if arrivals > 0:
        table = table_of(e)
        e.count = add(
            columns, order, listed, e.active, free, table, e.arrived, arrivals, e.now_s, events, e.count
        )
        e.active += arrivals
        e.arrived += arrivals


@kernel
def show_at(address):
    """Make everything as policies in Python expect it."""
    e = engine_at(address)
    dissolve(e)
    e.is_lazy = 0
    if not e.each_instant:
        refresh_all(e)


@kernel
def move_time_at(address, at_s):
    """Let time pass and close all accounts: what was measured can then replace what was computed."""
    e = engine_at(address)
    move_time(e, at_s)
    if not e.each_instant:
        close_accounts(e)


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
            nodes, slot_node, e.sharing, e.sizes, load_of(e), actions, paused,
        )  # fmt: skip
    if pauses < 0:
        return pauses
    if e.sizes and not have_sizes(e, index, jobs):
        return WRONG_GANG
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
        columns, index, slots, pace_s, jobs, actions, paused, pauses, e.now_s, e.each_instant,
        e.checkpoint_every_s, e.saves, events_of(e), e.count, ints(e.arena, e.arena_room), e.used,
    )  # fmt: skip
    order = order_of_jobs(e)
    if listed.shape[0] > 0:
        order[:] = listed
        e.is_sorted = 0
    new.jobs = jobs
    e.draft = e.second if plan == e.first else e.first
    e.current = plan
    e.running = jobs
    e.pauses = pauses
    e.is_as_placed = 0
    e.busy = busy
    settle(e, wake_s)
    return OK


@kernel
def stay(e, wake_s):
    """Go on with the plan that runs, in place of a commit, in the order of the jobs that it has now."""
    columns, order, p, units = columns_of(e), order_of_jobs(e), plan_at(e.current), ints(e.ranking, e.active)
    index, pace_s = index_of(p), pace_of(p)
    for i in range(order.shape[0]):
        if columns[PLACE, order[i]] >= 0.0:
            units[i] = index[UNIT, int(columns[PLACE, order[i]])]
    p.jobs = 0
    for i in range(order.shape[0]):
        row = order[i]
        if columns[PLACE, row] >= 0.0:
            index[ROW, p.jobs] = row
            index[UNIT, p.jobs] = units[i]
            pace_s[p.jobs] = columns[PACE_S, row]
            columns[PLACE, row] = p.jobs
            p.jobs += 1
    e.pauses = 0
    settle(e, wake_s)


@kernel
def settle(e, wake_s):
    """Note that a decision was made, and find the next ends and failures of the jobs that run now."""
    p = plan_at(e.current)
    e.wake_s = wake_s
    e.undecided = 0
    e.end_s, e.ends = next_ends(
        columns_of(e), index_of(p)[ROW, : p.jobs], order_of_jobs(e), e.now_s, e.each_instant,
        e.ends_rel, e.ends_abs, ints(e.ending, e.most_jobs),
    )  # fmt: skip
    if e.failures:
        find_failing(e)
