"""Compiled steps of the state: apply an instant, compare a plan with what runs, put it into effect.

These are plain loops over the columns of the active jobs; their cost grows with the active jobs only.
"""

import numpy as np

from rota.core.columns import (
    BEGIN,
    COMPUTE_S,
    EXECUTED_S,
    GIVEN,
    GPUS,
    JOB,
    KIND,
    KINDS,
    LOAD_S,
    PACE_S,
    PLACE,
    REMAINING,
    ROW,
    STALL_S,
    STARTUP_S,
    SYNC_S,
    UNIT,
    UNSAVED,
    UNSAVED_S,
    UP,
    WANTED,
)
from rota.core.compiled import kernel
from rota.core.timeline import EventKind

ARRIVED = int(EventKind.ARRIVED)
FINISHED = int(EventKind.FINISHED)
MOVED = int(EventKind.MOVED)
PACED = int(EventKind.PACED)
PAUSED = int(EventKind.PAUSED)
STARTED = int(EventKind.STARTED)

KEEP, START, MOVE = 0, 1, 2
NOT_ACTIVE, PLANNED_TWICE, WRONG_GANG, BAD_SLOT, OVERBOOKED, WRONG_KIND = -1, -2, -3, -4, -5, -6
BAD_PACE = -7


@kernel
def has_stages(columns, row):
    """Return whether the stages of a job are known; if not, it cannot share slots."""
    return columns[LOAD_S, row] > 0.0 or columns[COMPUTE_S, row] > 0.0 or columns[SYNC_S, row] > 0.0


@kernel
def advance(columns, index, jobs, from_s, to_s, checkpoint_every_s):
    """Advance the running jobs: first through the rest of their start-up, then by their step time."""
    elapsed_s = to_s - from_s
    for k in range(jobs):
        row = index[ROW, k]
        if columns[PLACE, row] != k:
            continue  # its node was lost
        # Added in this order, because the reference's Tiresias depends on the last bit.
        columns[EXECUTED_S, row] = columns[EXECUTED_S, row] + to_s - from_s
        stall_s = columns[STALL_S, row]
        productive_s = max(elapsed_s - stall_s, 0.0)
        columns[STALL_S, row] = max(stall_s - elapsed_s, 0.0)
        progress = productive_s / columns[PACE_S, row]
        columns[REMAINING, row] -= progress
        if checkpoint_every_s > 0.0:
            since_s = columns[UNSAVED_S, row] + productive_s
            if since_s >= checkpoint_every_s:
                since_s = since_s % checkpoint_every_s
                columns[UNSAVED, row] = since_s / columns[PACE_S, row]
            else:
                columns[UNSAVED, row] += progress
            columns[UNSAVED_S, row] = since_s


@kernel
def turn_over(columns, order, active, free, finished, ends, table, first_job, arrivals, at_s, events, count):
    """Remove finished jobs and add those that arrived; return the number of active jobs."""
    for i in range(ends):
        row = finished[i]
        events[count].at_s = at_s
        events[count].kind = FINISHED
        events[count].job = int(columns[JOB, row])
        count += 1
        columns[JOB, row] = -1.0
        columns[PLACE, row] = -1.0
    if ends > 0:
        kept = 0
        for i in range(active):
            row = order[i]
            if columns[JOB, row] >= 0.0:
                order[kept] = row
                kept += 1
        for i in range(ends):
            free[order.shape[0] - active + i] = finished[i]
        active = kept
    for i in range(arrivals):
        job = first_job + i
        row = free[order.shape[0] - active - 1]
        for field in range(GIVEN):
            columns[field, row] = table[field, job]
        for field in range(GIVEN, columns.shape[0]):
            columns[field, row] = 0.0
        columns[PLACE, row] = -1.0
        columns[WANTED, row] = -1.0
        order[active] = row
        active += 1
        events[count].at_s = at_s
        events[count].kind = ARRIVED
        events[count].job = job
        count += 1
    return active


@kernel
def compare(
    columns,
    old_index,
    old_slots,
    old_jobs,
    index,
    slots,
    pace_s,
    jobs,
    nodes,
    slot_node,
    sharing,
    load,
    actions,
    paused,
):
    """Check a plan and find what it changes: an action per planned job, and the rows to preempt.

    Returns the number of rows to preempt, or a negative code if the plan is illegal. Does not change what
    runs.
    """
    count, seen = load[0], load[1]
    load[:] = 0
    for k in range(jobs):
        row = index[ROW, k]
        if row < 0 or row >= columns.shape[1] or columns[JOB, row] < 0.0:
            return NOT_ACTIVE
        wanted = int(columns[WANTED, row])
        if 0 <= wanted < k and index[ROW, wanted] == row:
            return PLANNED_TWICE
        columns[WANTED, row] = k
        if not 0.0 < pace_s[k] < np.inf:
            return BAD_PACE
        unit = index[UNIT, k]
        if unit < 0 or unit >= index.shape[1] - 1:
            return WRONG_GANG
        begin = index[BEGIN, unit]
        gpus = index[BEGIN, unit + 1] - begin
        if gpus != int(columns[GPUS, row]) or begin < 0 or begin + gpus > slots.shape[0]:
            return WRONG_GANG
        place = int(columns[PLACE, row])
        actions[k] = START if place < 0 else KEEP
        if place >= 0:
            before = old_index[BEGIN, old_index[UNIT, place]]
            for i in range(gpus):
                if old_slots[before + i] != slots[begin + i]:
                    actions[k] = MOVE
        if actions[k] != KEEP:
            for i in range(begin, begin + gpus):
                if slots[i] < 0 or slots[i] >= load.shape[1] or nodes[UP, slot_node[slots[i]]] == 0:
                    return BAD_SLOT
                kinds = columns[KINDS, row]
                if kinds >= 0.0 and (int(kinds) >> nodes[KIND, slot_node[slots[i]]]) & 1 == 0:
                    return WRONG_KIND
                if seen[slots[i]] == k + 1:
                    return WRONG_GANG  # a slot may be named once
                seen[slots[i]] = k + 1
        for i in range(begin, begin + gpus):
            count[slots[i]] += 1
            if count[slots[i]] > sharing:
                return OVERBOOKED
    pauses = 0
    for k in range(old_jobs):
        row = old_index[ROW, k]
        if columns[PLACE, row] != k:
            continue
        wanted = int(columns[WANTED, row])
        if wanted < 0 or wanted >= jobs or index[ROW, wanted] != row:
            paused[pauses] = row
            pauses += 1
    return pauses


@kernel
def names_each_once(order, columns):
    """Return whether an order consists of different rows of active jobs."""
    seen = np.zeros(columns.shape[1], np.bool_)
    for i in range(order.shape[0]):
        row = order[i]
        if row < 0 or row >= columns.shape[1] or columns[JOB, row] < 0.0 or seen[row]:
            return False
        seen[row] = True
    return True


@kernel
def make_so(
    columns,
    index,
    slots,
    pace_s,
    jobs,
    actions,
    paused,
    pauses,
    at_s,
    each_instant,
    events,
    count,
    arena,
    used,
):
    """Put a checked plan into effect and record it; return the number of events and slots recorded so far."""
    for i in range(pauses):
        row = paused[i]
        stop(columns, row)
        events[count].at_s = at_s
        events[count].kind = PAUSED
        events[count].job = int(columns[JOB, row])
        events[count].value = columns[REMAINING, row]
        count += 1
    for k in range(jobs):
        row = index[ROW, k]
        action = actions[k]
        if action != KEEP:
            stop(columns, row)
            unit = index[UNIT, k]
            begin = index[BEGIN, unit]
            gpus = index[BEGIN, unit + 1] - begin
            columns[STALL_S, row] = columns[STARTUP_S, row]
            events[count].kind = STARTED if action == START else MOVED
            events[count].begin = used
            events[count].gpus = gpus
            for i in range(gpus):
                arena[used + i] = slots[begin + i]
            used += gpus
        elif columns[PACE_S, row] != pace_s[k]:
            events[count].kind = PACED
        else:
            columns[PLACE, row] = k
            continue
        events[count].at_s = at_s
        events[count].job = int(columns[JOB, row])
        events[count].value = pace_s[k]
        count += 1
        columns[PACE_S, row] = pace_s[k]
        columns[PLACE, row] = k
    if each_instant:
        charge(columns, index, jobs)
    return count, used


@kernel
def stop(columns, row):
    """Take a job off its slots; progress since its last checkpoint is lost."""
    columns[PLACE, row] = -1.0
    columns[REMAINING, row] += columns[UNSAVED, row]
    columns[UNSAVED, row] = 0.0
    columns[UNSAVED_S, row] = 0.0


@kernel
def charge(columns, index, jobs):
    """Charge every running job the start-up of its whole unit again."""
    k = 0
    while k < jobs:
        unit = index[UNIT, k]
        total_s = 0.0
        end = k
        while end < jobs and index[UNIT, end] == unit:
            total_s += columns[STARTUP_S, index[ROW, end]]
            end += 1
        for member in range(k, end):
            columns[STALL_S, index[ROW, member]] = total_s
        k = end


@kernel
def sort_by(order, key, out):
    """Sort rows by key into `out`, stably; fast if they are nearly sorted, as they usually are."""
    n = order.shape[0]
    keys = np.empty(n)
    shifts = 0
    for i in range(n):
        row = order[i]
        value = key[row]
        at = i
        while at > 0 and keys[at - 1] > value:
            keys[at] = keys[at - 1]
            out[at] = out[at - 1]
            at -= 1
        keys[at] = value
        out[at] = row
        shifts += i - at
        if shifts > 16 * n + 64:
            break
    if shifts > 16 * n + 64:
        for i in range(n):
            keys[i] = key[order[i]]
        ranks = np.argsort(keys, kind="mergesort")
        for i in range(n):
            out[i] = order[ranks[i]]
