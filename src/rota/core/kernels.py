"""Compiled steps of an engine: progress, ends and arrivals, and what a plan changes.

These are plain loops over the columns of the active jobs; their cost grows with the active jobs only.
"""

import numpy as np

from rota.core.columns import (
    BEGIN,
    COMPUTE_S,
    END_S,
    EXECUTED_S,
    EXECUTED_THEN_S,
    GIVEN,
    GPUS,
    JOB,
    KIND,
    KINDS,
    LOAD_S,
    PACE_S,
    PLACE,
    REMAINING,
    REMAINING_THEN,
    ROW,
    SINCE_S,
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
ROLLED_BACK = int(EventKind.ROLLED_BACK)
RESIZED = int(EventKind.RESIZED)
STARTED = int(EventKind.STARTED)

KEEP, START, MOVE, RESIZE = 0, 1, 2, 3
NOT_ACTIVE, PLANNED_TWICE, WRONG_GANG, BAD_SLOT, OVERBOOKED, WRONG_KIND = -1, -2, -3, -4, -5, -6
BAD_PACE = -7
ILLEGAL = {
    NOT_ACTIVE: "the plan names a job that is not active",
    PLANNED_TWICE: "the plan names a job twice",
    WRONG_GANG: "the plan gives a job more or fewer slots than it needs",
    BAD_SLOT: "the plan names a slot that is not available",
    WRONG_KIND: "the plan puts a job on a device kind that it may not use",
    OVERBOOKED: "the plan puts more jobs on a slot than may share it",
    BAD_PACE: "the plan gives a job a step time that is not a finite number of seconds above 0",
}


@kernel
def has_stages(columns, row):
    """Return whether the stages of a job are known; if not, it cannot share slots."""
    return columns[LOAD_S, row] > 0.0 or columns[COMPUTE_S, row] > 0.0 or columns[SYNC_S, row] > 0.0


@kernel
def refresh(columns, row, now_s):
    """Write what a running job has left and how long it has run, as of now.

    It is computed from the account as it was last closed, so it does not matter how often this is called.
    """
    since_s = columns[SINCE_S, row]
    if now_s > since_s:
        productive_s = max(now_s - since_s - columns[STALL_S, row], 0.0)
        columns[EXECUTED_S, row] = columns[EXECUTED_THEN_S, row] + now_s - since_s
        columns[REMAINING, row] = columns[REMAINING_THEN, row] - productive_s / columns[PACE_S, row]


@kernel
def close_account(columns, row, now_s, checkpoint_every_s):
    """Advance a running job until now: first through the rest of its start-up, then by its step time."""
    since_s = columns[SINCE_S, row]
    elapsed_s = now_s - since_s
    stall_s = columns[STALL_S, row]
    productive_s = max(elapsed_s - stall_s, 0.0)
    iterations = productive_s / columns[PACE_S, row]
    # Added in this order, because the reference's Tiresias depends on the last bit.
    columns[EXECUTED_S, row] = columns[EXECUTED_THEN_S, row] + now_s - since_s
    columns[REMAINING, row] = columns[REMAINING_THEN, row] - iterations
    columns[STALL_S, row] = max(stall_s - elapsed_s, 0.0)
    if checkpoint_every_s > 0.0:
        unsaved_s = columns[UNSAVED_S, row] + productive_s
        if unsaved_s >= checkpoint_every_s:
            unsaved_s = unsaved_s % checkpoint_every_s
            columns[UNSAVED, row] = unsaved_s / columns[PACE_S, row]
        else:
            columns[UNSAVED, row] += iterations
        columns[UNSAVED_S, row] = unsaved_s
    open_account(columns, row, now_s)


@kernel
def open_account(columns, row, now_s):
    """Count the progress of a running job from now on."""
    columns[SINCE_S, row] = now_s
    columns[REMAINING_THEN, row] = columns[REMAINING, row]
    columns[EXECUTED_THEN_S, row] = columns[EXECUTED_S, row]


@kernel
def write(events, count, at_s, kind, job, value, begin, gpus):
    """Write an event, all of it; return the number of events."""
    event = events[count]
    event.at_s = at_s
    event.kind = kind
    event.job = job
    event.value = value
    event.begin = begin
    event.gpus = gpus
    return count + 1


@kernel
def roll_back(columns, row, events, count, at_s):
    """Write what a job that is about to lose its slots will do again; return the number of events."""
    lost = columns[UNSAVED, row]
    if lost > 0.0:
        count = write(events, count, at_s, ROLLED_BACK, int(columns[JOB, row]), lost, 0, 0)
    return count


@kernel
def remove(columns, order, listed, active, free, finished, ends, at_s, events, count):
    """Remove finished jobs from the table and from list order; return the number of events."""
    for i in range(ends):
        row = finished[i]
        count = write(events, count, at_s, FINISHED, int(columns[JOB, row]), 0.0, 0, 0)
        columns[JOB, row] = -1.0
        columns[PLACE, row] = -1.0
        free[order.shape[0] - active + i] = row
    kept = 0
    if ends == 1:
        while order[kept] != finished[0]:
            kept += 1
        for i in range(kept, listed - 1):
            order[i] = order[i + 1]
    elif ends > 1:
        for i in range(listed):
            if columns[JOB, order[i]] >= 0.0:
                order[kept] = order[i]
                kept += 1
    return count


@kernel
def add(columns, order, listed, active, free, table, first_job, arrivals, at_s, events, count):
    """Add jobs that arrived, at the end of list order; return the number of events."""
    for i in range(arrivals):
        job = first_job + i
        row = free[order.shape[0] - active - 1]
        for field in range(GIVEN):
            columns[field, row] = table[field, job]
        for field in range(GIVEN, columns.shape[0]):
            columns[field, row] = 0.0
        columns[PLACE, row] = -1.0
        columns[WANTED, row] = -1.0
        order[listed + i] = row
        active += 1
        count = write(events, count, at_s, ARRIVED, job, 0.0, 0, 0)
    return count


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
    sized,
    load,
    actions,
    paused,
):
    """Check a plan and find what it changes: an action per planned job, and the rows to preempt.

    With `sized`, gangs may have other sizes than their jobs ask for.

    Returns the number of rows to preempt, or a negative code if the plan is illegal, and the number of busy
    slots. Does not change what runs.
    """
    busy = 0
    count, seen = load[0], load[1]
    load[:] = 0
    for k in range(jobs):
        row = index[ROW, k]
        if row < 0 or row >= columns.shape[1] or columns[JOB, row] < 0.0:
            return NOT_ACTIVE, 0
        wanted = int(columns[WANTED, row])
        if 0 <= wanted < k and index[ROW, wanted] == row:
            return PLANNED_TWICE, 0
        columns[WANTED, row] = k
        if not 0.0 < pace_s[k] < np.inf:
            return BAD_PACE, 0
        unit = index[UNIT, k]
        if unit < 0 or unit >= index.shape[1] - 1:
            return WRONG_GANG, 0
        begin = index[BEGIN, unit]
        gpus = index[BEGIN, unit + 1] - begin
        wrong = gpus != int(columns[GPUS, row]) and not sized
        if wrong or gpus < 1 or begin < 0 or begin + gpus > slots.shape[0]:
            return WRONG_GANG, 0
        place = int(columns[PLACE, row])
        actions[k] = START if place < 0 else KEEP
        if place >= 0:
            before = old_index[BEGIN, old_index[UNIT, place]]
            if old_index[BEGIN, old_index[UNIT, place] + 1] - before != gpus:
                actions[k] = RESIZE
            else:
                for i in range(gpus):
                    if old_slots[before + i] != slots[begin + i]:
                        actions[k] = MOVE
        if actions[k] != KEEP:
            for i in range(begin, begin + gpus):
                if slots[i] < 0 or slots[i] >= load.shape[1] or nodes[UP, slot_node[slots[i]]] == 0:
                    return BAD_SLOT, 0
                kinds = columns[KINDS, row]
                if kinds >= 0.0 and (int(kinds) >> nodes[KIND, slot_node[slots[i]]]) & 1 == 0:
                    return WRONG_KIND, 0
                if seen[slots[i]] == k + 1:
                    return WRONG_GANG, 0  # a slot may be named once
                seen[slots[i]] = k + 1
        for i in range(begin, begin + gpus):
            busy += count[slots[i]] == 0
            count[slots[i]] += 1
            if count[slots[i]] > sharing:
                return OVERBOOKED, 0
    return find_preempted(columns, old_index, old_jobs, index, jobs, paused), busy


@kernel
def take_over(columns, old_index, old_jobs, index, jobs, kept, actions, paused):
    """Do what `compare` does for a plan that placement has just made, which knows what stays."""
    for k in range(jobs):
        row = index[ROW, k]
        columns[WANTED, row] = k
        if columns[PLACE, row] < 0.0:
            actions[k] = START
        else:
            actions[k] = KEEP if kept[k] else MOVE
    return find_preempted(columns, old_index, old_jobs, index, jobs, paused)


@kernel
def find_preempted(columns, old_index, old_jobs, index, jobs, paused):
    """Write the rows of the running jobs that a plan does not name to `paused`; return how many."""
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
def apply(
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
    checkpoint_every_s,
    saves,
    events,
    count,
    arena,
    used,
):
    """Put a checked plan into effect and record it; return the number of events and slots recorded so far.

    With `saves`, jobs are saved before they lose their slots.
    """
    for i in range(pauses):
        row = paused[i]
        count = leave(columns, row, checkpoint_every_s, saves, events, count, at_s)
        count = write(events, count, at_s, PAUSED, int(columns[JOB, row]), columns[REMAINING, row], 0, 0)
    for k in range(jobs):
        row = index[ROW, k]
        action = actions[k]
        columns[PLACE, row] = k
        if action == KEEP and columns[PACE_S, row] == pace_s[k]:
            continue
        if action == KEEP:
            catch_up(columns, row, at_s, checkpoint_every_s)
            count = write(events, count, at_s, PACED, int(columns[JOB, row]), pace_s[k], 0, 0)
        else:
            if action != START:
                count = leave(columns, row, checkpoint_every_s, saves, events, count, at_s)
                columns[PLACE, row] = k
            unit = index[UNIT, k]
            begin = index[BEGIN, unit]
            gpus = index[BEGIN, unit + 1] - begin
            columns[STALL_S, row] = columns[STARTUP_S, row]
            open_account(columns, row, at_s)
            kind = STARTED if action == START else RESIZED if action == RESIZE else MOVED
            count = write(events, count, at_s, kind, int(columns[JOB, row]), pace_s[k], used, gpus)
            for i in range(gpus):
                arena[used + i] = slots[begin + i]
            used += gpus
        columns[PACE_S, row] = pace_s[k]
        columns[END_S, row] = at_s + (columns[STALL_S, row] + max(columns[REMAINING, row], 0.0) * pace_s[k])
    if each_instant:
        charge(columns, index, jobs)
    return count, used


@kernel
def catch_up(columns, row, now_s, checkpoint_every_s):
    """Close the account of a running job, unless that was done now."""
    if columns[SINCE_S, row] < now_s:
        close_account(columns, row, now_s, checkpoint_every_s)


@kernel
def leave(columns, row, checkpoint_every_s, saves, events, count, at_s):
    """Take a job off its slots by plan, after saving it with `saves`; return the number of events."""
    catch_up(columns, row, at_s, checkpoint_every_s)
    if saves:
        columns[UNSAVED, row] = 0.0
    count = roll_back(columns, row, events, count, at_s)
    stop(columns, row)
    return count


@kernel
def stop(columns, row):
    """Take a job, whose account is closed, off its slots; progress since its last checkpoint is lost."""
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
