"""AntMan: guaranteed jobs get GPUs of their own, opportunistic ones share them."""

import math
from dataclasses import dataclass

import numpy as np

from rota.core.calls import sort_rows
from rota.core.columns import (
    BEGIN,
    COMPUTE_S,
    FIRST,
    GPUS,
    ITERATION_S,
    JOB,
    KINDS,
    LISTED,
    LOAD_S,
    PLACE,
    PREFERENCE,
    PRIORITY,
    RANK,
    ROW,
    SIZE,
    SYNC_S,
    UNIT,
    UP,
)
from rota.core.compiled import kernel
from rota.core.costs import Ties
from rota.core.driver import CompiledPlan, decide
from rota.core.kernels import has_stages
from rota.core.memory import (
    columns_of,
    engine_at,
    index_of,
    ints,
    nodes_of,
    order_of_jobs,
    own_slots_of,
    pace_of,
    plan_at,
    scratch_of,
    slots_of,
)
from rota.core.policy import Needs, Plan
from rota.core.room import last_rank, may_use, order_of, ranks_for
from rota.core.view import ClusterView

NEEDS = Needs(
    own=("phase", "pin"),
    own_slots=("load", "owner", "owner_job", "guest", "guest_job"),
    sharing=2,
    durations="unused",
    ties=Ties(ends_rel=1e-9, ends_abs=1e-4, arrivals_rel=1e-9),
)

# Own columns of a job. A pin is a node's number plus one, so that a new job's 0 means none.
PHASE, PIN = map(NEEDS.row, NEEDS.own)
WAITING, RESERVING, STARTED = 0, 1, 2

# Own columns of a slot. Rows and jobs are stored plus one: 0 is none.
LOAD, OWNER, OWNER_JOB, GUEST, GUEST_JOB = map(NEEDS.row, NEEDS.own_slots)

# How much a job adds to the load of its GPUs: a guaranteed one nine tenths of its share when it reserves
# them, the rest when it has all. Sums and differences leave a residue in the last bits that takes part in
# the sort, as in the reference.
GUARANTEED, OPPORTUNISTIC, FULL = 0.1, 0.9, 0.8
RESERVED, COMPLETED = 0.9 * GUARANTEED, 0.1 * GUARANTEED

# A job whose stages are not known cannot share: it is owner and guest of its GPUs at once. If it is
# guaranteed it reserves as others do, and starts when the last guest of its GPUs has left.


@dataclass(frozen=True, slots=True)
class AntMan:
    """No job is ever preempted or migrated; guaranteed jobs reserve GPUs until they have enough."""

    @property
    def needs(self) -> Needs:
        return NEEDS

    @property
    def compiled(self) -> CompiledPlan:
        return CompiledPlan(plan_sharing)

    def plan(self, view: ClusterView) -> Plan:
        release(view.columns, view.order, view.nodes, view.own_slots)
        plan = view.draft
        plan.order = view.rank(view.priority)
        old = view.current
        plan.jobs = admit(
            view.columns, plan.order, view.nodes, view.own_slots, view.scratch,
            old.index, old.slots, plan.index, plan.slots, plan.pace_s,
        )  # fmt: skip
        plan.wake_at_s = np.inf
        return plan


@kernel
def plan_sharing(address):
    """Plan as `AntMan.plan`."""
    e = engine_at(address)
    columns, order, nodes, slots = columns_of(e), order_of_jobs(e), nodes_of(e), own_slots_of(e)
    old, new, ranked = plan_at(e.current), plan_at(e.draft), ints(e.ranking, e.active)
    release(columns, order, nodes, slots)
    sort_rows(e, order, columns[PRIORITY], ranked)
    jobs = admit(
        columns, ranked, nodes, slots, scratch_of(e),
        index_of(old), slots_of(old), index_of(new), slots_of(new), pace_of(new),
    )  # fmt: skip
    order[:] = ranked
    decide(e, jobs, np.inf)


@kernel
def release(columns, order, nodes, slots):
    """Release the GPUs of jobs that ended or lost a node."""
    lost = False
    for i in range(order.shape[0]):
        lost |= columns[PHASE, order[i]] == STARTED and columns[PLACE, order[i]] < 0.0
    if lost:
        withdraw(columns, order, slots)
    for node in range(nodes.shape[1]):
        for slot in range(nodes[FIRST, node], nodes[FIRST, node] + nodes[SIZE, node]):
            if slots[OWNER, slot] > 0.0:
                row = int(slots[OWNER, slot]) - 1
                gone = columns[JOB, row] + 1.0 != slots[OWNER_JOB, slot]
                if gone or columns[PHASE, row] == WAITING or nodes[UP, node] == 0:
                    slots[OWNER, slot] = 0.0
                    slots[LOAD, slot] -= GUARANTEED if gone or columns[PHASE, row] == WAITING else RESERVED
                    if not gone and nodes[UP, node] == 0:
                        columns[PIN, row] = 0.0
            if slots[GUEST, slot] > 0.0:
                row = int(slots[GUEST, slot]) - 1
                gone = columns[JOB, row] + 1.0 != slots[GUEST_JOB, slot] or columns[PHASE, row] == WAITING
                if gone or (nodes[UP, node] == 0 and columns[PHASE, row] == RESERVING):
                    slots[GUEST, slot] = 0.0
                    slots[LOAD, slot] -= OPPORTUNISTIC


@kernel
def withdraw(columns, order, slots):
    """Reset jobs that do not run, in order: an older job must not wait for a younger one's GPUs."""
    for slot in range(slots.shape[1]):
        row = int(slots[OWNER, slot]) - 1
        if (
            row >= 0
            and columns[PHASE, row] == RESERVING
            and columns[JOB, row] + 1.0 == slots[OWNER_JOB, slot]
        ):
            slots[OWNER, slot] = 0.0
            slots[LOAD, slot] -= RESERVED
    for i in range(order.shape[0]):
        if columns[PLACE, order[i]] < 0.0:
            columns[PHASE, order[i]] = WAITING
            columns[PIN, order[i]] = 0.0


@kernel
def admit(columns, order, nodes, slots, scratch, old_index, old_slots, index, chosen, pace_s):
    """Start the jobs that can start, let the others reserve, and write the plan of all that run."""
    available = scratch[0]
    total = 0
    for node in range(nodes.shape[1]):
        available[node] = 0
        for slot in range(nodes[FIRST, node], nodes[FIRST, node] + nodes[SIZE, node]):
            if slots[OWNER, slot] == 0.0 and nodes[UP, node]:
                available[node] += 1
        total += available[node]
    candidates = 0
    for slot in range(slots.shape[1]):
        candidates += slots[LOAD, slot] < FULL
    planned = 0
    used = 0
    index[BEGIN, 0] = 0
    for i in range(order.shape[0]):
        row = order[i]
        gpus = int(columns[GPUS, row])
        begin = used
        if columns[PHASE, row] == STARTED:
            first = old_index[BEGIN, old_index[UNIT, int(columns[PLACE, row])]]
            for s in range(gpus):
                chosen[used] = old_slots[first + s]
                used += 1
        elif columns[PRIORITY, row] == 0.0:
            if total > 0 or not has_stages(columns, row):
                total -= reserve(columns, row, gpus, nodes, slots, available)
            if columns[PHASE, row] == STARTED:
                used = owned(columns, row, slots, chosen, used)
        elif gpus <= candidates:
            used = share_gpus(columns, row, gpus, nodes, slots, chosen, used)
            if used > begin:
                candidates -= gpus
        if used > begin:
            index[ROW, planned] = row
            index[UNIT, planned] = planned
            planned += 1
            index[BEGIN, planned] = used
    for k in range(planned):
        pace_s[k] = step_time_s(columns, index[ROW, k], chosen, index[BEGIN, k], index[BEGIN, k + 1], slots)
    return planned


@kernel
def reserve(columns, row, gpus, nodes, slots, available):
    """Take available GPUs for a guaranteed job and start it once it has all; return the number taken."""
    kinds, order = columns[KINDS, row], order_of(nodes, int(columns[PREFERENCE, row]))
    largest = 0
    for node in range(nodes.shape[1]):
        if nodes[UP, node] and may_use(nodes, node, kinds):
            largest = max(largest, nodes[SIZE, node])
    have = held(columns, row, slots) if columns[PHASE, row] == RESERVING else 0
    several = have > 0 and columns[PIN, row] == 0.0  # it continues to reserve whole nodes
    taken = 0
    if gpus <= largest and not several:
        node = int(columns[PIN, row]) - 1
        if node < 0:
            node = roomiest(gpus, kinds, nodes, order, available)
            columns[PIN, row] = node + 1.0
        if node < 0:
            return 0
        taken = own(columns, row, node, min(gpus - have, available[node]), nodes, slots, available)
    else:
        taken = own_whole(columns, row, gpus - have, nodes, order, slots, available)
    columns[PHASE, row] = RESERVING
    cleared = has_stages(columns, row) or close_to_guests(columns, row, slots)
    if have + taken == gpus and cleared:
        columns[PHASE, row] = STARTED
        for slot in range(slots.shape[1]):
            if slots[OWNER_JOB, slot] == columns[JOB, row] + 1.0 and slots[OWNER, slot] > 0.0:
                slots[LOAD, slot] += COMPLETED
    return taken


@kernel
def own_whole(columns, row, gpus, nodes, order, slots, available):
    """Take the GPUs of idle nodes until there are enough; of one type, if one has enough."""
    idle = np.zeros(nodes.shape[1], np.int32)
    room = np.zeros(last_rank(order) + 1, np.int32)
    for node in range(nodes.shape[1]):
        if available[node] == nodes[SIZE, node] and may_use(nodes, node, columns[KINDS, row]):
            idle[node] = available[node]
            room[order[RANK, node]] += idle[node]
    fastest, slowest = ranks_for(room, gpus)
    taken = 0
    for position in range(nodes.shape[1]):
        node = order[LISTED, position]
        if fastest <= order[RANK, node] <= slowest:
            wanted = min(gpus - taken, idle[node])
            taken += 0 if wanted == 0 else own(columns, row, node, wanted, nodes, slots, available)
    return taken


@kernel
def roomiest(gpus, kinds, nodes, order, available):
    """Return the first node with enough available GPUs, else the first large enough one with the most.

    -1 if no such node has any.
    """
    best = -1
    for position in range(nodes.shape[1]):
        node = order[LISTED, position]
        if not may_use(nodes, node, kinds):
            continue
        if available[node] >= gpus:
            return node
        large_enough = nodes[SIZE, node] >= gpus
        if large_enough and available[node] > (0 if best < 0 else available[best]):
            best = node
    return best


@kernel
def own(columns, row, node, count, nodes, slots, available):
    """Take the lowest-numbered available GPUs of a node."""
    left = count
    for slot in range(nodes[FIRST, node], nodes[FIRST, node] + nodes[SIZE, node]):
        if left > 0 and slots[OWNER, slot] == 0.0 and nodes[UP, node]:
            slots[OWNER, slot] = row + 1.0
            slots[OWNER_JOB, slot] = columns[JOB, row] + 1.0
            slots[LOAD, slot] += RESERVED
            left -= 1
    available[node] -= count - left
    return count - left


@kernel
def close_to_guests(columns, row, slots):
    """Admit no more guests to the GPUs that a job has reserved; return whether the last one has left."""
    closed = True
    for slot in range(slots.shape[1]):
        if slots[OWNER, slot] == row + 1.0 and slots[OWNER_JOB, slot] == columns[JOB, row] + 1.0:
            if slots[GUEST, slot] == 0.0:
                invite(columns, row, slot, slots)
            closed &= slots[GUEST, slot] == row + 1.0
    return closed


@kernel
def held(columns, row, slots):
    """Return the number of GPUs that a job has reserved so far."""
    count = 0
    for slot in range(slots.shape[1]):
        count += slots[OWNER, slot] == row + 1.0 and slots[OWNER_JOB, slot] == columns[JOB, row] + 1.0
    return count


@kernel
def owned(columns, row, slots, chosen, used):
    """Record the GPUs of a guaranteed job."""
    for slot in range(slots.shape[1]):
        if slots[OWNER, slot] == row + 1.0 and slots[OWNER_JOB, slot] == columns[JOB, row] + 1.0:
            chosen[used] = slot
            used += 1
    return used


@kernel
def share_gpus(columns, row, gpus, nodes, slots, chosen, used):
    """Give an opportunistic job the least loaded GPUs without a guest, if there are enough.

    A job that cannot share gets GPUs without an owner, and owns them. If there are several types, it gets
    idle GPUs first, preferred ones before others; all of one type, if one has enough.
    """
    n = 0
    alone = not has_stages(columns, row)
    order = order_of(nodes, int(columns[PREFERENCE, row]))
    where = np.empty(slots.shape[1], np.int32)
    load = np.empty(slots.shape[1])
    rank = np.empty(slots.shape[1], np.int32)
    for position in range(nodes.shape[1]):
        node = order[LISTED, position]
        if not nodes[UP, node] or not may_use(nodes, node, columns[KINDS, row]):
            continue
        for slot in range(nodes[FIRST, node], nodes[FIRST, node] + nodes[SIZE, node]):
            if slots[LOAD, slot] < FULL and not (alone and slots[OWNER, slot] > 0.0):
                where[n] = slot
                load[n] = slots[LOAD, slot]
                rank[n] = order[RANK, node]
                n += 1
    if n < gpus:
        return used
    ranked = np.argsort(load[:n], kind="mergesort")
    if last_rank(order) > 0:
        ranked = ranked[np.argsort(turns(where[:n], rank[:n], slots, gpus)[ranked], kind="mergesort")]
    for i in range(gpus):
        slot = where[ranked[i]]
        invite(columns, row, slot, slots)
        if alone:
            slots[OWNER, slot] = row + 1.0
            slots[OWNER_JOB, slot] = columns[JOB, row] + 1.0
            slots[LOAD, slot] += GUARANTEED
        chosen[used] = slot
        used += 1
    columns[PHASE, row] = STARTED
    return used


@kernel
def turns(where, rank, slots, gpus):
    """Return the rank of each GPU: idle ones first, the fastest first, those of other types last."""
    ranks = rank.max() + 1
    room = np.zeros((2, ranks), np.int32)  # of idle ones, of all
    for i in range(where.shape[0]):
        room[0, rank[i]] += slots[OWNER, where[i]] == 0.0
        room[1, rank[i]] += 1
    fastest, slowest = ranks_for(room[0 if room[0].sum() >= gpus else 1], gpus)
    found = np.empty(where.shape[0], np.int32)
    for i in range(where.shape[0]):
        found[i] = rank[i] if slots[OWNER, where[i]] == 0.0 else ranks + rank[i]
        if not fastest <= rank[i] <= slowest:
            found[i] = 2 * ranks
    return found


@kernel
def invite(columns, row, slot, slots):
    """Make a job the guest of a GPU."""
    slots[GUEST, slot] = row + 1.0
    slots[GUEST_JOB, slot] = columns[JOB, row] + 1.0
    slots[LOAD, slot] += OPPORTUNISTIC


@kernel
def step_time_s(columns, row, chosen, begin, end, slots):
    """Return the step time of a job: a guaranteed one runs as if alone, a guest waits for its hosts."""
    pace_s = columns[ITERATION_S, row]
    if columns[PRIORITY, row] == 0.0:
        return pace_s
    for i in range(begin, end):
        slot = chosen[i]
        host = int(slots[OWNER, slot]) - 1
        if host >= 0 and host != row and columns[PHASE, host] == STARTED:
            turns = host_iterations(
                columns[LOAD_S, row], columns[COMPUTE_S, row], columns[SYNC_S, row],
                columns[LOAD_S, host], columns[COMPUTE_S, host], columns[SYNC_S, host],
            )  # fmt: skip
            pace_s = max(pace_s, turns * columns[ITERATION_S, host])
    return pace_s


@kernel
def host_iterations(load, compute, sync, host_load, host_compute, host_sync):
    """Return how many iterations of its host pass in one iteration of a guest.

    Each stage of the guest uses the gaps in which the host is at its other two stages; the rest of a gap is
    used by the guest's next stage.
    """
    turns = 0.0
    gap = host_compute + host_sync
    if gap > 0.0:
        turns += math.floor(load / gap)
        rest = load % gap
        if rest > 0.0:
            turns += 1
            compute -= min(compute, host_sync, gap - rest)
    gap = host_load + host_sync
    if gap > 0.0:
        turns += math.floor(compute / gap)
        rest = compute % gap
        if rest > 0.0:
            turns += 1
            if rest < host_load:
                sync -= min(sync, host_load + host_compute - rest)
    gap = host_load + host_compute
    if gap > 0.0:
        turns += math.floor(sync / gap)
        if sync % gap > host_load:
            turns += 1
    return turns
