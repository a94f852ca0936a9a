"""Batches of engines that are stepped together in compiled code, on threads, without Python's lock.

Each engine is in a lane (`rota.core.lanes`). With a compiled scorer whole episodes run without Python.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from weakref import finalize

import numpy as np
from numba import types

from rota.core import stepping
from rota.core.arrays import Array, Floats, Singles
from rota.core.calls import ADVANCE_TYPES, COMMIT_TYPES, PLAN_TYPES, SCORE_TYPES
from rota.core.columns import GROUP, SUBMIT_S
from rota.core.driver import CompiledKey, code_at, prepare
from rota.core.engine import JobsEngine, Snapshot
from rota.core.errors import InputError, Stuck
from rota.core.lanes import ADVANCE, BAD_SCORE, JCT, LANE, OVER, negated_score, step_many
from rota.core.placement import Style


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
    def of(cls, engine: JobsEngine, facts: Floats, style: Style, *, grows: bool = False) -> "LaneEngine":
        """Prepare an engine that was made with a column for the scores, and has not been advanced yet."""
        plan, _ = prepare(engine, CompiledKey(negated_score, style=style, grows=grows))
        return cls(engine, np.ascontiguousarray(facts), plan, engine.snapshot())

    def rewind(self) -> None:
        """Make the engine as it was at its beginning."""
        self.engine.restore(self.start)

    @property
    def groups(self) -> int:
        """The number of groups of which sums are kept: all jobs, and each group of jobs."""
        return 2 + int(self.engine.table[GROUP].max())


BEGIN_AT_0 = (
    *("reward", "total", "before", "steps", "code", "rate", "asked", "available"),
    *("slowdown", "fairness", "span_s", "asked_s", "gpu_s", "finished", "jct_s", "slowdowns"),
)
STEP_TYPES = (types.int64, types.int64, types.int64)
FEWEST = 16  # lanes for which more than one thread is worth its start


class LaneThreads:
    """Threads that wait for parts of the lanes, and step them together with the thread that asks."""

    def __init__(self, threads: int, work: Callable[..., None]) -> None:
        self._work = work
        self._todo: SimpleQueue[tuple[int, int, int] | None] = SimpleQueue()
        self._done: SimpleQueue[None] = SimpleQueue()
        for _ in range(threads):
            Thread(target=_serve, args=(self._todo, self._done, work), daemon=True).start()
        self.close = finalize(self, _end, self._todo, threads)
        """Ends the threads."""

    def run(self, parts: Sequence[tuple[int, int, int]]) -> None:
        """Step all parts, given by the address of the lanes, the first one, and the one after the last."""
        for part in parts:
            self._todo.put(part)
        self._left = len(parts)
        try:
            for part in self._taken():
                self._work(*part)
        finally:  # also if the user interrupts: nobody may touch lanes that others step
            deque(self._taken(), 0)
            while self._left:
                self._done.get()
                self._left -= 1

    def _taken(self) -> Iterator[tuple[int, int, int]]:
        """Take the parts that nobody has begun."""
        with suppress(Empty):
            while part := self._todo.get_nowait():
                self._left -= 1
                yield part


def _serve(
    todo: "SimpleQueue[tuple[int, int, int] | None]", done: "SimpleQueue[None]", work: Callable[..., None]
) -> None:
    while part := todo.get():
        work(*part)
        done.put(None)


def _end(todo: "SimpleQueue[tuple[int, int, int] | None]", threads: int) -> None:
    for _ in range(threads):
        todo.put(None)


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
        self._pool = LaneThreads(self._threads - 1, self._step_many) if self._threads > 1 else None

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
            self._pool.close()
            self._pool = None

    def _run(self, parts: int) -> None:
        address, lanes = self.lanes.ctypes.data, len(self.lanes)
        if self._pool is None:
            self._step_many(address, 0, lanes)
            return
        edges = [lanes * part // parts for part in range(parts + 1)]
        self._pool.run([(address, first, last) for first, last in pairwise(edges)])

    def _resolve(self, number: int) -> None:
        """Do what compiled code needs to go on."""
        code = int(self.lanes["code"][number])
        self.lanes["code"][number] = 0
        if code == BAD_SCORE:
            raise InputError(f"environment {number}: a score is not a number; give each job a number")
        try:
            self.engine(number).resolve(code)
        except Stuck as error:
            raise Stuck(f"environment {number}: {error}") from None
