"""What changes a population, compiled: events, and decisions about trials and slots.

All functions here take the record of an engine (`rota.core.population.memory`).
"""

import numpy as np

from rota.core.compiled import carray, kernel
from rota.core.memory import pointer
from rota.core.population.memory import (
    ASSIGNED_EVENT,
    AT,
    BUDGET,
    CHECKPOINT,
    CURRENT,
    DUE,
    END_S,
    ENDS_S,
    FAILURES,
    FIRST,
    FIRST_S,
    FRESH,
    GIVEN,
    GREW,
    IDLE,
    INTERVAL,
    KIND,
    MARK,
    MEASURED,
    NEXT,
    NODE,
    OFF,
    OVER,
    PART_STEPS,
    QUEUE,
    REPORTED_EVENT,
    RETIRED,
    REVIEWS,
    SINCE,
    SLOT_RETIRED,
    STATUS,
    STEPS,
    STOPPED_EVENT,
    TRAINED_S,
    TRIAL,
    TRIAL_FINISHED,
    TRIAL_S,
    UNREPORTED,
    UP,
    WAITS_S,
    by_kind,
    events_of,
    flags_of,
    metric_of,
    parts_of,
    seconds_of,
    slots_of,
    step_s_of,
    trials_of,
)
from rota.core.population.outcomes import ALONG_TREES
from rota.core.population.step_times import observe
from rota.core.population.trees import start_over
from rota.core.population.view import ASSIGNED, FINISHED, REPORTED, STOPPED, WAITING


@kernel
def write(p, kind, slot, trial, steps, more):
    """Write an event."""
    event = events_of(p)[p.count]
    event.at_s = p.now_s
    event.kind, event.slot, event.trial, event.steps, event.more = kind, slot, trial, steps, more
    p.count += 1


@kernel
def remove(items, count, item):
    """Remove an item from a list if it is there; return how many are left."""
    for at in range(count):
        if items[at] == item:
            for i in range(at + 1, count):
                items[i - 1] = items[i]
            return count - 1
    return count


# ── events ──────────────────────────────────────────────────────────────────────────────────────────────────


@kernel
def report(p, slot, trial, steps, began_s, ended_s, moved_s, metric, ended):
    """Take in the report of an interval."""
    write(p, REPORTED_EVENT, slot, trial, steps, ended)
    event = events_of(p)[p.count - 1]
    event.began_s, event.ended_s, event.moved_s, event.metric = began_s, ended_s, moved_s, metric
    trials, slots, seconds = trials_of(p), slots_of(p), seconds_of(p)
    training_s = ended_s - began_s - moved_s
    if steps != 0:  # else it had already ended
        measured = carray(pointer(p.measured), (p.n_slots, p.n_kinds), np.int64)
        observe(
            step_s_of(p), by_kind(p, p.expected_s), by_kind(p, p.spread), measured, seconds[OFF], slot,
            trials[KIND, trial], training_s / steps,
        )  # fmt: skip
    seconds[TRAINED_S, slot] += training_s
    total = trials[STEPS, trial] + steps
    trials[STEPS, trial] = total
    trials[GIVEN, trial] -= steps
    trials[GREW, trial] = 0
    trials[FRESH, trial] += steps
    metric_of(p)[trial] = metric
    trials[CHECKPOINT, trial] = slots[NODE, slot]
    p.leader = max(p.leader, total)
    if not metric <= p.best and not np.isnan(metric):
        p.best = metric
    if total >= trials[BUDGET, trial] or metric >= p.target or ended:
        close(p, trial, FINISHED)
        write(p, TRIAL_FINISHED, -1, trial, 0, 0)
    else:
        trials[STATUS, trial] = REPORTED
        due = trials[REVIEWS]
        for at in range(p.to_review):
            if due[at] == trial:
                return
        due[p.to_review] = trial
        p.to_review += 1


@kernel
def empty(p, slot):
    """Take in that a slot has completed its assignment."""
    slots, seconds = slots_of(p), seconds_of(p)
    training_s = seconds[TRAINED_S, slot]
    count = drop(p, slot)
    if training_s != 0.0:  # else everything failed, which says nothing about the slot
        if seconds[FIRST_S, slot] == np.inf:
            slots[MEASURED, p.n_measured] = slot
            p.n_measured += 1
            seconds[FIRST_S, slot] = training_s
        seconds[TRIAL_S, slot] = training_s / count
    seconds[ENDS_S, slot] = p.now_s
    p.freed += 1
    if flags_of(p)[RETIRED, slot]:
        write(p, SLOT_RETIRED, slot, -1, 0, 0)
    else:
        add_idle(p, slot)


@kernel
def add_idle(p, slot):
    """Append a slot to the idle ones."""
    slots_of(p)[IDLE, p.idle] = slot
    p.idle += 1


@kernel
def drop(p, slot):
    """Delete the assignment of a slot; return how many trials it had."""
    trials, slots, seconds, parts = trials_of(p), slots_of(p), seconds_of(p), parts_of(p)
    p.stamp += 1
    count, part = 0, slots[FIRST, slot]
    while part >= 0:
        if trials[MARK, parts[TRIAL, part]] != p.stamp:
            trials[MARK, parts[TRIAL, part]] = p.stamp
            count += 1
        after = parts[NEXT, part]
        parts[NEXT, part] = p.free_part
        p.free_part = part
        p.parts_used -= 1
        part = after
    slots[FIRST, slot] = slots[UNREPORTED, slot] = slots[CURRENT, slot] = -1
    slots[SINCE, slot] = 0
    seconds[TRAINED_S, slot] = 0.0
    seconds[END_S, slot] = np.inf
    p.due = remove(slots[DUE], p.due, slot)
    return count


@kernel
def fail(p, trial):
    """Queue or stop a failed trial; the rest of its assignment goes on without it."""
    trials = trials_of(p)
    trials[FAILURES, trial] += 1
    trials[GIVEN, trial] = 0
    if trials[FAILURES, trial] < p.attempts:
        queue(p, trial)
    else:
        close(p, trial, STOPPED)
        write(p, STOPPED_EVENT, -1, trial, 0, 0)


@kernel
def lose(p, node):
    """Take a node away; the assignments of its slots are lost."""
    slots, flags, seconds = slots_of(p), flags_of(p), seconds_of(p)
    p.slots_version += 1
    for slot in range(p.n_slots):
        if slots[NODE, slot] == node:
            flags[UP, slot] = False
            p.idle = remove(slots[IDLE], p.idle, slot)
            seconds[ENDS_S, slot] = p.now_s
            if slots[SINCE, slot]:
                lose_assignment(p, slot)
    unretire(p)


@kernel
def lose_assignment(p, slot):
    """Queue the trials of a lost assignment, with what they had reported."""
    trials, parts = trials_of(p), parts_of(p)
    part = slots_of(p)[FIRST, slot]
    while part >= 0:
        trial = parts[TRIAL, part]
        if trials[AT, trial] == slot:
            trials[GIVEN, trial] = 0
            if trials[STATUS, trial] == ASSIGNED:
                queue(p, trial)
        part = parts[NEXT, part]
    drop(p, slot)
    if flags_of(p)[RETIRED, slot]:
        write(p, SLOT_RETIRED, slot, -1, 0, 0)


@kernel
def unretire(p):
    """Reactivate retired slots if no other slot is left."""
    flags = flags_of(p)
    if (flags[UP] & ~flags[RETIRED]).any():
        return
    for slot in range(p.n_slots):
        if flags[UP, slot] and flags[RETIRED, slot]:
            flags[RETIRED, slot] = False
            if not slots_of(p)[SINCE, slot]:
                add_idle(p, slot)
                p.freed += 1


@kernel
def join(p, node):
    """Add a node."""
    slots, flags = slots_of(p), flags_of(p)
    p.slots_version += 1
    for slot in range(p.n_slots):
        if slots[NODE, slot] == node and not flags[UP, slot]:
            flags[UP, slot] = True
            if not flags[RETIRED, slot]:
                add_idle(p, slot)
                p.freed += 1
    unretire(p)


# ── trials ──────────────────────────────────────────────────────────────────────────────────────────────────


@kernel
def close(p, trial, status):
    """Finish or stop a trial."""
    trials = trials_of(p)
    trials[GIVEN, trial] = 0
    trials[STATUS, trial] = status
    trials[AT, trial] = -1
    p.left -= 1
    p.to_review = remove(trials[REVIEWS], p.to_review, trial)


@kernel
def queue(p, trial):
    """Queue a trial: after those with at most as many steps, or last."""
    trials = trials_of(p)
    trials[STATUS, trial] = WAITING
    trials[AT, trial] = -1
    waiting, steps, at = trials[QUEUE], trials[STEPS], p.waiting
    if p.least_advanced_first:
        low, high = 0, p.waiting
        while low < high:
            middle = (low + high) // 2
            if steps[waiting[middle]] <= steps[trial]:
                low = middle + 1
            else:
                high = middle
        at = low
    for i in range(p.waiting, at, -1):
        waiting[i] = waiting[i - 1]
    waiting[at] = trial
    p.waiting += 1


@kernel
def go_on(p, trial, reviewed):
    """Continue a trial that reported; it must be due for review."""
    trials = trials_of(p)
    p.to_review = remove(trials[REVIEWS], p.to_review, trial)
    if reviewed:
        trials[FRESH, trial] = 0
    if trials[GIVEN, trial]:
        trials[STATUS, trial] = ASSIGNED
    else:
        queue(p, trial)


@kernel
def stop(p, trial):
    """Stop a trial for good."""
    close(p, trial, STOPPED)
    write(p, STOPPED_EVENT, -1, trial, 0, 0)


@kernel
def retire(p, slot):
    """Retire a slot; it is noted once the slot has no assignment."""
    slots = slots_of(p)
    p.slots_version += 1
    flags_of(p)[RETIRED, slot] = True
    p.idle = remove(slots[IDLE], p.idle, slot)
    if not slots[SINCE, slot]:
        write(p, SLOT_RETIRED, slot, -1, 0, 0)


@kernel
def move_s(p, trial, slot):
    """Return the seconds to transfer a trial's checkpoint to a slot."""
    if p.moves_are_free:
        return 0.0
    trials = trials_of(p)
    here, there = trials[CHECKPOINT, trial], slots_of(p)[NODE, slot]
    if here == -1 or here == there:
        return 0.0
    switches = carray(pointer(p.switches), p.n_nodes, np.int64)
    sizes_mb = carray(pointer(p.sizes_mb), p.n_kinds, np.float64)
    bandwidth = p.bandwidth_mb_s
    if switches[here] != switches[there] and p.cross_switch_mb_s != 0.0:
        bandwidth = p.cross_switch_mb_s
    return p.latency_s + sizes_mb[trials[KIND, trial]] / bandwidth


# ── assignments ─────────────────────────────────────────────────────────────────────────────────────────────


@kernel
def begin_assignment(p, slot):
    """Begin an empty assignment of an idle slot."""
    slots, seconds = slots_of(p), seconds_of(p)
    p.idle = remove(slots[IDLE], p.idle, slot)
    p.assignments += 1
    slots[SINCE, slot] = p.assignments
    seconds[ENDS_S, slot] = p.now_s + p.dispatch_s
    seconds[WAITS_S, slot] = p.dispatch_s
    slots[DUE, p.due] = slot
    p.due += 1


@kernel
def append(p, slot, last, trial, steps):
    """Append an interval to an assignment whose last one is given; return the new last one."""
    trials, slots, seconds, parts = trials_of(p), slots_of(p), seconds_of(p), parts_of(p)
    ends_s = seconds[ENDS_S, slot]
    if trials[STATUS, trial] == WAITING:
        trials[STATUS, trial] = ASSIGNED
        trials[AT, trial] = slot
        p.waiting = remove(trials[QUEUE], p.waiting, trial)
        ends_s += move_s(p, trial, slot)
        if p.outcome == ALONG_TREES:
            start_over(p, trial)
    trials[GIVEN, trial] += steps
    seconds[ENDS_S, slot] = ends_s + steps * step_s_of(p)[slot, trials[KIND, trial]]
    part = p.free_part
    p.free_part = parts[NEXT, part]
    p.parts_used += 1
    parts[TRIAL, part], parts[PART_STEPS, part], parts[NEXT, part], parts[OVER, part] = trial, steps, -1, 0
    if last < 0:
        slots[FIRST, slot] = slots[UNREPORTED, slot] = slots[CURRENT, slot] = part
    else:
        parts[NEXT, last] = part
    p.decisions += 1
    return part


@kernel
def end_assignment(p, slot):
    """Write that a slot was given its assignment."""
    trials, parts = trials_of(p), parts_of(p)
    p.stamp += 1
    count, steps, part = 0, 0, slots_of(p)[FIRST, slot]
    while part >= 0:
        trial = parts[TRIAL, part]
        if trials[MARK, trial] != p.stamp:
            trials[MARK, trial] = p.stamp
            count += 1
        steps += parts[PART_STEPS, part]
        part = parts[NEXT, part]
    write(p, ASSIGNED_EVENT, slot, count, steps, 0)


@kernel
def assign(p, slot, start, count, steps):
    """Assign the next interval of each of the first `count` trials in the queue, from `start` on.

    If `count` is 0, assign so many steps instead: all that is left of one trial after the other, from `start`
    to the end of the queue, then from there towards its head.
    """
    trials = trials_of(p)
    waiting, last = trials[QUEUE], -1
    begin_assignment(p, slot)
    by_steps = count == 0
    while p.waiting > 0 and (steps > 0 if by_steps else count > 0):
        trial = waiting[min(start, p.waiting - 1)]
        mine = trials[BUDGET, trial] - trials[STEPS, trial] - trials[GIVEN, trial]
        interval = trials[INTERVAL, trial]
        if by_steps:
            wanted = steps if p.outcome != ALONG_TREES else -(-steps // interval) * interval
            mine = min(mine, wanted)
            steps -= mine
        else:
            mine = min(mine, interval)
            count -= 1
        while mine > 0:
            length = min(interval, mine)
            last = append(p, slot, last, trial, length)
            mine -= length
    end_assignment(p, slot)


@kernel
def most_parts(p):
    """Return an upper bound of the number of intervals of a proposed assignment."""
    if p.chosen_trials > 0:
        return min(p.chosen_trials, p.waiting)
    return p.waiting + p.chosen_steps // p.shortest + 1
