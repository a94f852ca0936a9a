"""Batches of engines that are stepped together in compiled code, on threads, without Python's lock.

A *lane* is an engine whose policy ranks jobs by scores from outside. A step of a lane takes the scores,
plans, commits, and advances to the next instant at which there are jobs; then it writes what is observed. The
scores come from Python, or from a compiled scorer: then whole episodes run without Python.
"""

# mypy: allow-untyped-decorators, allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numba import types

from rota.core import stepping
from rota.core.arrays import Array, Floats, Singles
from rota.core.calls import (
    ADVANCE_TYPES,
    COMMIT_TYPES,
    PLAN_TYPES,
    SCORE_TYPES,
    call_advance,
    call_commit,
    call_plan,
    call_score,
)
from rota.core.columns import JOB, OWN, PROFILE, SIZE, SUBMIT_S, UP
from rota.core.compiled import carray, kernel
from rota.core.driver import CompiledKey, code_at, decide, prepare
from rota.core.engine import JobsEngine, Snapshot
from rota.core.errors import InputError
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
from rota.core.placement import Style
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
    """Return the sum of ln(1 + solo seconds) and the number of ended jobs: of all, then of each profile."""
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
            asked_s = lane.asked_s - arrivals[0, job]
            crowding = max(asked_s / max(lane.gpu_s - arrivals[1, job], TINY), 1.0)
            lane.fairness += jct_s / (solo_s * crowding)
            for group in (0, 1 + int(table[PROFILE, job])):
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


@dataclass(frozen=True, slots=True)
class LaneEngine:
    """An engine for a lane: at its beginning, with a policy that ranks by scores from outside."""

    engine: JobsEngine
    facts: Floats
    """Facts of its jobs: rows SOLO_S, RATE and ASKED."""
    plan: int
    """Address of the plan of its policy."""
    start: Snapshot

    @classmethod
    def of(cls, engine: JobsEngine, facts: Floats, style: Style) -> "LaneEngine":
        """Prepare an engine that was made with a column for the scores, and has not been advanced yet."""
        plan, _ = prepare(engine, CompiledKey(negated_score, style=style))
        return cls(engine, np.ascontiguousarray(facts), plan, engine.snapshot())

    def rewind(self) -> None:
        """Make the engine as it was at its beginning."""
        self.engine.restore(self.start)

    @property
    def groups(self) -> int:
        """The number of groups of which sums are kept: all jobs, and each profile."""
        return 2 + int(self.engine.table[PROFILE].max())


BEGIN_AT_0 = (
    *("reward", "total", "before", "steps", "code", "rate", "asked", "available"),
    *("slowdown", "fairness", "span_s", "asked_s", "gpu_s"),
)
STEP_TYPES = (types.int64, types.int64, types.int64)
FEWEST = 16  # lanes for which more than one thread is worth its start


class EngineBatch:
    """Lanes, their arrays, and the threads that step them."""

    def __init__(
        self,
        lanes: int,
        observe: Any,
        shape: tuple[int, int, int],
        *,
        reward: int = JCT,
        knows_durations: bool = True,
        decide_every_s: float = np.inf,
        threads: int = 1,
    ) -> None:
        """Make lanes without engines.

        `observe` is a kernel that takes the address of a lane and writes what is observed there; `shape` is
        how much that is: positions of jobs, numbers per job, numbers about the cluster.
        """
        width, job_fields, cluster_fields = shape
        self.lanes = np.zeros(lanes, LANE)
        """Records of the lanes."""
        self.scores = np.zeros((lanes, width))
        """Scores, a row per lane: the job with the highest is first."""
        self.jobs: Singles = np.zeros((lanes, width, job_fields), np.float32)
        self.cluster: Singles = np.zeros((lanes, cluster_fields), np.float32)
        self.mask = np.zeros((lanes, width), np.int8)
        """Observations of all lanes, and which positions have a job."""
        self._kept: list[Any] = [None] * lanes
        self._scorer: Any = None
        arrays: dict[str, Array] = {
            "scores": self.scores,
            "jobs": self.jobs,
            "cluster": self.cluster,
            "mask": self.mask,
        }
        for name, array in arrays.items():
            self.lanes[name] = array.ctypes.data + array.strides[0] * np.arange(lanes)
        values = {
            "advance": code_at(stepping.advance, types.int64, *ADVANCE_TYPES),
            "commit": code_at(stepping.commit, types.int64, *COMMIT_TYPES),
            "observe": code_at(observe, types.none, *PLAN_TYPES),
            "width": width, "job_fields": job_fields, "cluster_fields": cluster_fields,
            "reward_kind": reward, "knows_durations": knows_durations, "decide_every_s": decide_every_s,
            "stage": OVER,
        }  # fmt: skip
        for name, value in values.items():
            self.lanes[name] = value
        self._step_many = step_many.compile(STEP_TYPES)
        self._threads = threads if lanes >= FEWEST else 1
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None

    def __len__(self) -> int:
        return len(self.lanes)

    def begin(self, number: int, lane_engine: "LaneEngine") -> None:
        """Give a lane an engine at its beginning; the first step goes to the first decision."""
        lane = self.lanes[number]
        engine, facts = lane_engine.engine, lane_engine.facts
        arrivals, groups = np.zeros((2, facts.shape[1])), np.zeros((2, lane_engine.groups))
        self._kept[number] = lane_engine, arrivals, groups
        for name in BEGIN_AT_0:
            lane[name] = 0
        lane["engine"], lane["plan"] = engine.address, lane_engine.plan
        lane["facts"], lane["job_count"] = facts.ctypes.data, facts.shape[1]
        lane["arrivals"], lane["groups"] = arrivals.ctypes.data, groups.ctypes.data
        lane["group_count"] = groups.shape[1]
        lane["first_s"] = lane["decided_s"] = engine.table[SUBMIT_S, 0]
        lane["stage"] = ADVANCE

    def engine(self, number: int) -> JobsEngine:
        """Return the engine of a lane, with its view as things stand."""
        found: JobsEngine = self._kept[number][0].engine
        found.see()
        return found

    def step(self, parts: int = 1) -> None:
        """Step all lanes as often as they have steps `left`, on all threads.

        Each thread has so many parts of the lanes to do, one after the other. Raises Stuck if jobs wait and
        nothing will happen, and InputError if a score is not a number.
        """
        while True:
            self._run(parts * self._threads)
            waiting = np.flatnonzero(self.lanes["code"])
            if not len(waiting):
                return
            for number in waiting.tolist():
                self._resolve(number)

    def use_scorer(self, function: Any, parameters: Floats) -> None:
        """Let a compiled function give the scores, with a row of parameters for each lane.

        `function(jobs, cluster, parameters, scores)` reads what is observed and fills `scores`. With None the
        scores come from outside again.
        """
        self._scorer = function, parameters  # kept as long as it is used
        self.lanes["score"] = 0 if function is None else code_at(function, types.none, *SCORE_TYPES)
        self.lanes["parameters"] = parameters.ctypes.data + parameters.strides[0] * np.arange(len(self.lanes))
        self.lanes["parameter_count"] = parameters.shape[1]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _run(self, parts: int) -> None:
        address, lanes = self.lanes.ctypes.data, len(self.lanes)
        if self._pool is None:
            self._step_many(address, 0, lanes)
            return
        edges = [lanes * part // parts for part in range(parts + 1)]
        for done in [self._pool.submit(self._step_many, address, *part) for part in pairwise(edges)]:
            done.result()

    def _resolve(self, number: int) -> None:
        """Do what compiled code needs to go on."""
        code = int(self.lanes["code"][number])
        self.lanes["code"][number] = 0
        if code == BAD_SCORE:
            raise InputError(f"environment {number}: a score is not a number; give each job a number")
        self.engine(number).resolve(code)
