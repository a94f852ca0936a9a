"""Queues of waiting jobs, one per gang size, for policies whose waiting jobs keep their order.

A job that waits is in the queue of the jobs that need the same: as many slots, of the same device kinds, in
the same order of preference. The list order of an engine has the other jobs only: those that run, and those
that have just arrived or stopped. So an event costs what runs and what changes, however many jobs wait: a
job is looked at only if those before it leave enough slots.

Jobs are ordered by key, those with equal keys by `seqs`. It says what a stable sort of all jobs would leave:
a job whose key has fallen comes behind those that have this key already, one whose key has risen before them,
and one that arrives behind all.
"""

# mypy: allow-untyped-decorators, allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.columns import GPUS, KINDS, PLACE, PREFERENCE, ROW
from rota.core.compiled import carray, kernel
from rota.core.memory import all_rows, columns_of, floats, index_of, ints, plan_at, pointer

# Rows of the facts about queues.
HEAD, COUNT, PULLED, OPEN, NEEDS, PREFERS = range(6)
FACTS = 6

ALL_SLOTS = 2**30  # more than there are


@kernel
def facts_of(e):
    """Return the facts about the queues."""
    return carray(pointer(e.queue_facts), (FACTS, e.queue_count), np.int32)


@kernel
def queues_of(e):
    """Return the queues: rows of jobs, in rings."""
    return carray(pointer(e.queues), (e.queue_count, e.queue_room), np.int32)


@kernel
def seqs_of(e):
    """Return the order of jobs with equal keys."""
    return carray(pointer(e.seqs), e.capacity, np.int64)


def lay_out(table: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Return the facts about empty queues for the jobs of a workload, and the device kinds of each queue."""
    needs = np.zeros((3, 32))
    while (count := find_classes(table, needs)) < 0:
        needs = np.zeros((3, 2 * needs.shape[1]))
    facts = np.zeros((FACTS, count), np.int32)
    facts[NEEDS], facts[PREFERS] = needs[0, :count], needs[2, :count]
    return facts, needs[1, :count].copy()


@kernel
def find_classes(table, found):
    """Find what different jobs need: gang size, kinds and preference; return how many, -1 if too many."""
    count = 0
    for job in range(table.shape[1]):
        known = 0
        while known < count and not (
            found[0, known] == table[GPUS, job]
            and found[1, known] == table[KINDS, job]
            and found[2, known] == table[PREFERENCE, job]
        ):
            known += 1
        if known == count:
            if count == found.shape[1]:
                return -1
            found[0, count], found[1, count] = table[GPUS, job], table[KINDS, job]
            found[2, count] = table[PREFERENCE, job]
            count += 1
    return count


@kernel
def queue_of(e, columns, row):
    """Return the number of a job's queue."""
    facts, kinds = facts_of(e), floats(e.queue_kinds, e.queue_count)
    gpus, prefers = int(columns[GPUS, row]), int(columns[PREFERENCE, row])
    for q in range(e.queue_count):
        if facts[NEEDS, q] == gpus and facts[PREFERS, q] == prefers and kinds[q] == columns[KINDS, row]:
            return q
    return -1


@kernel
def is_before(keys, seqs, one, other):
    """Return whether a job comes before another."""
    return keys[one] < keys[other] or (keys[one] == keys[other] and seqs[one] < seqs[other])


@kernel
def push(e, row):
    """Put a waiting job into its queue, by moving the shorter part of it."""
    facts, keys, seqs = facts_of(e), floats(e.keys, e.capacity), seqs_of(e)
    q = queue_of(e, columns_of(e), row)
    queue, last = queues_of(e)[q], e.queue_room - 1  # the size of a ring is a power of two
    head, count = facts[HEAD, q], facts[COUNT, q]
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if is_before(keys, seqs, queue[(head + middle) & last], row):
            low = middle + 1
        else:
            high = middle
    if 2 * low < count:
        head = (head - 1) & last
        facts[HEAD, q] = head
        for i in range(low):
            queue[(head + i) & last] = queue[(head + i + 1) & last]
    else:
        for i in range(count, low, -1):
            queue[(head + i) & last] = queue[(head + i - 1) & last]
    queue[(head + low) & last] = row
    facts[COUNT, q] = count + 1
    e.queued += 1


@kernel
def rewind(e):
    """Begin a pass over list order and queues with `next_row`."""
    e.at = 0
    e.first_queue = -1
    if e.queued > 0:
        facts = facts_of(e)
        for q in range(e.queue_count):
            facts[PULLED, q] = 0
            facts[OPEN, q] = facts[COUNT, q] > 0
        choose(e, ALL_SLOTS)


@kernel
def choose(e, left):
    """Find the queue that has the first job among those with jobs that may fit on so many slots."""
    facts, keys, seqs, queues = facts_of(e), floats(e.keys, e.capacity), seqs_of(e), queues_of(e)
    e.first_queue = -1
    for q in range(e.queue_count):
        if not facts[OPEN, q]:
            continue
        if facts[NEEDS, q] > left or facts[PULLED, q] == facts[COUNT, q]:
            facts[OPEN, q] = 0
            continue
        row = queues[q, (facts[HEAD, q] + facts[PULLED, q]) & (e.queue_room - 1)]
        if e.first_queue < 0 or is_before(keys, seqs, row, e.first_row):
            e.first_queue = q
            e.first_row = row


@kernel
def next_row(e, order, left, strict):
    """Return the next job of list order and queues; -1 after the last.

    Queued jobs that need more than `left` slots are passed over, unless nobody may be overtaken.
    """
    if e.first_queue >= 0:
        facts = facts_of(e)
        if facts[NEEDS, e.first_queue] > left and not strict:
            choose(e, left)
    if e.first_queue < 0:
        if e.at == order.shape[0]:
            return np.int64(-1)
        e.at += 1
        return np.int64(order[e.at - 1])
    if e.at < order.shape[0] and is_before(floats(e.keys, e.capacity), seqs_of(e), order[e.at], e.first_row):
        e.at += 1
        return np.int64(order[e.at - 1])
    row = np.int64(e.first_row)
    facts = facts_of(e)
    facts[PULLED, e.first_queue] += 1
    choose(e, ALL_SLOTS if strict else left)
    return row


@kernel
def pass_over(e, columns, row, left):
    """Pass over all waiting jobs that need what this one needs, since it did not fit."""
    if e.queued > 0:
        facts_of(e)[OPEN, queue_of(e, columns, row)] = 0
        choose(e, left)


@kernel
def move(keys, seqs, row, key, e):
    """Give a job a new key and its place among those that have it; `place_risen` does one that rose."""
    if key < keys[row]:
        e.top += 1
        seqs[row] = e.top
    elif key > keys[row]:
        seqs[row] = RISEN
        e.risen += 1
    keys[row] = key


RISEN = -(2**62)


@kernel
def place_risen(order, seqs, e):
    """Place the jobs whose keys have risen before those that have these keys already."""
    for i in range(order.shape[0] - 1, -1, -1):
        if e.risen == 0:
            return
        if seqs[order[i]] == RISEN:
            e.bottom -= 1
            seqs[order[i]] = e.bottom
            e.risen -= 1


@kernel
def append(keys, seqs, row, key, e):
    """Give a job its key, behind all that have it."""
    e.top += 1
    seqs[row] = e.top
    keys[row] = key


@kernel
def sort_listed(order, keys):
    """Sort a few jobs by key, stably; they are nearly sorted."""
    for i in range(1, order.shape[0]):
        row = order[i]
        key = keys[row]
        at = i
        while at > 0 and keys[order[at - 1]] > key:
            order[at] = order[at - 1]
            at -= 1
        order[at] = row


@kernel
def leave_queues(e, jobs):
    """Take the jobs of the draft that waited in queues out of these, into list order."""
    if e.queued > 0:
        merge_in(e, take_out(e, jobs))


@kernel
def take_out(e, jobs):
    """Take the jobs of the draft that waited out of queues; write them to `ranking`, return how many."""
    columns, index = columns_of(e), index_of(plan_at(e.draft))
    marks, taken = ints(e.marks, e.capacity), ints(e.ranking, e.capacity)
    for k in range(jobs):
        marks[index[ROW, k]] = columns[PLACE, index[ROW, k]] < 0.0
    facts, queues, last = facts_of(e), queues_of(e), e.queue_room - 1
    for q in range(e.queue_count):
        if facts[PULLED, q] == 0:
            continue
        head = facts[HEAD, q]
        to = facts[PULLED, q]
        for i in range(facts[PULLED, q] - 1, -1, -1):
            row = queues[q, (head + i) & last]
            if marks[row] == 1:
                marks[row] = 2
            else:
                to -= 1
                queues[q, (head + to) & last] = row
        facts[HEAD, q] = (head + to) & last
        facts[COUNT, q] -= to
    left = 0
    for k in range(jobs):
        if marks[index[ROW, k]] == 2:
            taken[left] = index[ROW, k]
            left += 1
        marks[index[ROW, k]] = 0
    return left


@kernel
def merge_in(e, count):
    """Merge so many jobs of `ranking` into list order."""
    keys, seqs, order, taken = floats(e.keys, e.capacity), seqs_of(e), all_rows(e), ints(e.ranking, count)
    i, j = e.active - e.queued - 1, count - 1
    e.queued -= count
    while j >= 0:
        if i >= 0 and is_before(keys, seqs, taken[j], order[i]):
            order[i + j + 1] = order[i]
            i -= 1
        else:
            order[i + j + 1] = taken[j]
            j -= 1


@kernel
def dissolve(e):
    """Put all jobs back into list order."""
    if e.queued == 0:
        return
    order, ranked, facts = ints(e.order, e.active - e.queued), ints(e.ranking, e.capacity), facts_of(e)
    rewind(e)
    for i in range(e.active):
        ranked[i] = next_row(e, order, ALL_SLOTS, 0)
    all_rows(e)[: e.active] = ranked[: e.active]
    facts[COUNT] = 0
    e.queued = 0
