"""The compiled plan of Muri: what `muri.py` and `grouping.py` do, over arrays.

At instants at which a matching has too many types for `count_pairs`, or at which the catalogue is full, it
declines: then `Muri.plan` decides, with the same catalogue.
"""

import numpy as np

from rota.core.calls import call_fit, sort_rows
from rota.core.columns import (
    DURATION_S,
    ESTIMATE,
    EXECUTED_S,
    GPUS,
    ITERATION_S,
    KIND,
    KINDS,
    PLACE,
    ROW,
    SIZE,
    UNIT,
    UP,
)
from rota.core.compiled import kernel
from rota.core.driver import decide, decline, options_of
from rota.core.durations import EXACT, known_left_s
from rota.core.kernels import has_stages
from rota.core.memory import (
    columns_of,
    engine_at,
    floats,
    index_of,
    ints,
    nodes_of,
    order_of_jobs,
    pace_of,
    plan_at,
    scratch_of,
)
from rota.core.placement import ANCHORED
from rota.core.room import CONSOLIDATED
from rota.policies.cluster.grouping import ALL, WEIGHT_UNIT
from rota.policies.cluster.interleaving import FULL, catalogue_at, members_of, pair_of, single_of
from rota.policies.cluster.matching import FEW, assign, count_pairs
from rota.policies.cluster.taking import take

PACKING, RESOURCES, WEIGHT_LBD, AUTOPACK, KNOWS_DURATIONS, MATCHES = range(6)
"""Options of the plan."""
HEAD, TAIL, COUNT, NUMBER, HOME = range(5)
"""Rows over groups: the first and last member, how many there are, the number of the kind, the unit that the
group prefers to stay in."""
FROM, GROUPS, EACH, SET, ALONE = range(5)
"""Rows over buckets: where its groups begin, how many there are, GPUs of each, the set of device kinds, and
whether its jobs cannot share."""


@kernel
def plan_groups(address):
    """Plan as `Muri.plan`."""
    e = engine_at(address)
    options = options_of(e)
    columns, order, nodes = columns_of(e), order_of_jobs(e), nodes_of(e)
    keys, ranked = floats(e.keys, e.capacity), ints(e.ranking, e.active)
    for row in order:
        left_s = columns[EXECUTED_S, row]
        if options[KNOWS_DURATIONS]:
            left_s = known_left_s(columns, row)
            if columns[EXECUTED_S, row] <= 0.0:
                expected_s = columns[ESTIMATE, row] * columns[ITERATION_S, row]
                left_s = columns[DURATION_S, row] if e.knows == EXACT else expected_s
        keys[row] = left_s * columns[GPUS, row]
    sort_rows(e, order, keys, ranked)
    taken, ends = np.empty(e.active, np.int32), np.empty(e.active, np.int32)
    bucket_count = take(columns, ranked, nodes, int(options[PACKING]), scratch_of(e), taken, ends)
    taken = taken[: ends[bucket_count - 1] if bucket_count > 0 else 0]
    if options[MATCHES] and need_not_share(columns, nodes, taken):
        leaders = np.empty(len(taken), np.int32)
        sort_rows(e, taken, keys, leaders)
        keeps = 0 if e.each_instant else 1
        jobs = call_fit(e.fit, address, leaders, leaders, CONSOLIDATED, 0, keeps)
    else:
        jobs = place_groups(e, address, options, keys, taken, ends[:bucket_count])
        if jobs < 0:
            decline(e)
            return
    for row in order:
        keys[row] = -columns[GPUS, row]
    sort_rows(e, ranked, keys, order)
    decide(e, jobs, np.inf)


@kernel
def need_not_share(columns, nodes, taken):
    """Return whether all jobs fit the cluster, and may use any device."""
    gpus = 0.0
    for row in taken:
        gpus += columns[GPUS, row]
        if columns[KINDS, row] >= 0.0:
            return False
    return gpus <= slots_of_kinds(nodes, ALL)


@kernel
def slots_of_kinds(nodes, devices):
    """Return the number of slots that are up of a set of device kinds."""
    count = 0
    for node in range(nodes.shape[1]):
        if devices == ALL or (devices >> nodes[KIND, node]) & 1 == 1:
            count += nodes[SIZE, node] * nodes[UP, node]
    return count


@kernel
def place_groups(e, address, options, keys, taken, ends):
    """Group the jobs, place the groups, and fill the draft; return the number of jobs, or FULL to decline."""
    columns, nodes, c = columns_of(e), nodes_of(e), catalogue_at(e.memory)
    groups, following = np.empty((5, len(taken)), np.int64), np.full(e.capacity, -1, np.int32)
    buckets = np.empty((5, len(ends)), np.int64)
    if not fill_buckets(e, c, taken, ends, groups, buckets):
        return np.int64(FULL)
    missing = missing_slots(nodes, buckets)
    if options[MATCHES]:
        fine = group_by_matching(c, options, groups, following, buckets, missing)
    else:
        fine = group_in_runs(c, int(options[PACKING]), groups, following, buckets, missing)
    if not fine:
        return np.int64(FULL)
    times_s, heads = np.empty(len(taken)), np.empty(len(taken), np.int32)
    count = split_slow(c, options[AUTOPACK], columns, groups, following, buckets, heads, times_s)
    return place_units(e, address, columns, keys, heads[:count], times_s, following)


@kernel
def fill_buckets(e, c, taken, ends, groups, buckets):
    """Make a group of each job, bucket by bucket; return whether the catalogue had room."""
    columns, index = columns_of(e), index_of(plan_at(e.current))
    begin = 0
    for b in range(len(ends)):
        first = taken[begin]
        buckets[FROM, b], buckets[GROUPS, b] = begin, ends[b] - begin
        buckets[EACH, b], buckets[SET, b] = int(columns[GPUS, first]), int(columns[KINDS, first])
        buckets[ALONE, b] = not has_stages(columns, first)
        for g in range(begin, ends[b]):
            row = taken[g]
            place = -1 if e.each_instant else int(columns[PLACE, row])
            groups[HEAD, g] = groups[TAIL, g] = row
            groups[COUNT, g] = 1
            groups[HOME, g] = index[UNIT, place] if place >= 0 else -1
            groups[NUMBER, g] = single_of(c, columns, row)
            if groups[NUMBER, g] == FULL:
                return False
        begin = ends[b]
    return True


@kernel
def missing_slots(nodes, buckets):
    """Return the sets of device kinds that jobs are restricted to, and how many slots each lacks."""
    missing = np.empty((2, buckets.shape[1] + 1), np.int64)
    missing[0, 0] = ALL
    count = 1
    for b in range(buckets.shape[1]):
        known = False
        for s in range(count):
            known = known or missing[0, s] == buckets[SET, b]
        if not known:
            missing[0, count] = buckets[SET, b]
            count += 1
    missing = missing[:, :count]
    for s in range(count):
        missing[1, s] = -slots_of_kinds(nodes, missing[0, s])
    for b in range(buckets.shape[1]):
        add_missing(missing, buckets[SET, b], buckets[EACH, b] * buckets[GROUPS, b])
    return missing


@kernel
def add_missing(missing, devices, gpus):
    """Count slots that jobs restricted to a set of devices need."""
    for s in range(missing.shape[1]):
        others = missing[0, s]
        if others == ALL or (devices != ALL and devices & ~others == 0):
            missing[1, s] += gpus


@kernel
def must_share(missing, buckets, b):
    """Return whether jobs of a bucket have to share."""
    if buckets[ALONE, b]:
        return False
    for s in range(missing.shape[1]):
        if (missing[0, s] == ALL or missing[0, s] == buckets[SET, b]) and missing[1, s] > 0:
            return True
    return False


@kernel
def join(groups, following, a, b):
    """Let the members of a group follow those of another."""
    following[groups[TAIL, a]] = groups[HEAD, b]
    groups[TAIL, a] = groups[TAIL, b]
    groups[COUNT, a] += groups[COUNT, b]


@kernel
def group_by_matching(c, options, groups, following, buckets, missing):
    """Do what the function of this name in `grouping.py` does; return False to decline."""
    for _ in range(int(options[PACKING])):
        merged = False
        for b in range(buckets.shape[1]):
            if not must_share(missing, buckets, b):
                continue
            begin, count = buckets[FROM, b], buckets[GROUPS, b]
            if count < 2:
                continue
            mates, fine = match(c, options, groups[:, begin : begin + count])
            if not fine or not merge(c, groups, following, buckets, b, missing, mates):
                return False
            merged |= buckets[GROUPS, b] < count
        if not merged:
            break
    return True


@kernel
def match(c, options, groups):
    """Return the best partner for each group of a bucket, or -1, and whether it was found."""
    n = groups.shape[1]
    mates = np.empty(n, np.int64)
    kinds, types, counts = np.empty(FEW, np.int64), np.empty(n, np.int64), np.empty(FEW, np.int64)
    k = 0
    for g in range(n):  # the kinds, in ascending order
        kind = groups[NUMBER, g]
        at = 0
        while at < k and kinds[at] < kind:
            at += 1
        if at == k or kinds[at] != kind:
            if k == FEW:
                return mates, False
            for i in range(k, at, -1):
                kinds[i], counts[i] = kinds[i - 1], counts[i - 1]
            kinds[at], counts[at] = kind, 0
            k += 1
        counts[at] += 1
    for g in range(n):
        at = 0
        while kinds[at] != groups[NUMBER, g]:
            at += 1
        types[g] = at
    weight = np.zeros((k, k), np.int64)
    members, efficiency = members_of(c), floats(c.efficiency, c.room)
    for i in range(k):
        for j in range(i + 1):
            size = members[kinds[i]] + members[kinds[j]]
            if size > options[PACKING]:
                continue
            pair = pair_of(c, kinds[i], kinds[j])
            if pair == FULL:
                return mates, False
            if efficiency[pair] > options[WEIGHT_LBD] * (size / options[RESOURCES]):
                weight[i, j] = weight[j, i] = np.int64(np.rint(efficiency[pair] * WEIGHT_UNIT))
    pairs, exact = count_pairs(counts[:k].copy(), weight)
    if not exact:
        return mates, False
    return assign(types, pairs, groups[HOME].copy()), True


@kernel
def merge(c, groups, following, buckets, b, missing, mates):
    """Merge pairs in order, each in the place of its later half; return whether the catalogue had room."""
    begin = buckets[FROM, b]
    old = groups[:, begin : begin + buckets[GROUPS, b]].copy()
    kept = begin
    for later in range(len(mates)):
        earlier = mates[later]
        if earlier > later:
            continue
        if earlier >= 0 and must_share(missing, buckets, b):
            add_missing(missing, buckets[SET, b], -buckets[EACH, b])
            number = pair_of(c, old[NUMBER, earlier], old[NUMBER, later])
            if number == FULL:
                return False
            join(old, following, earlier, later)
            groups[:, kept] = old[:, earlier]
            groups[NUMBER, kept] = number
            groups[HOME, kept] = old[HOME, earlier] if old[HOME, earlier] >= 0 else old[HOME, later]
            kept += 1
            continue
        if earlier >= 0:
            groups[:, kept] = old[:, earlier]
            kept += 1
        groups[:, kept] = old[:, later]
        kept += 1
    buckets[GROUPS, b] = kept - begin
    return True


@kernel
def group_in_runs(c, largest, groups, following, buckets, missing):
    """Do what the function of this name in `grouping.py` does; return False to decline."""
    for b in range(buckets.shape[1]):
        begin, count = buckets[FROM, b], buckets[GROUPS, b]
        old = groups[:, begin : begin + count].copy()
        kept = begin
        for first in range(0, count, largest):
            for i in range(first + 1, min(first + largest, count)):
                if must_share(missing, buckets, b):
                    add_missing(missing, buckets[SET, b], -buckets[EACH, b])
                    join(old, following, first, i)
                    old[NUMBER, first] = pair_of(c, old[NUMBER, first], old[NUMBER, i])
                    if old[NUMBER, first] == FULL:
                        return False
                else:
                    groups[:, kept] = old[:, i]
                    kept += 1
            groups[:, kept] = old[:, first]
            kept += 1
        buckets[GROUPS, b] = kept - begin
    return True


@kernel
def split_slow(c, autopack, columns, groups, following, buckets, heads, times_s):
    """List the groups to run, by their first members; those that would be faster one by one are split."""
    split, pace_s = ints(c.split, c.room), floats(c.pace_s, c.room)
    listed = 0
    for b in range(buckets.shape[1]):
        for g in range(buckets[FROM, b], buckets[FROM, b] + buckets[GROUPS, b]):
            kind = groups[NUMBER, g]
            row = groups[HEAD, g]
            if not (groups[COUNT, g] > 1 and autopack and split[kind]):
                heads[listed] = row
                times_s[listed] = pace_s[kind]
                listed += 1
                continue
            while row >= 0:
                after = following[row]
                following[row] = -1
                heads[listed] = row
                times_s[listed] = columns[ITERATION_S, row]
                listed += 1
                row = after
    return listed


@kernel
def place_units(e, address, columns, keys, heads, times_s, following):
    """Place whole groups first fit, by their most urgent member; return the number of jobs.

    The keys are gone then.
    """
    urgency = np.empty(len(heads))
    for i in range(len(heads)):
        row = heads[i]
        urgency[i] = keys[row]
        while row >= 0:
            urgency[i] = min(urgency[i], keys[row])
            row = following[row]
    ranks = np.argsort(urgency, kind="mergesort")
    leaders, anchors = heads[ranks], heads[ranks]
    for i in range(len(heads)):
        keys[leaders[i]] = times_s[ranks[i]]
        row = leaders[i]
        while row >= 0 and columns[PLACE, row] < 0.0:
            row = following[row]
        if row >= 0:
            anchors[i] = row
    units = call_fit(e.fit, address, leaders, anchors, CONSOLIDATED, 0, 0 if e.each_instant else ANCHORED)
    draft = plan_at(e.draft)
    index, pace_s = index_of(draft), pace_of(draft)
    placed = index[ROW, :units].copy()
    jobs = 0
    for unit in range(units):
        row = placed[unit]
        while row >= 0:
            index[ROW, jobs] = row
            index[UNIT, jobs] = unit
            pace_s[jobs] = keys[placed[unit]]
            jobs += 1
            row = following[row]
    return np.int64(jobs)
