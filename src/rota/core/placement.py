"""Placement of jobs on slots: first fit in a given order; a gang gets all its slots or none.

`consolidated` puts a gang on one node if any node is large enough, else on whole idle nodes and a part of
another, inside one switch unless no switch is large enough. `spread` takes one slot after another from the
node with the most free ones. `anywhere` takes free slots in index order, as if there were no nodes.

Each job has an order of the nodes that it prefers (`Preferences`): as listed, or the fastest for its model
first. A gang is as fast as its slowest slot, so it gets slots of the fastest type on which it fits, if
necessary together with faster ones. Whether a gang fits does not depend on that order.
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
    KINDS,
    PLACE,
    PREFERENCE,
    ROW,
    SIZE,
    UNIT,
    UP,
)
from rota.core.compiled import kernel
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
)
from rota.core.policy import Plan
from rota.core.room import ANYWHERE, CONSOLIDATED, SPREAD, find, find_preempting

if TYPE_CHECKING:
    from rota.core.view import ClusterView

Style = Literal["consolidated", "spread", "anywhere"]
STYLES: dict[Style, int] = {"consolidated": CONSOLIDATED, "spread": SPREAD, "anywhere": ANYWHERE}

Types = Literal["fastest", "blind"]
"""Devices that jobs prefer: the fastest for their model, or those listed first."""

# Rows of the view's scratch space; of the last two there is a pair for each order of the nodes.
FREE, OPEN, TAKEN, HELD, PICKED, COUNTS, HINT, FAILED = range(8)


ANCHORED = 2  # how `fit` keeps slots if anchors are given


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

    With `keep`, a running job stays on its slots if it can; with ANCHORED, on those of its anchor.
    """
    e = engine_at(address)
    new, old = plan_at(e.draft), plan_at(e.current)
    e.is_kept_known = keep
    if not keep:
        return fit_afresh(
            columns_of(e), order, nodes_of(e), index_of(new), slots_of(new), pace_of(new), scratch_of(e),
            style, strict,
        )  # fmt: skip
    kept = kept_of(e)
    if e.sharing == 1 and keep != ANCHORED:
        placed = keep_all(
            columns_of(e), order, nodes_of(e), index_of(new), slots_of(new), pace_of(new), kept,
            index_of(old), slots_of(old), strict,
        )  # fmt: skip
        if placed >= 0:
            return placed
    return fit_keeping(
        columns_of(e), order, anchors, nodes_of(e), slot_node_of(e), index_of(new), slots_of(new),
        pace_of(new), kept, index_of(old), slots_of(old), scratch_of(e), style, strict,
    )  # fmt: skip


@kernel
def keep_all(columns, order, nodes, index, slots, pace_s, kept, old_index, old_slots, strict):
    """Do what `fit_keeping` does if no waiting job gets slots, so that all stay; else return -1."""
    left = 0
    for node in range(nodes.shape[1]):
        left += nodes[SIZE, node] * nodes[UP, node]
    placed = 0
    used = 0
    index[BEGIN, 0] = 0
    for i in range(order.shape[0]):
        row = order[i]
        gpus = int(columns[GPUS, row])
        if gpus > left:
            if left == 0 or strict:
                break
            continue
        place = int(columns[PLACE, row])
        if place < 0:
            return -1
        left -= gpus
        begin = old_index[BEGIN, old_index[UNIT, place]]
        for s in range(gpus):
            slots[used + s] = old_slots[begin + s]
        used += gpus
        kept[placed] = 1
        placed = seat(columns, row, index, pace_s, placed, used)
    return placed


@kernel
def fit_afresh(columns, order, nodes, index, slots, pace_s, scratch, style, strict):
    """Place jobs first fit in an empty cluster; return how many were placed."""
    free = scratch[FREE]
    left = 0
    for node in range(nodes.shape[1]):
        free[node] = nodes[SIZE, node] * nodes[UP, node]
        left += free[node]
    scratch[HINT:] = 0
    placed = 0
    used = 0
    index[BEGIN, 0] = 0
    for i in range(order.shape[0]):
        if left == 0:
            break
        row = order[i]
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
            scratch[failed, gpus] |= kinds < 0.0
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
def fit_keeping(
    columns,
    order,
    anchors,
    nodes,
    slot_node,
    index,
    slots,
    pace_s,
    kept,
    old_index,
    old_slots,
    scratch,
    style,
    strict,
):
    """Place jobs first fit; running jobs stay on their slots unless a job before them needs these.

    A slot is held if its running job will stay, as far as counting GPUs can tell. Other jobs take free slots
    that are not held if they can; else they preempt as few later jobs as possible.
    """
    free, opened = scratch[FREE], scratch[OPEN]
    taken, held = scratch[TAKEN], scratch[HELD]
    left = 0
    for node in range(nodes.shape[1]):
        free[node] = nodes[SIZE, node] * nodes[UP, node]
        opened[node] = free[node]
        left += free[node]
    taken[:] = 0
    held[:] = 0
    scratch[HINT:] = 0
    budget = left
    for i in range(order.shape[0]):
        gpus = int(columns[GPUS, order[i]])
        if gpus > budget:
            if budget == 0 or strict:
                break
            continue
        budget -= gpus
        place = int(columns[PLACE, anchors[i]])
        if place >= 0:
            begin = old_index[BEGIN, old_index[UNIT, place]]
            for s in range(begin, begin + gpus):
                opened[slot_node[old_slots[s]]] -= 1 - held[old_slots[s]]
                held[old_slots[s]] = 1
    placed = 0
    used = 0
    index[BEGIN, 0] = 0
    for i in range(order.shape[0]):
        if left == 0:
            break
        row = order[i]
        gpus = int(columns[GPUS, row])
        place = int(columns[PLACE, anchors[i]])
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
                scratch[failed, gpus] |= kinds < 0.0
                continue
            for part in range(parts):
                used = take(
                    scratch[PICKED, part],
                    scratch[COUNTS, part],
                    nodes,
                    free,
                    opened,
                    taken,
                    held,
                    slots,
                    used,
                )
        left -= gpus
        kept[placed] = stays
        placed = seat(columns, row, index, pace_s, placed, used)
    return placed


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
