"""Muri's first step: which jobs would run if every GPU were shared."""

import numpy as np

from rota.core.columns import GPUS, KINDS, PREFERENCE, SIZE, UP
from rota.core.compiled import kernel
from rota.core.kernels import has_stages
from rota.core.placement import COUNTS, FAILED, FREE, HINT, PICKED
from rota.core.room import CONSOLIDATED, find


@kernel
def take(columns, order, nodes, packing_num, scratch, taken, ends):
    """Take the jobs that would run if every GPU were shared by `packing_num` jobs, bucket by bucket.

    In an empty cluster, each job that fits brings along the next jobs of the same gang size and devices,
    unless its stages are not known: such jobs have buckets of their own. Writes the rows of each bucket, in
    order, to `taken` and where it ends to `ends`; returns the number of buckets.
    """
    free = scratch[FREE]
    for node in range(nodes.shape[1]):
        free[node] = nodes[SIZE, node] * nodes[UP, node]
    scratch[HINT:] = 0
    n = order.shape[0]
    sizes = np.empty(n, np.int32)
    devices = np.empty(n)
    staged = np.empty(n, np.bool_)
    number = np.empty(n, np.int32)
    buckets = 0
    for i in range(n):
        gpus, kinds = int(columns[GPUS, order[i]]), columns[KINDS, order[i]]
        shares = has_stages(columns, order[i])
        number[i] = buckets
        for b in range(buckets):
            if sizes[b] == gpus and devices[b] == kinds and staged[b] == shares:
                number[i] = b
                break
        if number[i] == buckets:
            sizes[buckets] = gpus
            devices[buckets] = kinds
            staged[buckets] = shares
            buckets += 1
    companions = np.zeros(buckets, np.int32)
    chosen = np.zeros(n, np.int8)
    for i in range(n):
        b = number[i]
        if companions[b] > 0:
            companions[b] -= 1
            chosen[i] = 1
            continue
        gpus, kinds, prefers = sizes[b], devices[b], int(columns[PREFERENCE, order[i]])
        hint, failed = HINT + 2 * prefers, FAILED + 2 * prefers
        if scratch[failed, gpus] and kinds < 0.0:
            continue
        parts = find(
            free, nodes, gpus, kinds, prefers, CONSOLIDATED, scratch[hint], scratch[PICKED], scratch[COUNTS]
        )
        if parts == 0:
            scratch[failed, gpus] |= kinds < 0.0
            continue
        for part in range(parts):
            free[scratch[PICKED, part]] -= scratch[COUNTS, part]
        companions[b] = packing_num - 1 if staged[b] else 0
        chosen[i] = 1
    filled = 0
    used = 0
    for b in range(buckets):
        before = filled
        for i in range(n):
            if number[i] == b and chosen[i]:
                taken[filled] = order[i]
                filled += 1
        if filled > before:
            ends[used] = filled
            used += 1
    return used
