"""Jobs whose gangs may have several sizes: the table of step times, and the rule that gives out idle slots.

Under a policy that asks for it (`Needs.resizes`), `gpus` and `iteration_s` of such a job are those of its
smallest gang: that is what first fit gives it. `grow` then gives it more of the slots that are idle.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.columns import BEGIN, GPUS, JOB, KIND, KINDS, PLACE, ROW, STARTUP_S, UNIT, UP
from rota.core.compiled import carray, kernel
from rota.core.durations import known_left
from rota.core.memory import (
    columns_of,
    engine_at,
    floats,
    index_of,
    ints,
    nodes_of,
    pace_of,
    plan_at,
    pointer,
    slot_node_of,
    slots_of,
)
from rota.core.record import SharedRecord

RECORD = np.dtype([(name, "i8") for name in ("begin", "gpus", "step_s", "jobs", "entries")])


class GangSizes(SharedRecord):
    """The gang sizes of jobs, and the seconds per iteration with each."""

    def __init__(self, begin: NDArray[np.int64], gpus: NDArray[np.int32], step_s: Floats) -> None:
        """Job j has the entries from `begin[j]` to `begin[j + 1]`, by size; one that is rigid has none."""
        self.lay_out_record(RECORD)
        self.put(begin=begin, gpus=gpus, step_s=step_s)
        self.write(jobs=len(begin) - 1, entries=len(gpus))

    @classmethod
    def of(cls, sizes: Sequence[Sequence[tuple[int, float]]]) -> "GangSizes":
        """Return those of jobs, each with its pairs of gang size and seconds per iteration."""
        entries = [entry for each in sizes for entry in each]
        return cls(
            np.cumsum([0, *map(len, sizes)]).astype(np.int64),
            np.array([gpus for gpus, _ in entries], np.int32),
            np.array([step_s for _, step_s in entries], np.float64),
        )


@kernel
def sizes_at(address):
    """Return the record of the gang sizes."""
    return carray(pointer(address), 1, RECORD)[0]


@kernel
def entries_of(z, job):
    """Return where the entries of a job begin and end."""
    begin = carray(pointer(z.begin), z.jobs + 1, np.int64)
    return begin[job], begin[job + 1]


@kernel
def have_sizes(e, index, jobs):
    """Return whether each planned gang has one of the sizes of its job."""
    z, columns = sizes_at(e.sizes), columns_of(e)
    gpus = ints(z.gpus, z.entries)
    for k in range(jobs):
        row, unit = index[ROW, k], index[UNIT, k]
        size = index[BEGIN, unit + 1] - index[BEGIN, unit]
        known = size == int(columns[GPUS, row])
        first, last = entries_of(z, int(columns[JOB, row]))
        for i in range(first, last):
            known |= gpus[i] == size
        if not known:
            return False
    return True


@kernel
def grow(address, jobs):
    """Give idle slots to the jobs of the draft, in its order, so that each has as large a gang as it can use.

    First, jobs get back what they had. Then a job gets more if that saves more time than a start costs.
    """
    e = engine_at(address)
    columns, new, old = columns_of(e), plan_at(e.draft), plan_at(e.current)
    index, slots = index_of(new), slots_of(new)
    nodes, slot_node = nodes_of(e), slot_node_of(e)
    extra = np.zeros(e.slots, np.int32)  # the position of the job that gets it + 1; -1 if it is not idle
    idle = 0
    for slot in range(e.slots):
        extra[slot] = 0 if nodes[UP, slot_node[slot]] else -1
        idle += extra[slot] == 0
    for i in range(index[BEGIN, jobs]):
        extra[slots[i]] = -1
        idle -= 1
    size = np.empty(jobs, np.int32)
    steady = np.zeros(jobs, np.bool_)
    for k in range(jobs):
        base = index[BEGIN, k + 1] - index[BEGIN, k]
        size[k] = base
        steady[k] = has_back(columns, index, slots, index_of(old), slots_of(old), k, extra)
        if steady[k]:
            place = int(columns[PLACE, index[ROW, k]])
            unit = index_of(old)[UNIT, place]
            size[k] = index_of(old)[BEGIN, unit + 1] - index_of(old)[BEGIN, unit]
            idle -= size[k] - base
    for k in range(jobs):
        if idle == 0:
            break
        before = size[k]
        enlarge(e, columns, index, slots, nodes, slot_node, k, extra, size, steady[k], idle)
        idle -= size[k] - before
    lay_out(e, columns, index, slots, pace_of(new), jobs, extra, size)


@kernel
def has_back(columns, index, slots, old_index, old_slots, k, extra):
    """Give a running job the slots that it had beyond its smallest gang; return whether it has all it had."""
    place = int(columns[PLACE, index[ROW, k]])
    if place < 0:
        return False
    begin, end = old_index[BEGIN, old_index[UNIT, place]], old_index[BEGIN, old_index[UNIT, place] + 1]
    base = index[BEGIN, k + 1] - index[BEGIN, k]
    for i in range(base):
        if begin + i >= end or old_slots[begin + i] != slots[index[BEGIN, k] + i]:
            return False
    for i in range(begin + base, end):
        if extra[old_slots[i]] != 0:
            return False
    for i in range(begin + base, end):
        extra[old_slots[i]] = k + 1
    return True


@kernel
def enlarge(e, columns, index, slots, nodes, slot_node, k, extra, size, steady, idle):
    """Give one job the largest gang for which there are idle slots, if it gains by it."""
    z, row = sizes_at(e.sizes), index[ROW, k]
    gpus, step_s = ints(z.gpus, z.entries), floats(z.step_s, z.entries)
    first, last = entries_of(z, int(columns[JOB, row]))
    now_s = 0.0
    for i in range(first, last):
        if gpus[i] == size[k]:
            now_s = step_s[i]
    for i in range(last - 1, first - 1, -1):
        needed = gpus[i] - size[k]
        if needed <= 0:
            return
        saved_s = known_left(columns, row) * (now_s - step_s[i])
        if needed > idle or saved_s <= (columns[STARTUP_S, row] if steady else 0.0):
            continue
        if claim(e, columns, index, slots, nodes, slot_node, k, extra, needed):
            size[k] = gpus[i]
            return


@kernel
def claim(e, columns, index, slots, nodes, slot_node, k, extra, needed):
    """Give idle slots to a job, if there are so many; return whether there are.

    Slots of its own nodes come first. Others are used only if crossing nodes costs nothing.
    """
    kinds = columns[KINDS, index[ROW, k]]
    mine = np.zeros(e.node_count, np.bool_)
    for i in range(index[BEGIN, k], index[BEGIN, k + 1]):
        mine[slot_node[slots[i]]] = True
    found = np.empty(needed, np.int32)
    count = 0
    for elsewhere in range(1 + e.is_even):
        for slot in range(e.slots):
            if count == needed:
                break
            node = slot_node[slot]
            if extra[slot] != 0 or mine[node] == (elsewhere == 1):
                continue
            if kinds < 0.0 or (int(kinds) >> nodes[KIND, node]) & 1:
                found[count] = slot
                count += 1
    if count < needed:
        return False
    for i in range(needed):
        extra[found[i]] = k + 1
    return True


@kernel
def lay_out(e, columns, index, slots, pace_s, jobs, extra, size):
    """Write the gangs into the plan: the slots of the smallest gang, then the others in order."""
    z, base = sizes_at(e.sizes), slots[: index[BEGIN, jobs]].copy()
    gpus, step_s = ints(z.gpus, z.entries), floats(z.step_s, z.entries)
    free = np.empty(jobs, np.int32)
    used, begin = 0, 0
    for k in range(jobs):
        end = index[BEGIN, k + 1]  # of the smallest gang
        for i in range(begin, end):
            slots[used + i - begin] = base[i]
        free[k] = used + end - begin
        begin = end
        index[BEGIN, k] = used
        used += size[k]
        first, last = entries_of(z, int(columns[JOB, index[ROW, k]]))
        for i in range(first, last):
            if gpus[i] == size[k]:
                pace_s[k] = step_s[i]
    index[BEGIN, jobs] = used
    for slot in range(e.slots):
        if extra[slot] > 0:
            slots[free[extra[slot] - 1]] = slot
            free[extra[slot] - 1] += 1
