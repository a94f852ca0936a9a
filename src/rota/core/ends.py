"""When the next jobs end, and how long their steps take on their slots."""

import numpy as np

from rota.core.columns import BEGIN, END_S, KIND, MODEL, PACE_S, PLACE, REMAINING, ROW, SWITCH, SYNC_S, UNIT
from rota.core.compiled import kernel

WINDOW = 1e-6  # relative time after the earliest end within which ends may be grouped


@kernel
def close(a, b, rel, absolute):
    """Return whether two times agree, as math.isclose does."""
    return a == b or abs(a - b) <= max(rel * max(abs(a), abs(b)), absolute)


@kernel
def end_of(columns, row, now_s, each_instant):
    """Return when a running job will end if nothing happens."""
    if each_instant:
        return now_s + columns[REMAINING, row] * columns[PACE_S, row]
    return columns[END_S, row]


@kernel
def next_ends(columns, rows, order, now_s, each_instant, ends_rel, ends_abs, ending):
    """Find the jobs that end next: write their rows to `ending`, return the time and their number.

    `rows` has at least the running jobs; `order` has them too, in list order.
    """
    first_s = np.inf
    near = 0
    window = WINDOW if ends_rel > 0.0 or ends_abs > 0.0 else 0.0
    for row in rows:
        if columns[PLACE, row] < 0.0:
            continue
        end_s = end_of(columns, row, now_s, each_instant)
        if end_s < first_s:
            if first_s > end_s + window * abs(end_s) + ends_abs:
                near = 0
            first_s = end_s
            ending[0] = row
            near += 1
        elif end_s <= first_s + window * abs(first_s) + ends_abs:
            near += 1
    if near <= 1:
        return first_s, near
    return group_ends(columns, order, now_s, each_instant, ends_rel, ends_abs, ending, first_s)


@kernel
def group_ends(columns, order, now_s, each_instant, ends_rel, ends_abs, ending, first_s):
    """Visit the running jobs in list order; each joins the first group that is close, else starts one."""
    n = 0
    rows = np.empty(ending.shape[0], np.int32)
    group = np.empty(ending.shape[0], np.int32)
    founded_s = np.empty(ending.shape[0])
    groups = 0
    window = WINDOW if ends_rel > 0.0 or ends_abs > 0.0 else 0.0
    limit_s = first_s + window * abs(first_s) + ends_abs
    for i in range(order.shape[0]):
        row = order[i]
        if columns[PLACE, row] < 0.0:
            continue
        end_s = end_of(columns, row, now_s, each_instant)
        if end_s > limit_s:
            continue
        joined = groups
        for g in range(groups):
            if close(end_s, founded_s[g], ends_rel, 0.0):
                joined = g
                break
        if joined == groups:
            founded_s[groups] = end_s
            groups += 1
        rows[n] = row
        group[n] = joined
        n += 1
    earliest_s = founded_s[:groups].min()
    count = 0
    for i in range(n):
        at_s = founded_s[group[i]]
        if at_s == earliest_s or (ends_abs > 0.0 and close(at_s, earliest_s, ends_rel, ends_abs)):
            ending[count] = rows[i]
            count += 1
    return earliest_s, count


@kernel
def stretch(columns, index, slots, pace_s, jobs, speeds, nodes, slot_node, cross_node, cross_switch):
    """Adapt step times to slots: the slowest slot and member of a unit set the speed, crossing slows down."""
    k = 0
    while k < jobs:
        unit = index[UNIT, k]
        begin, end = index[BEGIN, unit], index[BEGIN, unit + 1]
        first = slot_node[slots[begin]]
        crossing = 1.0
        for i in range(begin, end):
            node = slot_node[slots[i]]
            if nodes[SWITCH, node] != nodes[SWITCH, first]:
                crossing = max(crossing, cross_node, cross_switch)
            elif node != first:
                crossing = max(crossing, cross_node)
        members = k
        slowest_s = 0.0
        while members < jobs and index[UNIT, members] == unit:
            row = index[ROW, members]
            model = int(columns[MODEL, row])
            speed = np.inf
            for i in range(begin, end):
                speed = min(speed, speeds[model, nodes[KIND, slot_node[slots[i]]]])
            slowest_s = max(slowest_s, pace_s[members] / speed + (crossing - 1.0) * columns[SYNC_S, row])
            members += 1
        for member in range(k, members):
            pace_s[member] = slowest_s
        k = members
