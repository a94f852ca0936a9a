"""Placement of jobs on slots: first fit in a given order; a gang gets all its slots or none.

`consolidated` puts a gang on one node if any node is large enough, else on whole idle nodes and a part of
another, inside one switch unless no switch is large enough. `spread` takes one slot after another from the
node with the most free ones. `anywhere` takes free slots in index order, as if there were no nodes.

Each job has an order of the nodes that it prefers (`Preferences`): as listed, or the fastest for its model
first. A gang is as fast as its slowest slot, so it gets slots of the fastest type on which it fits, if
necessary together with faster ones. Whether a gang fits does not depend on that order.

With preferences that say so (`moves`), running jobs move to faster devices that come free, if that saves more
time than a start costs.
"""

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rota.core.columns import (
    BEGIN,
    FIRST,
    GPUS,
    ITERATION_S,
    ITERATIONS,
    KIND,
    KINDS,
    MODEL,
    PLACE,
    PREFERENCE,
    REMAINING,
    ROW,
    SIZE,
    STARTUP_S,
    UNIT,
    UP,
)
from rota.core.compiled import kernel
from rota.core.durations import NONE, known_left_s
from rota.core.memory import (
    columns_of,
    engine_at,
    index_of,
    kept_of,
    nodes_of,
    pace_of,
    plan_at,
    scratch_of,
    slot_node_of,
    slots_of,
    speeds_of,
)
from rota.core.policy import Plan
from rota.core.queues import next_row, pass_over, rewind
from rota.core.room import ANYWHERE, CONSOLIDATED, SPREAD, find, find_preempting

if TYPE_CHECKING:
    from rota.core.view import ClusterView

Style = Literal["consolidated", "spread", "anywhere"]
STYLES: dict[Style, int] = {"consolidated": CONSOLIDATED, "spread": SPREAD, "anywhere": ANYWHERE}

Types = Literal["fastest", "advantage", "blind"]
"""Devices that jobs prefer (`rota.core.preferences`)."""

# Rows of the view's scratch space; of the last two there is a pair for each order of the nodes.
FREE, OPEN, TAKEN, HELD, PICKED, COUNTS, HINT, FAILED = range(8)


ANCHORED = 2  # how `fit` keeps slots if anchors are given
STAYS = -1  # what `fit` returns if the plan that runs stays


def scratch_rows(orders: int) -> int:
    """Return the number of scratch rows that placement needs."""
    return HINT + 2 * orders


def first_fit(
    view: "ClusterView",
    order: NDArray[np.int32],
    *,
    anchors: NDArray[np.int32] | None = None,
    style: Style = "consolidated",
    strict: bool = False,
    keep: bool | None = None,
) -> Plan:
    """Plan as `ClusterView.first_fit`; `anchors` names, for each row, the row whose slots it would keep."""
    plan = view.draft
    keeps = int(not view.cost.each_instant if keep is None else keep)
    keeps = ANCHORED if keeps and anchors is not None else keeps
    plan.jobs = fit(
        view.address, order, order if anchors is None else anchors, STYLES[style], int(strict), keeps
    )
    # Jobs that are not in `order` keep their position.
    plan.order = order if len(order) == view.active else None
    plan.wake_at_s = math.inf
    return plan


@kernel
def fit(address, order, anchors, style, strict, keep):
    """Place jobs first fit, and fill the draft; return how many were placed.

    The jobs are those of `order`, merged with those in queues if there are any. With `keep`, a running job
    stays on its slots if it can; with ANCHORED, on those of its anchor. Returns STAYS, if the policy knows
    that, where nothing changes.
    """
    e = engine_at(address)
    e.is_kept_known = keep
    if not keep:
        return fit_afresh(e, order, style, strict)
    if e.sharing > 1 or keep == ANCHORED:
        return fit_keeping(e, order, anchors, keep == ANCHORED, style, strict)
    if e.moves:
        return fit_moving(e, order, style, strict)
    if e.is_lazy and not e.each_instant and all_stay(e, order, strict):
        return STAYS
    placed = fit_beside(e, order, style, strict)
    return placed if placed >= 0 else fit_keeping(e, order, anchors, False, style, strict)


@kernel
def slots_up(e):
    """Return the number of slots of the nodes that are there."""
    nodes = nodes_of(e)
    count = 0
    for node in range(nodes.shape[1]):
        count += nodes[SIZE, node] * nodes[UP, node]
    return count


@kernel
def all_stay(e, order, strict):
    """Return whether first fit would keep all running jobs on their slots, and start none."""
    columns = columns_of(e)
    left = slots_up(e)
    staying = 0
    e.busy = left
    rewind(e)
    while True:
        row = next_row(e, order, left, strict)
        if row < 0:
            break
        gpus = int(columns[GPUS, row])
        if gpus > left:
            if left == 0 or strict:
                break
            continue
        if columns[PLACE, row] < 0.0:
            return False
        left -= gpus
        staying += 1
    e.busy -= left
    return staying == e.running


@kernel
def fit_afresh(e, order, style, strict):
    """Place jobs first fit in an empty cluster; return how many were placed."""
    columns, nodes, scratch, new = columns_of(e), nodes_of(e), scratch_of(e), plan_at(e.draft)
    index, slots, pace_s = index_of(new), slots_of(new), pace_of(new)
    free = scratch[FREE]
    left = 0
    for node in range(nodes.shape[1]):
        free[node] = nodes[SIZE, node] * nodes[UP, node]
        left += free[node]
    scratch[HINT:] = 0
    placed = 0
    used = 0
    index[BEGIN, 0] = 0
    rewind(e)
    while left > 0:
        row = next_row(e, order, left, strict)
        if row < 0:
            break
        gpus, kinds = int(columns[GPUS, row]), columns[KINDS, row]
        prefers = int(columns[PREFERENCE, row])
        hint, failed = HINT + 2 * prefers, FAILED + 2 * prefers
        if gpus > left or (scratch[failed, gpus] and kinds < 0.0):
            if strict:
                break
            continue
        parts = find(
            free, nodes, gpus, kinds, prefers, style, scratch[hint], scratch[PICKED], scratch[COUNTS]
        )
        if parts == 0:
            if strict:
                break
            if kinds < 0.0:
                scratch[failed, gpus] = 1
                pass_over(e, columns, row, left)
            continue
        for part in range(parts):
            node = scratch[PICKED, part]
            for _ in range(scratch[COUNTS, part]):
                slots[used] = nodes[FIRST, node] + nodes[SIZE, node] - free[node]
                free[node] -= 1
                used += 1
        left -= gpus
        placed = seat(columns, row, index, pace_s, placed, used)
    return placed


@kernel
def empty(e):
    """Begin with an empty cluster: no slot is taken or held."""
    nodes, scratch = nodes_of(e), scratch_of(e)
    free, opened = scratch[FREE], scratch[OPEN]
    for node in range(nodes.shape[1]):
        free[node] = nodes[SIZE, node] * nodes[UP, node]
        opened[node] = free[node]
    scratch[TAKEN] = 0
    scratch[HELD] = 0
    scratch[HINT:] = 0


@kernel
def hold_running(e):
    """Hold the slots of all running jobs."""
    columns, slot_node, scratch, p = columns_of(e), slot_node_of(e), scratch_of(e), plan_at(e.current)
    index, slots, opened, held = index_of(p), slots_of(p), scratch[OPEN], scratch[HELD]
    empty(e)
    for k in range(p.jobs):
        if columns[PLACE, index[ROW, k]] == k:
            unit = index[UNIT, k]
            for s in range(index[BEGIN, unit], index[BEGIN, unit + 1]):
                opened[slot_node[slots[s]]] -= 1
                held[slots[s]] = 1


@kernel
def hold(e, order, anchors, anchored, strict):
    """Hold the slots of the running jobs that will stay, as far as counting GPUs can tell."""
    columns, slot_node, scratch, old = columns_of(e), slot_node_of(e), scratch_of(e), plan_at(e.current)
    old_index, old_slots = index_of(old), slots_of(old)
    opened, held = scratch[OPEN], scratch[HELD]
    budget = slots_up(e)
    rewind(e)
    while True:
        row = next_row(e, order, budget, strict)
        if row < 0:
            return
        gpus = int(columns[GPUS, row])
        if gpus > budget:
            if budget == 0 or strict:
                return
            continue
        budget -= gpus
        place = int(columns[PLACE, anchors[e.at - 1] if anchored else row])
        if place >= 0:
            begin = old_index[BEGIN, old_index[UNIT, place]]
            for s in range(begin, begin + gpus):
                opened[slot_node[old_slots[s]]] -= 1 - held[old_slots[s]]
                held[old_slots[s]] = 1


@kernel
def fit_beside(e, order, style, strict):
    """Do what `fit_keeping` does if all running jobs stay and others take free slots; else return -1."""
    columns, nodes, scratch = columns_of(e), nodes_of(e), scratch_of(e)
    new, old, kept = plan_at(e.draft), plan_at(e.current), kept_of(e)
    index, slots, pace_s = index_of(new), slots_of(new), pace_of(new)
    old_index, old_slots = index_of(old), slots_of(old)
    free, opened, taken, held = scratch[FREE], scratch[OPEN], scratch[TAKEN], scratch[HELD]
    left = slots_up(e)
    placed = 0
    staying = 0
    used = 0
    index[BEGIN, 0] = 0
    rewind(e)
    while left > 0:
        row = next_row(e, order, left, strict)
        if row < 0:
            break
        gpus, place = int(columns[GPUS, row]), int(columns[PLACE, row])
        if gpus > left:
            if strict:
                break
            continue
        if place >= 0:
            begin = old_index[BEGIN, old_index[UNIT, place]]
            for s in range(gpus):
                slots[used + s] = old_slots[begin + s]
            used += gpus
            staying += 1
        else:
            if placed == staying:
                hold_running(e)
            kinds, prefers = columns[KINDS, row], int(columns[PREFERENCE, row])
            hint = scratch[HINT + 2 * prefers]
            parts = find(opened, nodes, gpus, kinds, prefers, style, hint, scratch[PICKED], scratch[COUNTS])
            if parts == 0:
                return -1
            for part in range(parts):
                node, count = scratch[PICKED, part], scratch[COUNTS, part]
                used = take(node, count, nodes, free, opened, taken, held, slots, used)
        left -= gpus
        kept[placed] = place >= 0
        placed = seat(columns, row, index, pace_s, placed, used)
    return placed if staying == e.running else -1


@kernel
def fit_keeping(e, order, anchors, anchored, style, strict):
    """Place jobs first fit; running jobs stay on their slots unless a job before them needs these.

    A slot is held if its running job will stay, as far as counting GPUs can tell. Other jobs take free slots
    that are not held if they can; else they preempt as few later jobs as possible.
    """
    columns, nodes, slot_node, scratch = columns_of(e), nodes_of(e), slot_node_of(e), scratch_of(e)
    new, old, kept = plan_at(e.draft), plan_at(e.current), kept_of(e)
    index, slots, pace_s = index_of(new), slots_of(new), pace_of(new)
    old_index, old_slots = index_of(old), slots_of(old)
    free, opened = scratch[FREE], scratch[OPEN]
    taken, held = scratch[TAKEN], scratch[HELD]
    left = slots_up(e)
    empty(e)
    hold(e, order, anchors, anchored, strict)
    placed = 0
    used = 0
    index[BEGIN, 0] = 0
    rewind(e)
    while left > 0:
        row = next_row(e, order, left, strict)
        if row < 0:
            break
        gpus = int(columns[GPUS, row])
        place = int(columns[PLACE, anchors[e.at - 1] if anchored else row])
        begin = 0
        stays = place >= 0
        if stays:
            begin = old_index[BEGIN, old_index[UNIT, place]]
            for s in range(begin, begin + gpus):
                if taken[old_slots[s]]:
                    stays = False
        if stays:
            for s in range(begin, begin + gpus):
                slot = old_slots[s]
                taken[slot] = 1
                free[slot_node[slot]] -= 1
                opened[slot_node[slot]] -= 1 - held[slot]
                slots[used] = slot
                used += 1
        else:
            kinds, prefers = columns[KINDS, row], int(columns[PREFERENCE, row])
            hint, failed = HINT + 2 * prefers, FAILED + 2 * prefers
            if gpus > left or (scratch[failed, gpus] and kinds < 0.0):
                if strict:
                    break
                continue
            parts = find(
                opened, nodes, gpus, kinds, prefers, style, scratch[hint], scratch[PICKED], scratch[COUNTS]
            )
            if parts == 0:
                parts = find_preempting(
                    free, opened, nodes, gpus, kinds, prefers, style, scratch[PICKED], scratch[COUNTS]
                )
            if parts == 0:
                if strict:
                    break
                if kinds < 0.0:
                    scratch[failed, gpus] = 1
                    pass_over(e, columns, row, left)
                continue
            for part in range(parts):
                node, count = scratch[PICKED, part], scratch[COUNTS, part]
                used = take(node, count, nodes, free, opened, taken, held, slots, used)
        left -= gpus
        kept[placed] = stays
        placed = seat(columns, row, index, pace_s, placed, used)
    return placed


@kernel
def fit_moving(e, order, style, strict):
    """Do as `fit_keeping`, but let running jobs move to faster devices if that saves more than it costs.

    A job may move that would gain if all were placed afresh. Those that then do not gain stay after all.
    """
    columns, old, new = columns_of(e), plan_at(e.current), plan_at(e.draft)
    e.is_kept_known = 0
    moving, places = np.empty(e.most_jobs, np.int32), np.empty(e.most_jobs)
    count = 0
    placed = fit_afresh(e, order, style, strict)
    index = index_of(new)
    for k in range(placed):
        row = index[ROW, k]
        if columns[PLACE, row] >= 0.0 and saved_s(e, columns, row, old, new, k) > 0.0:
            moving[count] = row
            count += 1
    while count > 0:
        for i in range(count):
            places[i] = columns[PLACE, moving[i]]
            columns[PLACE, moving[i]] = -1.0
        placed = fit_keeping(e, order, order, False, style, strict)
        for i in range(count):
            columns[PLACE, moving[i]] = places[i]
        index = index_of(new)
        gaining = 0
        for i in range(count):
            gains = False
            for k in range(placed):
                if index[ROW, k] == moving[i]:
                    gains = saved_s(e, columns, moving[i], old, new, k) > 0.0
            if gains:
                moving[gaining] = moving[i]
                gaining += 1
        if gaining == count:
            return placed
        count = gaining
    return fit_keeping(e, order, order, False, style, strict)


@kernel
def saved_s(e, columns, row, old, new, k):
    """Return the seconds that a running job saves by its slots in a new plan, where it is job `k`.

    Without knowledge of durations, it is taken to have as much left as it has done.
    """
    unit = index_of(old)[UNIT, int(columns[PLACE, row])]
    before = slowest(
        e, columns, row, slots_of(old), index_of(old)[BEGIN, unit], index_of(old)[BEGIN, unit + 1]
    )
    after = slowest(e, columns, row, slots_of(new), index_of(new)[BEGIN, k], index_of(new)[BEGIN, k + 1])
    if after <= before:
        return -1.0
    if e.knows == NONE:
        left_s = (columns[ITERATIONS, row] - columns[REMAINING, row]) * columns[ITERATION_S, row]
    else:
        left_s = known_left_s(columns, row)
    return left_s * (1.0 / before - 1.0 / after) - columns[STARTUP_S, row] - e.checkpoint_every_s


@kernel
def slowest(e, columns, row, slots, begin, end):
    """Return the speed of a job on the slowest of these slots."""
    speeds, nodes, slot_node = speeds_of(e), nodes_of(e), slot_node_of(e)
    speed = np.inf
    for i in range(begin, end):
        speed = min(speed, speeds[int(columns[MODEL, row]), nodes[KIND, slot_node[slots[i]]]])
    return speed


@kernel
def take(node, count, nodes, free, opened, taken, held, slots, used):
    """Take slots of a node: first those that are not held, then those of later jobs."""
    first = nodes[FIRST, node]
    for holding in range(2):
        for slot in range(first, first + nodes[SIZE, node]):
            if count == 0:
                return used
            if taken[slot] or held[slot] != holding:
                continue
            taken[slot] = 1
            free[node] -= 1
            if holding == 0:
                opened[node] -= 1
            slots[used] = slot
            used += 1
            count -= 1
    return used


@kernel
def seat(columns, row, index, pace_s, placed, used):
    """Record a job that has its slots; return the number of such jobs."""
    index[ROW, placed] = row
    index[UNIT, placed] = placed
    index[BEGIN, placed + 1] = used
    pace_s[placed] = columns[ITERATION_S, row]
    return placed + 1
