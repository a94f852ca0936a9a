"""The search for free slots for one gang: which nodes, and how many slots of each.

Nodes are visited in the order that the job prefers, rank by rank (`columns`). If it prefers none, all have
rank 0 and are visited as listed.
"""

import numpy as np

from rota.core.columns import FACTS, HEAD, KIND, LISTED, NEXT, PREFERRED, RANK, SIZE, UP
from rota.core.compiled import kernel

CONSOLIDATED, SPREAD, ANYWHERE = range(3)
"""Placement styles, described in `placement`."""


@kernel
def may_use(nodes, node, kinds):
    """Return whether a node's device kind is in a set; a negative set contains all."""
    return kinds < 0.0 or (int(kinds) >> nodes[KIND, node]) & 1 == 1


@kernel
def order_of(nodes, prefers):
    """Return the rows of an order of the nodes, given its number."""
    return nodes[FACTS + PREFERRED * prefers : FACTS + PREFERRED * (prefers + 1)]


@kernel
def last_rank(order):
    """Return the rank of the least preferred nodes."""
    return order[RANK, order[LISTED, order.shape[1] - 1]]


@kernel
def find(free, nodes, gpus, kinds, prefers, style, hint, picked, counts):
    """Choose nodes for a gang; return how many, 0 if it does not fit.

    `hint[gpus]` is the position in the order to start from: nodes before it have failed for this size in this
    pass.
    """
    order = order_of(nodes, prefers)
    if style == CONSOLIDATED:
        largest = 0
        for node in range(nodes.shape[1]):
            if nodes[SIZE, node] > largest and nodes[UP, node] and may_use(nodes, node, kinds):
                largest = nodes[SIZE, node]
        if gpus <= largest:
            return find_one(free, nodes, gpus, kinds, order, hint, picked, counts)
    for slowest in range(last_rank(order) + 1):
        parts = find_among(free, nodes, gpus, kinds, order, slowest, slowest, style, picked, counts)
        if parts == 0 and slowest > 0:
            parts = find_among(free, nodes, gpus, kinds, order, 0, slowest, style, picked, counts)
        if parts > 0:
            return parts
    return 0


@kernel
def find_one(free, nodes, gpus, kinds, order, hint, picked, counts):
    """Choose the first node with room for the whole gang."""
    for position in range(hint[gpus] if kinds < 0.0 else 0, nodes.shape[1]):
        node = order[LISTED, position]
        if free[node] >= gpus and may_use(nodes, node, kinds):
            if kinds < 0.0:
                hint[gpus] = position
            picked[0] = node
            counts[0] = gpus
            return 1
    return 0


@kernel
def find_among(free, nodes, gpus, kinds, order, fastest, slowest, style, picked, counts):
    """Choose several nodes for a gang, all of ranks from `fastest` to `slowest`."""
    if style == SPREAD:
        return find_spread(free, nodes, gpus, kinds, order, fastest, slowest, picked, counts)
    if style == ANYWHERE:
        return find_anywhere(free, nodes, gpus, kinds, order, fastest, slowest, picked, counts)
    return find_whole(free, nodes, gpus, kinds, order, fastest, slowest, picked, counts)


@kernel
def is_meant(nodes, node, kinds, order, fastest, slowest):
    """Return whether a job may use a node, and the node has one of these ranks."""
    return fastest <= order[RANK, node] <= slowest and may_use(nodes, node, kinds)


@kernel
def find_preempting(free, opened, nodes, gpus, kinds, prefers, style, picked, counts):
    """Choose nodes for a gang that has to preempt others; if one is enough, that with the fewest held."""
    best = -1
    if style == CONSOLIDATED:
        order = order_of(nodes, prefers)
        for position in range(nodes.shape[1]):
            node = order[LISTED, position]
            if (
                free[node] >= gpus
                and may_use(nodes, node, kinds)
                and (best < 0 or opened[node] > opened[best])
            ):
                best = node
    if best >= 0:
        picked[0] = best
        counts[0] = gpus
        return 1
    return find(free, nodes, gpus, kinds, prefers, style, np.zeros(gpus + 1, np.int32), picked, counts)


@kernel
def find_whole(free, nodes, gpus, kinds, order, fastest, slowest, picked, counts):
    """Choose nodes for a gang larger than any node: in one switch, or across if none is large enough."""
    some_switch_is_large_enough = False
    for position in range(nodes.shape[1]):
        head = order[LISTED, position]
        if not order[HEAD, head]:
            continue
        size = 0
        node = head
        while node >= 0:
            size += nodes[SIZE, node] if nodes[UP, node] and may_use(nodes, node, kinds) else 0
            node = order[NEXT, node]
        if size >= gpus:
            some_switch_is_large_enough = True
            parts = find_along(free, nodes, gpus, kinds, order, fastest, slowest, head, picked, counts)
            if parts:
                return parts
    if some_switch_is_large_enough:
        return 0
    return find_along(free, nodes, gpus, kinds, order, fastest, slowest, -1, picked, counts)


@kernel
def find_along(free, nodes, gpus, kinds, order, fastest, slowest, head, picked, counts):
    """Choose idle nodes in order while needed whole, then the first other node with room for the rest.

    `head` is the first node of the switch to stay in, or -1.
    """
    parts = 0
    rest = gpus
    step = 0
    node = at_step(order, head, -1, step)
    while node >= 0:
        if (
            nodes[SIZE, node] <= rest
            and free[node] == nodes[SIZE, node]
            and is_meant(nodes, node, kinds, order, fastest, slowest)
        ):
            picked[parts] = node
            counts[parts] = nodes[SIZE, node]
            rest -= nodes[SIZE, node]
            parts += 1
        step += 1
        node = at_step(order, head, node, step)
    if rest == 0:
        return parts
    part = 0
    step = 0
    node = at_step(order, head, -1, step)
    while node >= 0:
        if part < parts and picked[part] == node:
            part += 1  # they were picked in this order
        elif free[node] >= rest and is_meant(nodes, node, kinds, order, fastest, slowest):
            picked[parts] = node
            counts[parts] = rest
            return parts + 1
        step += 1
        node = at_step(order, head, node, step)
    return 0


@kernel
def at_step(order, head, before, step):
    """Return the node at a step along a switch, or along all nodes without a `head`; -1 after the last."""
    if head < 0:
        return order[LISTED, step] if step < order.shape[1] else -1
    return head if step == 0 else order[NEXT, before]


@kernel
def find_spread(free, nodes, gpus, kinds, order, fastest, slowest, picked, counts):
    """Take one slot after another from the node with the most free ones."""
    n = nodes.shape[1]
    counts[:n] = 0
    for _ in range(gpus):
        best = -1
        for position in range(n):
            node = order[LISTED, position]
            left = free[node] - counts[position]
            more = best < 0 or left > free[order[LISTED, best]] - counts[best]
            if left > 0 and more and is_meant(nodes, node, kinds, order, fastest, slowest):
                best = position
        if best < 0:
            return 0
        counts[best] += 1
    parts = 0
    for position in range(n):
        if counts[position] > 0:
            picked[parts] = order[LISTED, position]
            counts[parts] = counts[position]
            parts += 1
    return parts


@kernel
def find_anywhere(free, nodes, gpus, kinds, order, fastest, slowest, picked, counts):
    """Take free slots in order."""
    parts = 0
    rest = gpus
    for position in range(nodes.shape[1]):
        node = order[LISTED, position]
        if free[node] > 0 and is_meant(nodes, node, kinds, order, fastest, slowest):
            picked[parts] = node
            counts[parts] = min(free[node], rest)
            rest -= counts[parts]
            parts += 1
            if rest == 0:
                return parts
    return 0


@kernel
def ranks_for(room, gpus):
    """Return the fastest ranks with room for a gang, as first and last: one rank, or all up to one.

    `room` has the slots of each rank. Returns (0, last rank) if they are too few.
    """
    before = 0
    for rank in range(room.shape[0]):
        if room[rank] >= gpus:
            return rank, rank
        before += room[rank]
        if before >= gpus:
            return 0, rank
    return 0, room.shape[0] - 1
