"""A lane: an engine whose policy ranks jobs by scores from outside, and the kernels that step it.

A step takes the scores, plans, commits, and advances to the next instant at which there are jobs; then it
writes what is observed. The scores come from Python, or from a compiled scorer.
"""

# mypy: allow-untyped-decorators, allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

from functools import partial

import numpy as np

from rota.core.calls import call_advance, call_commit, call_plan, call_score
from rota.core.columns import GROUP, JOB, OWN, SIZE, SUBMIT_S, UP
from rota.core.compiled import carray, kernel
from rota.core.driver import decide
from rota.core.memory import (
    all_rows,
    columns_of,
    engine_at,
    events_of,
    floats,
    ints,
    nodes_of,
    pointer,
    table_of,
)
from rota.core.stepping import DONE, OK
from rota.core.timeline import EventKind

BAD_SCORE = -51
"""What a step returns if a score is not a number."""
SCORE = "score"
"""Name of the policy's own column that has the scores."""

DECIDE, COMMIT, ADVANCE, OVER = range(4)
"""Stages of a lane: a decision is due, a plan is to be committed, time is to pass, the episode is over."""
JCT, SLOWDOWN, MAKESPAN, FAIRNESS = range(4)
"""Sums of which a reward is the negative increase."""
SOLO_S, RATE, ASKED, FACTS = range(4)
"""Facts of the jobs of an episode, a row each: the seconds that a job takes alone, how fast its slowdown
grows, the GPUs that it asks for; and the number of the rows."""

LANE = np.dtype(
    [
        (name, "i8")
        for name in (
            # addresses: of the engine, of code (0 if there is none), and of arrays
            *("engine", "plan", "advance", "commit", "observe", "score"),
            *("scores", "jobs", "cluster", "mask", "parameters", "facts", "arrivals", "groups"),
            # sizes
            *("width", "job_fields", "cluster_fields", "parameter_count", "job_count", "group_count"),
            # rules
            *("reward_kind", "knows_durations"),
            # how things stand
            *("stage", "code", "active", "shown", "left", "steps"),
        )
    ]
    + [
        (name, "f8")
        for name in (
            *("decide_every_s", "first_s", "now_s", "decided_s", "before"),
            *("reward", "total"),
            # what grows between two instants, and what has added up
            *("rate", "asked", "available", "slowdown", "fairness", "span_s", "asked_s", "gpu_s"),
            # of the jobs that have finished: their number, and the sums of completion times and slowdowns
            *("finished", "jct_s", "slowdowns"),
        )
    ]
)
STRIDE = LANE.itemsize

ARRIVED, FINISHED = int(EventKind.ARRIVED), int(EventKind.FINISHED)
TINY = 1e-300


@kernel
def lane_at(address):
    """Return the record of a lane."""
    return carray(pointer(address), 1, LANE)[0]


@kernel
def facts_of(lane):
    """Return the facts of the jobs of a lane."""
    return carray(pointer(lane.facts), (FACTS, lane.job_count), np.float64)


@kernel
def arrivals_of(lane):
    """Return the GPU-seconds that had been asked for, and that there had been, as each job arrived."""
    return carray(pointer(lane.arrivals), (2, lane.job_count), np.float64)


@kernel
def observed_jobs(lane):
    """Return what is observed of each job: a row per position."""
    return carray(pointer(lane.jobs), (lane.width, lane.job_fields), np.float32)


@kernel
def observed_cluster(lane):
    """Return what is observed of the cluster."""
    return carray(pointer(lane.cluster), lane.cluster_fields, np.float32)


@kernel
def mask_of(lane):
    """Return which positions have a job."""
    return carray(pointer(lane.mask), lane.width, np.int8)


@kernel
def groups_of(lane):
    """Return the sum of ln(1 + solo seconds) and the number of ended jobs: of all, then of each group."""
    return carray(pointer(lane.groups), (2, lane.group_count), np.float64)


@kernel
def summed(lane, e):
    """Return the sum of which the reward is the negative increase."""
    if lane.reward_kind == SLOWDOWN:
        return lane.slowdown
    if lane.reward_kind == MAKESPAN:
        return lane.span_s
    if lane.reward_kind == FAIRNESS:
        return lane.fairness
    return e.active_s


@kernel
def step(address):
    """Step a lane; return OK, or why it has to be resolved in Python and the step made again."""
    lane = lane_at(address)
    e = engine_at(lane.engine)
    if lane.stage == DECIDE:
        if not take_scores(lane, e):
            return BAD_SCORE
        call_plan(lane.plan, lane.engine)
        lane.before = summed(lane, e)
        lane.stage = COMMIT
    while lane.stage != DECIDE:
        if lane.stage == COMMIT:
            code = put_into_effect(lane, e)
        else:
            code = let_pass(lane, e)
            if code == DONE:
                lane.stage = OVER
                break
        if code != OK:
            return code
    lane.reward = lane.before - summed(lane, e)
    lane.total += lane.reward
    lane.now_s = e.now_s
    lane.active = e.active
    call_plan(lane.observe, address)
    return OK


@kernel
def take_scores(lane, e):
    """Put the scores into the policy's column, negated; return whether they are numbers."""
    columns, order = columns_of(e), all_rows(e)
    scores = floats(lane.scores, lane.width)
    if lane.score:
        jobs, parameters = observed_jobs(lane), floats(lane.parameters, lane.parameter_count)
        call_score(lane.score, jobs[: lane.shown], observed_cluster(lane), parameters, scores[: lane.shown])
    for i in range(lane.shown):
        if np.isnan(scores[i]):
            return False
        columns[OWN, order[i]] = -scores[i]
    for i in range(lane.shown, e.active):
        columns[OWN, order[i]] = np.inf
    lane.decided_s = e.now_s
    lane.steps += 1
    return True


@kernel
def put_into_effect(lane, e):
    """Commit the draft, and note what grows until the next instant."""
    wake_s = e.wakes_s
    if 0 < e.planned < e.active:
        wake_s = min(wake_s, e.now_s + lane.decide_every_s)
    code = call_commit(lane.commit, lane.engine, e.draft, e.planned, wake_s, ints(e.order, 0))
    if code != OK:
        return code
    columns, order, facts, nodes = columns_of(e), all_rows(e), facts_of(lane), nodes_of(e)
    lane.rate = 0.0
    lane.asked = 0.0
    for i in range(e.active):
        job = int(columns[JOB, order[i]])
        lane.rate += facts[RATE, job]
        lane.asked += facts[ASKED, job]
    available = 0
    for node in range(e.node_count):
        available += nodes[SIZE, node] * nodes[UP, node]
    lane.available = available / e.slots_per_gpu
    lane.stage = ADVANCE
    return OK


@kernel
def let_pass(lane, e):
    """Advance, and add up what has grown; without jobs, let an empty plan follow."""
    from_s = max(e.now_s, lane.first_s)
    first = e.count if e.keeps_timeline else 0
    active = call_advance(lane.advance, lane.engine)
    if active < 0:
        return active
    elapsed_s = max(e.now_s - from_s, 0.0)
    lane.slowdown += lane.rate * elapsed_s
    lane.span_s += elapsed_s
    lane.asked_s += lane.asked * elapsed_s
    lane.gpu_s += lane.available * elapsed_s
    account(lane, e, first)
    lane.stage = DECIDE
    if active == 0:
        decide(e, 0, np.inf)
        lane.stage = COMMIT
    return OK


@kernel
def account(lane, e, first):
    """Open the accounts of jobs that have arrived, and close those of jobs that have ended."""
    events, facts, arrivals, table = events_of(e), facts_of(lane), arrivals_of(lane), table_of(e)
    groups = groups_of(lane)
    for i in range(first, e.count):
        job = events[i].job
        if events[i].kind == ARRIVED:
            arrivals[0, job] = lane.asked_s
            arrivals[1, job] = lane.gpu_s
        elif events[i].kind == FINISHED:
            jct_s, solo_s = e.now_s - table[SUBMIT_S, job], facts[SOLO_S, job]
            lane.slowdown += max(1.0 - jct_s * facts[RATE, job], 0.0)
            lane.slowdowns += max(jct_s * facts[RATE, job], 1.0)
            lane.jct_s += jct_s
            lane.finished += 1.0
            asked_s = lane.asked_s - arrivals[0, job]
            crowding = max(asked_s / max(lane.gpu_s - arrivals[1, job], TINY), 1.0)
            lane.fairness += jct_s / (solo_s * crowding)
            for group in (0, 1 + int(table[GROUP, job])):
                groups[0, group] += np.log(1.0 + solo_s)
                groups[1, group] += 1.0


@partial(kernel, nogil=True)
def step_many(lanes, first, last):
    """Step lanes as often as each has steps left, unless its episode ends before."""
    for number in range(first, last):
        address = lanes + STRIDE * number
        lane = lane_at(address)
        while lane.left > 0 and lane.stage != OVER:
            code = step(address)
            if code != OK:
                lane.code = code
                break
            lane.left -= 1


@kernel
def negated_score(columns, row, now_s):
    """Return the key of a job: its score from outside, negated."""
    return columns[OWN, row]
