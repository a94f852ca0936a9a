"""Maximum-weight matching of things that come in a few types.

The jobs of a bucket have a handful of profiles. So instead of a graph with a vertex per job it is enough to
decide *how many* pairs to form of each two types.

The relaxation in which pairs may be halved is a transportation problem from the types to themselves (every
thing occurs once as giver and once as taker; a pair counts half from each side). It is solved by augmenting
along the best path; where a count is a half, both ways to round it are tried. The result is exact. With many
types rustworkx matches a graph with a vertex per thing instead.
"""

import numpy as np
from numpy.typing import NDArray

from rota.core.compiled import kernel

FEW = 20  # types up to which counting beats the graph
BRANCHES = 500  # roundings tried before the graph is used
DEPTH = 32  # depth of nested roundings


def best_pairs(counts: NDArray[np.int64], weight: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of pairs of each two types; `weight[a, b]` is that of one pair, 0 forbids it."""
    if len(counts) <= FEW:
        pairs, exact = count_pairs(counts, weight)
        if exact:
            found: NDArray[np.int64] = pairs
            return found
    return _pairs_by_graph(counts, weight)


def _pairs_by_graph(counts: NDArray[np.int64], weight: NDArray[np.int64]) -> NDArray[np.int64]:
    import rustworkx  # here, since it is not needed for few types

    types = np.repeat(np.arange(len(counts)), counts)
    a, b = np.triu_indices(len(types), 1)
    weights = weight[types[a], types[b]]
    edges = [edge for edge in zip(a.tolist(), b.tolist(), weights.tolist(), strict=True) if edge[2] > 0]
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(len(types)))
    graph.add_edges_from(edges)
    pairs = np.zeros_like(weight)
    for one, other in rustworkx.max_weight_matching(graph, weight_fn=int):
        pairs[types[one], types[other]] += 1
        if types[one] != types[other]:
            pairs[types[other], types[one]] += 1
    return pairs


@kernel
def assign(types, pairs, homes):
    """Return the partner of each thing, or -1: pairs are assigned in ascending order.

    Things with the same home (not -1) come first: of equally good pairings, this migrates fewer.
    """
    n = types.shape[0]
    left = pairs.copy()
    mates = np.full(n, -1)
    for together in (True, False):
        for i in range(n):
            if mates[i] >= 0 or (together and homes[i] < 0):
                continue
            for j in range(i + 1, n):
                if mates[j] >= 0 or left[types[i], types[j]] == 0 or (together and homes[i] != homes[j]):
                    continue
                left[types[i], types[j]] -= 1
                if types[i] != types[j]:
                    left[types[j], types[i]] -= 1
                mates[i] = j
                mates[j] = i
                break
    return mates


@kernel
def count_pairs(counts, weight):
    """Return the number of pairs of each two types, and whether they are proven to be the best."""
    k = counts.shape[0]
    best = np.zeros((k, k), np.int64)
    best_value = np.int64(-1)
    low = np.empty((DEPTH + 1, k, k), np.int64)
    high = np.empty((DEPTH + 1, k, k), np.int64)
    for i in range(k):
        for j in range(k):
            low[0, i, j] = 0
            high[0, i, j] = min(counts[i], counts[j]) if i != j else counts[i] // 2 * 2
            if weight[i, j] <= 0:
                high[0, i, j] = 0
    open_problems = 1
    tried = 0
    while open_problems > 0:
        if tried == BRANCHES:
            return best, False
        tried += 1
        open_problems -= 1
        flow, value = transport(counts, weight, low[open_problems], high[open_problems])
        if value < 2 * best_value + 2:
            continue
        a, b = halved(flow)
        if a < 0:
            best_value = value // 2
            for i in range(k):
                for j in range(k):
                    best[i, j] = (flow[i, j] + flow[j, i]) // 2 if i != j else flow[i, i] // 2
            continue
        if open_problems + 2 > DEPTH:
            return best, False
        total = flow[a, b] + flow[b, a] if a != b else flow[a, a]
        down = total // 2 if a != b else total - 1
        up = down + 1 if a != b else total + 1
        low[open_problems + 1] = low[open_problems]
        high[open_problems + 1] = high[open_problems]
        low[open_problems + 1, a, b] = low[open_problems + 1, b, a] = up
        high[open_problems, a, b] = high[open_problems, b, a] = down
        open_problems += 2 if up <= high[open_problems + 1, a, b] else 1
    return best, True


@kernel
def halved(flow):
    """Return two types with an odd number of half pairs, or -1."""
    k = flow.shape[0]
    for i in range(k):
        if flow[i, i] % 2 == 1:
            return i, i
        for j in range(i + 1, k):
            if (flow[i, j] + flow[j, i]) % 2 == 1:
                return i, j
    return -1, -1


@kernel
def transport(counts, weight, low, high):
    """Return the heaviest flow between types within the bounds, and its weight; -2 if there is none."""
    k = counts.shape[0]
    flow = low.copy()
    give = counts.astype(np.int64)
    take = give.copy()
    value = np.int64(0)
    room = counts.sum() // 2 * 2  # of an odd number of things one stays single
    for i in range(k):
        for j in range(k):
            give[i] -= low[i, j]
            take[j] -= low[i, j]
            room -= low[i, j]
            value += weight[i, j] * low[i, j]
    for i in range(k):
        if give[i] < 0 or take[i] < 0 or room < 0:
            return flow, np.int64(-2)
    gain = np.zeros(2 * k, np.int64)
    came_from = np.zeros(2 * k, np.int64)
    while True:
        end = best_path(flow, weight, low, high, give, take, gain, came_from)
        if end < 0 or room == 0:
            return flow, value
        amount = min(room, min_on_path(flow, low, high, give, take, came_from, end))
        room -= amount
        value += amount * gain[end]
        node = end
        while came_from[node] >= 0:
            before = came_from[node]
            if node >= k:
                flow[before, node - k] += amount
            else:
                flow[node, before - k] -= amount
            node = before
        give[node] -= amount
        take[end - k] -= amount


@kernel
def best_path(flow, weight, low, high, give, take, gain, came_from):
    """Find the augmenting path with the largest gain; return its end or -1.

    Givers are nodes 0 to k-1, takers k to 2k-1.
    """
    k = give.shape[0]
    unreached = np.int64(-(2**62))
    for i in range(k):
        gain[i] = 0 if give[i] > 0 else unreached
        gain[k + i] = unreached
        came_from[i] = came_from[k + i] = -1
    changed = True
    while changed:
        changed = False
        for i in range(k):
            if gain[i] == unreached:
                continue
            for j in range(k):
                if flow[i, j] < high[i, j] and gain[i] + weight[i, j] > gain[k + j]:
                    gain[k + j] = gain[i] + weight[i, j]
                    came_from[k + j] = i
                    changed = True
        for j in range(k):
            if gain[k + j] == unreached:
                continue
            for i in range(k):
                if flow[i, j] > low[i, j] and gain[k + j] - weight[i, j] > gain[i]:
                    gain[i] = gain[k + j] - weight[i, j]
                    came_from[i] = k + j
                    changed = True
    end = -1
    for j in range(k):
        if take[j] > 0 and gain[k + j] > 0 and (end < 0 or gain[k + j] > gain[end]):
            end = k + j
    return end


@kernel
def min_on_path(flow, low, high, give, take, came_from, end):
    """Return the capacity of a path."""
    k = give.shape[0]
    amount = take[end - k]
    node = end
    while came_from[node] >= 0:
        before = came_from[node]
        if node >= k:
            amount = min(amount, high[before, node - k] - flow[before, node - k])
        else:
            amount = min(amount, flow[node, before - k] - low[node, before - k])
        node = before
    return min(amount, give[node])
