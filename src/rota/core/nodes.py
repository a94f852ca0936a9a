"""Compiled steps of an engine: nodes that join and leave by plan, fail and are repaired."""

from rota.core.columns import BEGIN, JOB, PLACE, REMAINING, ROW, UNIT, UP
from rota.core.compiled import kernel
from rota.core.failures import OF_NODES, exponential, failures_at
from rota.core.kernels import catch_up, roll_back, stop, write
from rota.core.memory import (
    columns_of,
    events_of,
    floats,
    index_of,
    ints,
    nodes_of,
    plan_at,
    slot_node_of,
    slots_of,
)
from rota.core.timeline import EventKind

NODE_LOST, NODE_JOINED = int(EventKind.NODE_LOST), int(EventKind.NODE_JOINED)
PAUSED = int(EventKind.PAUSED)


@kernel
def change_nodes(e):
    """Take nodes away, then add nodes."""
    nodes = ints(e.change_node, e.changes)
    joins = ints(e.change_joins, e.changes)
    for joining in range(2):
        for i in range(e.changed, e.changed + e.changing):
            if joins[i] == joining and (e.failures == 0 or is_seen(e, nodes[i], joining)):
                if joining:
                    join_node(e, nodes[i])
                else:
                    lose_node(e, nodes[i])
    e.changed += e.changing


@kernel
def join_node(e, node):
    """Add a node."""
    nodes_of(e)[UP, node] = 1
    e.count = write(events_of(e), e.count, e.now_s, NODE_JOINED, node, 0.0, 0, 0)


@kernel
def lose_node(e, node):
    """Take a node away; its jobs wait again."""
    columns, events, slot_node, p = columns_of(e), events_of(e), slot_node_of(e), plan_at(e.current)
    index, slots = index_of(p), slots_of(p)
    nodes_of(e)[UP, node] = 0
    e.count = write(events, e.count, e.now_s, NODE_LOST, node, 0.0, 0, 0)
    for k in range(p.jobs):
        row, unit = index[ROW, k], index[UNIT, k]
        hit = False
        for i in range(index[BEGIN, unit], index[BEGIN, unit + 1]):
            hit |= slot_node[slots[i]] == node
        if hit and columns[PLACE, row] == k:
            catch_up(columns, row, e.now_s, e.checkpoint_every_s)
            e.count = roll_back(columns, row, events, e.count, e.now_s)
            stop(columns, row)
            e.running -= 1
            left = columns[REMAINING, row]
            e.count = write(events, e.count, e.now_s, PAUSED, int(columns[JOB, row]), left, 0, 0)


@kernel
def fail_nodes(e):
    """Let nodes fail, and repair others, that are due."""
    f = failures_at(e.failures)
    if f.turning == 0:
        return
    node_s, draws = floats(f.node_s, f.nodes), ints(f.node_draws, f.nodes)
    broken, away = ints(f.broken, f.nodes), ints(f.away, f.nodes)
    for node in range(f.nodes):
        if node_s[node] != e.now_s:
            continue
        broken[node] = 1 - broken[node]
        if away[node] == 0:
            if broken[node]:
                lose_node(e, node)
            else:
                join_node(e, node)
        draws[node] += 1
        mean_s = f.repair_mean_s if broken[node] else f.node_mean_s
        node_s[node] = e.now_s + exponential(f.seed, OF_NODES, node, draws[node]) * mean_s
    f.change_s = node_s.min()


@kernel
def is_seen(e, node, joins):
    """Note whether a node is away by plan; return whether that makes a difference, as it is not broken."""
    f = failures_at(e.failures)
    ints(f.away, f.nodes)[node] = 1 - joins
    return ints(f.broken, f.nodes)[node] == 0
