"""Finding room for one gang: which nodes have enough free slots, and how many to take of each."""

import numpy as np

from rota.core.columns import HEAD, KIND, NEXT, SIZE, UP
from rota.core.compiled import kernel

CONSOLIDATED, SPREAD, ANYWHERE = range(3)
"""Ways to put a gang on nodes, described in `placement`."""


@kernel
def may_use(nodes, node, kinds):
    """Whether a node's device kind is in the set; a negative set is all of them."""
    return kinds < 0.0 or (int(kinds) >> nodes[KIND, node]) & 1 == 1


@kernel
def find(free, nodes, gpus, kinds, style, hint, picked, counts):
    """Choose nodes for a gang; returns how many, 0 if it does not fit.

    `hint[gpus]` is where to look first: nodes before it failed for this size in this pass.
    """
    if style == SPREAD:
        return find_spread(free, nodes, gpus, kinds, picked, counts)
    if style == ANYWHERE:
        return find_anywhere(free, nodes, gpus, kinds, picked, counts)
    largest = 0
    for node in range(nodes.shape[1]):
        if nodes[SIZE, node] > largest and nodes[UP, node] and may_use(nodes, node, kinds):
            largest = nodes[SIZE, node]
    if gpus > largest:
        return find_whole(free, nodes, gpus, kinds, picked, counts)
    for node in range(hint[gpus] if kinds < 0.0 else 0, nodes.shape[1]):
        if free[node] >= gpus and may_use(nodes, node, kinds):
            if kinds < 0.0:
                hint[gpus] = node
            picked[0] = node
            counts[0] = gpus
            return 1
    return 0


@kernel
def find_displacing(free, opened, nodes, gpus, kinds, style, picked, counts):
    """Choose nodes for a gang that has to displace others: if one node will do, where it displaces fewest."""
    best = -1
    if style == CONSOLIDATED:
        for node in range(nodes.shape[1]):
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
    return find(free, nodes, gpus, kinds, style, np.zeros(gpus + 1, np.int32), picked, counts)


@kernel
def find_whole(free, nodes, gpus, kinds, picked, counts):
    """A gang larger than any node: in the first switch that has room, or over all if none is large enough."""
    some_switch_is_large_enough = False
    for head in range(nodes.shape[1]):
        if not nodes[HEAD, head]:
            continue
        size = 0
        node = head
        while node >= 0:
            size += nodes[SIZE, node] if nodes[UP, node] and may_use(nodes, node, kinds) else 0
            node = nodes[NEXT, node]
        if size >= gpus:
            some_switch_is_large_enough = True
            parts = find_along(free, nodes, gpus, kinds, head, True, picked, counts)
            if parts:
                return parts
    if some_switch_is_large_enough:
        return 0
    return find_along(free, nodes, gpus, kinds, 0, False, picked, counts)


@kernel
def find_along(free, nodes, gpus, kinds, head, one_switch, picked, counts):
    """Idle nodes in index order while needed whole, then the first other node with room for the rest."""
    parts = 0
    rest = gpus
    node = head
    while node >= 0:
        if nodes[SIZE, node] <= rest and free[node] == nodes[SIZE, node] and may_use(nodes, node, kinds):
            picked[parts] = node
            counts[parts] = nodes[SIZE, node]
            rest -= nodes[SIZE, node]
            parts += 1
        node = after(nodes, node, one_switch)
    if rest == 0:
        return parts
    node = head
    part = 0
    while node >= 0:
        if part < parts and picked[part] == node:
            part += 1  # they were picked in this order
        elif free[node] >= rest and may_use(nodes, node, kinds):
            picked[parts] = node
            counts[parts] = rest
            return parts + 1
        node = after(nodes, node, one_switch)
    return 0


@kernel
def after(nodes, node, one_switch):
    """The next node, at the same switch or of all; -1 after the last."""
    if one_switch:
        return nodes[NEXT, node]
    return node + 1 if node + 1 < nodes.shape[1] else -1


@kernel
def find_spread(free, nodes, gpus, kinds, picked, counts):
    """Slot after slot from the node with the most free ones."""
    n = nodes.shape[1]
    counts[:n] = 0
    for _ in range(gpus):
        best = -1
        for node in range(n):
            left = free[node] - counts[node]
            if left > 0 and may_use(nodes, node, kinds) and (best < 0 or left > free[best] - counts[best]):
                best = node
        if best < 0:
            return 0
        counts[best] += 1
    parts = 0
    for node in range(n):
        if counts[node] > 0:
            picked[parts] = node
            counts[parts] = counts[node]
            parts += 1
    return parts


@kernel
def find_anywhere(free, nodes, gpus, kinds, picked, counts):
    """Free slots in index order."""
    parts = 0
    rest = gpus
    for node in range(nodes.shape[1]):
        if free[node] > 0 and may_use(nodes, node, kinds):
            picked[parts] = node
            counts[parts] = min(free[node], rest)
            rest -= counts[parts]
            parts += 1
            if rest == 0:
                return parts
    return 0
