"""Previews: an engine with the jobs that are present in another one, to try out what would come.

A preview has no jobs that are still to arrive, no failures, no changes of nodes, and durations only as far
as it is told. It begins at the time of the engine that it is made from, with the same jobs on the same slots.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numba import types
from numpy.typing import NDArray

from rota.core import columns as c
from rota.core import stepping
from rota.core.arrays import Floats
from rota.core.calls import ADVANCE_TYPES, COMMIT_TYPES
from rota.core.cluster import Preferences, Speed
from rota.core.driver import CompiledKey, CompiledPlan, code_at, compiled_of, make_way, prepare, run
from rota.core.engine import JobsEngine
from rota.core.errors import Stuck
from rota.core.loop import planned
from rota.core.policy import Needs, Plan, Policy
from rota.core.timeline import EventKind
from rota.core.view import ClusterView

SAME_S = 1e-3  # difference of two times that are the same but for rounding
ONE_ORDER = np.zeros(0, np.int64)


class Preview:
    """The jobs that are present at an instant, in an engine of their own."""

    def __init__(self, view: ClusterView, needs: Needs, iterations: Floats) -> None:
        """Copy what is present, for a policy with these needs.

        `iterations` are those left of each job, in list order. The policy's own columns are the first ones of
        the view.
        """
        record, arrays, _ = view.memory
        rows = view.order.copy()
        # Jobs are numbered as they came: policies may decide by that.
        came = np.argsort(view.columns[c.JOB, rows])
        self._numbers = np.empty(len(rows), np.int64)
        self._numbers[came] = np.arange(len(rows))
        given = np.ascontiguousarray(view.columns[: c.GIVEN, rows])
        done = np.maximum(given[c.ITERATIONS] - given[c.REMAINING], 0.0)
        given[[c.REMAINING, c.ITERATIONS, c.ESTIMATE]] = done + iterations
        if view.knows != "exact":  # nor does anything else say how long jobs take
            given[c.DURATION_S] = given[c.ITERATIONS] * given[c.ITERATION_S]
        given = np.ascontiguousarray(given[:, came])
        given[c.JOB] = np.arange(len(rows))
        cluster = replace(view.cluster, changes=()) if view.cluster.changes else view.cluster
        speed = Speed(arrays["speeds"], float(record["cross_node"][0]), float(record["cross_switch"][0]))
        moves = bool(record["moves"][0])
        preferences = Preferences(arrays["nodes"][c.FACTS :], ONE_ORDER, moves=moves)
        sharing = max(needs.sharing, int(record["sharing"][0]) if _shares(view) else 1)
        needs = replace(needs, sharing=sharing)
        self.engine = JobsEngine(given, cluster, view.cost, needs, preferences, speed=speed)
        self.begin_s = view.now_s
        self.instants = 0
        self._take_over(view, rows, iterations)

    def _take_over(self, view: ClusterView, rows: NDArray[np.int32], left: Floats) -> None:
        """Put the jobs on their slots, as they are at this instant."""
        engine, n, now_s = self.engine, len(rows), self.begin_s
        if n > engine.capacity:
            engine.write(need_rows=n, need_events=0, need_slots=0)
            engine.resolve(stepping.GROW)
        record, arrays, _ = engine.view.memory
        engine.nodes[c.UP] = view.nodes[c.UP]
        for own, known in ((arrays[name], view.memory[1][name]) for name in ("own_slots", "own_groups")):
            width = own.shape[1] - 1
            own[:, :width], own[:, width] = known[: len(own), :width], known[: len(own), -1]
        table, fields = engine.columns, int(record["fields"][0])
        table[: c.GIVEN, :n] = engine.table[:, self._numbers]
        table[c.REMAINING, :n] = view.columns[c.REMAINING, rows]
        table[c.GIVEN : fields, :n] = view.columns[c.GIVEN : fields, rows]
        running, busy = _copy_plan(view.current, engine.plan, view.columns[c.PLACE, rows])
        table[[c.PLACE, c.WANTED], :n] = -1.0
        table[c.PLACE, running] = np.arange(len(running))
        engine.order[:n] = np.arange(n)
        engine.write(
            now_s=now_s, wake_s=now_s, active=n, arrived=n, running=len(running), busy=busy,
        )  # fmt: skip
        due_s = (
            table[c.SINCE_S] + table[c.STALL_S] + np.maximum(table[c.REMAINING_THEN], 0.0) * table[c.PACE_S]
        )
        table[c.END_S] = np.where(abs(due_s - table[c.END_S]) > SAME_S, due_s, table[c.END_S])  # was measured
        other = left != table[c.REMAINING, :n]
        if other.any():
            self._believe(other, left)

    def _believe(self, other: NDArray[np.bool_], left: Floats) -> None:
        """Let some jobs have other iterations left than they have, from now on."""
        engine, now_s = self.engine, self.begin_s
        table, rows = engine.columns, np.flatnonzero(other)
        before = table[:, : len(other)].copy()
        stepping.move_time_at(engine.address, now_s)
        table[:, np.flatnonzero(~other)] = before[:, ~other]
        table[[[c.REMAINING], [c.REMAINING_THEN]], rows] = left[rows]
        table[c.END_S, rows] = now_s + (
            table[c.STALL_S, rows] + np.maximum(left[rows], 0.0) * table[c.PACE_S, rows]
        )

    def go_on(
        self,
        policy: Policy,
        first: Callable[[ClusterView], Plan],
        instants: int,
        until_s: float = np.inf,
        chunk: int = 64,
    ) -> None:
        """Run under a policy for so many instants or to a time; `first` decides at the first instant.

        A preview in which jobs can never run, because nodes are away, ends there.
        """
        engine = self.engine
        try:
            if not engine.advance():
                return
            engine.commit(first(engine.view))
            self.instants = 1
            form = compiled_of(policy)
            if form is None:
                while self.instants < instants and engine.now_s <= until_s and engine.advance():
                    engine.commit(planned(policy, engine.view))
                    self.instants += 1
                return
            plan, kept = prepare(engine, form)
            try:
                self._run(form, plan, instants, until_s, chunk)
            finally:
                engine.see()
            del kept
        except Stuck:
            return

    def _run(
        self, form: CompiledKey | CompiledPlan, plan: int, instants: int, until_s: float, chunk: int
    ) -> None:
        engine = self.engine
        advance = code_at(stepping.advance, types.int64, *ADVANCE_TYPES)
        commit = code_at(stepping.commit, types.int64, *COMMIT_TYPES)
        while self.instants < instants and engine.now_s <= until_s:
            code = run(engine.address, advance, plan, commit, min(chunk, instants - self.instants))
            self.instants = engine.instants
            if code == stepping.DONE:
                return
            if code != stepping.OK:
                make_way(engine, form, code)

    def ends_s(self) -> Floats:
        """Return when each job ended, in list order; infinity for those that have not."""
        found = np.full(self.engine.table.shape[1], np.inf)
        events = self.engine.timeline().events
        ended = events[events["kind"] == EventKind.FINISHED]
        found[ended["job"]] = ended["at_s"]
        return found[self._numbers]

    @property
    def solo_s(self) -> Floats:
        """The seconds that each job takes alone, in list order."""
        table = self.engine.table
        found: Floats = (table[c.ITERATIONS] * table[c.ITERATION_S])[self._numbers]
        return found

    def estimated_ends_s(self) -> Floats:
        """Return when the jobs that are left would end if each slot were always busy, the shortest first."""
        engine = self.engine
        rows = engine.order[: engine.active]
        left_s = np.maximum(engine.columns[c.REMAINING, rows], 0.0) * engine.columns[c.ITERATION_S, rows]
        work = left_s * engine.columns[c.GPUS, rows]
        by_work = np.argsort(work, kind="stable")
        found = np.full(engine.table.shape[1], np.inf)
        jobs = engine.columns[c.JOB, rows].astype(np.int64)
        queued_s = np.cumsum(work[by_work]) / engine.cluster.slots
        found[jobs[by_work]] = engine.now_s + np.maximum(queued_s, left_s[by_work])
        return found[self._numbers]


def _shares(view: ClusterView) -> bool:
    """Return whether jobs share slots at present."""
    plan = view.current
    return len(np.unique(plan.index[c.UNIT, : plan.jobs])) < plan.jobs


def _copy_plan(old: Plan, new: Plan, places: Floats) -> tuple[NDArray[np.int64], int]:
    """Copy the part of a plan that still runs; return its rows, by position, and the number of busy slots.

    `places` is the position of each job in the old plan.
    """
    running = np.flatnonzero(places >= 0.0)
    running = running[np.argsort(places[running], kind="stable")]
    units = old.index[c.UNIT, places[running].astype(np.int64)]
    kept, numbers = np.unique(units, return_inverse=True)
    new.jobs = new.record["jobs"][0] = len(running)
    new.index[c.ROW, : new.jobs], new.index[c.UNIT, : new.jobs] = running, numbers
    new.pace_s[: new.jobs] = old.pace_s[places[running].astype(np.int64)]
    used = 0
    new.index[c.BEGIN, 0] = 0
    busy: list[NDArray[np.int32]] = []
    for number, unit in enumerate(kept.tolist()):
        slots = old.slots[old.index[c.BEGIN, unit] : old.index[c.BEGIN, unit + 1]]
        new.slots[used : used + len(slots)] = slots
        used += len(slots)
        new.index[c.BEGIN, number + 1] = used
        busy.append(slots)
    return running, len(np.unique(np.concatenate(busy))) if busy else 0
