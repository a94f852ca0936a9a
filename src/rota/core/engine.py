"""The engine: everything that changes while jobs run on a cluster, and the two calls that change it.

    for view in engine:                    # advance to the next instant at which something is to be decided
        engine.commit(policy.plan(view))   # check the plan, apply it, write what it changes

All of it is in flat arrays, so a snapshot is a copy. Real runs say what happened (`apply`) in place of
advancing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.core import columns as c
from rota.core import queues, stepping
from rota.core.arrays import Floats
from rota.core.calls import ADVANCE_TYPES, COMMIT_TYPES
from rota.core.cluster import Cluster, Preferences, Speed, as_listed
from rota.core.costs import EXACT, CostModel
from rota.core.durations import KNOWS, KnownDurations, note_ended_at, predict
from rota.core.errors import IllegalPlan, Stuck
from rota.core.failures import FailureState
from rota.core.instant import Instant
from rota.core.memory import ENGINE, OF_THIS_ENGINE, SUMS
from rota.core.placement import scratch_rows
from rota.core.policy import Needs, Plan
from rota.core.record import SharedRecord
from rota.core.refusals import checked_order, why_illegal, why_stuck
from rota.core.sizes import GangSizes
from rota.core.timeline import EventKind, Timeline, TimelineWriter
from rota.core.view import ClusterView, frozen

FIRST_ROWS = 64
NO_ROWS, NO_NEEDS = np.zeros(0, np.int32), Needs()
EVEN = Speed(np.ones((1, 1)), 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of everything in an engine that changes."""

    record: NDArray[np.void]
    arrays: Mapping[str, NDArray[Any]]
    failures: Mapping[str, NDArray[Any]]


class JobsEngine(SharedRecord):
    """Jobs on a cluster: those that are active, their slots, the time, and the timeline so far."""

    def __init__(
        self,
        table: Floats,
        cluster: Cluster,
        cost: CostModel,
        needs: Needs = NO_NEEDS,
        preferences: Preferences | None = None,
        *,
        speed: Speed = EVEN,
        keeps_timeline: bool = True,
        failures: FailureState | None = None,
        sizes: GangSizes | None = None,
        known: KnownDurations | None = None,
    ) -> None:
        """Begin with a table of all jobs, by submit time, for a policy with these needs.

        `preferences` says which nodes jobs prefer, by default those that the cluster lists first; `known`
        what the policy knows of durations, by default all.
        """
        self._another = partial(
            JobsEngine, table, cluster, cost, needs, preferences,
            speed=speed, keeps_timeline=keeps_timeline, failures=failures, sizes=sizes, known=known,
        )  # fmt: skip
        preferences = preferences or as_listed(cluster)
        slots, sharing = cluster.slots, needs.sharing
        ties = needs.ties if cost.each_instant else EXACT
        self.cluster, self.cost = cluster, cost
        self.table = np.ascontiguousarray(preferences.put_into(table))
        self.known = known or KnownDurations("none" if needs.durations == "unused" else "exact")
        if self.known.predictor is not None:
            self.table = self.table.copy()  # what is predicted is its own
        self._needs = needs
        self.lay_out_record(ENGINE)
        self.journal = TimelineWriter.for_jobs(self.table.shape[1])
        self._failures = None if failures is None else failures.fresh()
        jobs = min(slots * sharing, self.table.shape[1])
        self._plans = Plan(jobs, slots * sharing), Plan(jobs, slots * sharing)
        self.plan = self._plans[0]
        self.view = ClusterView(self.record["now_s"])
        self._lay_out(preferences, needs, speed)
        self.write(
            sharing=sharing, each_instant=cost.each_instant, saves=cost.checkpoint_every_s == 0.0,
            failures=self._failures.address if self._failures else 0, sizes=sizes.address if sizes else 0,
            checkpoint_every_s=failures.checkpoints(cost) if failures else cost.checkpoint_every_s,
            is_even=speed.is_even, cross_node=speed.cross_node, cross_switch=speed.cross_switch,
            keeps_timeline=keeps_timeline, slots_per_gpu=cluster.slots_per_gpu,
            knows=KNOWS.index(self.known.knows), predicts=self.known.predictor is not None,
            refit_at=not self.known.history.size,
            moves=preferences.moves and not speed.is_even,
            most_jobs=jobs, bound=slots * sharing, slots=slots,
            jobs=self.table.shape[1], end_s=np.inf, wake_s=np.inf,
            ends_rel=ties.ends_rel, ends_abs=ties.ends_abs, arrivals_rel=ties.arrivals_rel,
            merge_rel=ties.merge_rel, merge_abs=ties.merge_abs,
        )  # fmt: skip
        # Called directly, without Numba's look at the types of the arguments.
        self._advance = stepping.advance.compile(ADVANCE_TYPES)
        self._commit = stepping.commit.compile(COMMIT_TYPES)
        self._show_cluster()
        self._resize(FIRST_ROWS)
        self._use_plans()

    # ── the two calls ───────────────────────────────────────────────────────────────────────────────────────

    def __iter__(self) -> Iterator[ClusterView]:
        """Yield the view at each instant, until all jobs are done. Raises Stuck if some never will be."""
        view = self.view
        while self.advance():
            yield view

    def advance(self) -> bool:
        """Move to the next instant at which something is to be decided; return False if all jobs are done.

        Raises Stuck if jobs wait and nothing will happen, or if the policy stops time.
        """
        view = self.view
        active = self._advance(self.address)
        while active < 0:
            if active == stepping.DONE:
                return False
            self._handle(active)
            active = self._advance(self.address)
        view.active = active
        view.ranked = None
        return True

    def commit(self, plan: Plan) -> None:
        """Check a plan and put it into effect.

        Raises IllegalPlan if that is not possible; nothing is changed then.
        """
        view, order = self.view, plan.order
        if order is None:
            order = NO_ROWS
        elif order is not view.ranked:
            order = checked_order(self, order)
        code = self._commit(self.address, plan.address, plan.jobs, plan.wake_at_s, order)
        while code != stepping.OK:
            if code != stepping.GROW:
                raise IllegalPlan(why_illegal(self, code, plan))
            self._grow()
            code = self._commit(self.address, plan.address, plan.jobs, plan.wake_at_s, order)
        first, second = self._plans
        view.draft = second if plan is first else first
        view.current = self.plan = plan

    # ── compiled policies ───────────────────────────────────────────────────────────────────────────────────

    def resolve(self, code: int) -> None:
        """Make room if that is why compiled code returned; else raise Stuck or IllegalPlan."""
        self.see()
        if code not in stepping.RESOLVABLE:
            self.view.draft.wake_at_s = float(self.record["wakes_s"][0])
            self.view.draft.jobs = self.number("planned")
            self.write(is_as_placed=False, pending=False)
            raise IllegalPlan(why_illegal(self, code, self.view.draft))
        self._handle(code)

    def see(self) -> None:
        """Show what compiled code has changed to Python."""
        stepping.show_at(self.address)
        first, second = self._plans
        known = {plan.address: plan for plan in (first, second, self.plan)}
        self.plan = known[self.number("current")]
        self.plan.jobs = int(self.plan.record["jobs"][0])
        self.view.current, self.view.draft = self.plan, known[self.number("draft")]
        self.view.active, self.view.ranked = self.active, None

    # ── real runs ───────────────────────────────────────────────────────────────────────────────────────────

    def apply(self, instant: Instant) -> None:
        """Take in what happened at an instant, in place of advancing to it."""
        if instant.at_s < self.now_s:
            raise AssertionError(f"time runs backwards: {instant.at_s} after {self.now_s}")
        self.nodes[c.UP, [*instant.joined, *instant.lost]]  # raises IndexError if there is no such node
        if self.known.predictor is not None and self.number("learnt") >= self.number("refit_at"):
            self._predict()
        stepping.move_time_at(self.address, float(instant.at_s))
        self.write(instants=self.instants + 1)
        for row, remaining in (instant.measured or {}).items():
            self.columns[[c.REMAINING, c.REMAINING_THEN], row] = remaining
        self._turn_over(instant)
        if instant.joined or instant.lost:
            self._reserve(len(instant.joined) + len(instant.lost) * (1 + 2 * self.plan.jobs), 0)
            for joins, nodes in enumerate((instant.lost, instant.joined)):  # jobs that are done lose nothing
                for node in nodes:
                    stepping.change_node_at(self.address, node, bool(joins))
        self.view.active = self.active
        self.view.ranked = None

    def _turn_over(self, instant: Instant) -> None:
        ends, arrivals = instant.ends, instant.arrivals
        if not (ends or arrivals):
            return
        if self.active - ends + arrivals > self.capacity:
            self._resize(self.active + arrivals)
        self._reserve(ends + arrivals, 0)
        self.write(arrived=instant.first_job)
        ending = np.zeros(max(ends, self.number("most_jobs")), np.int32)
        ending[:ends] = instant.finished[:ends]
        self.put(ending=ending)
        written = self.number("count")
        stepping.turn_over_at(self.address, ends, arrivals)
        self._mark_failures(instant, written)
        if self.known.predictor is not None:
            note_ended_at(self.address)

    def _mark_failures(self, instant: Instant, first: int) -> None:
        """Mark ended jobs that have iterations left as failed."""
        events, left = self.journal.events, instant.measured or {}
        for number, row in enumerate(instant.finished[: instant.ends].tolist()):
            if left.get(row, 0.0) > 0.0:
                events["kind"][first + number] = EventKind.FAILED
                events["value"][first + number] = left[row]

    # ── what it has ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def now_s(self) -> float:
        """The time in seconds."""
        return float(self.record["now_s"][0])

    @property
    def active(self) -> int:
        """Number of active jobs."""
        return self.number("active")

    @property
    def done(self) -> int:
        """Number of jobs that have ended."""
        return self.number("done")

    @property
    def instants(self) -> int:
        """Number of instants so far."""
        return self.number("instants")

    @property
    def most_jobs(self) -> int:
        """Number of jobs that can run at once."""
        return self.number("most_jobs")

    @property
    def capacity(self) -> int:
        """Number of rows of the table of active jobs."""
        return int(self.columns.shape[1])

    @property
    def sums(self) -> dict[str, float]:
        """The sums over time so far, in seconds.

        They are the integrals of active, waiting and running jobs and of busy slots (`busy_s`), and the sum
        of the completion times of the jobs that ended (`completed_s`).
        """
        return {name: float(self.record[name][0]) for name in SUMS}

    @property
    def columns(self) -> Floats:
        return self.arrays["columns"]

    @property
    def order(self) -> NDArray[np.int32]:
        """The rows of the active jobs in list order, then free space."""
        return self.arrays["order"]

    @property
    def nodes(self) -> NDArray[np.int32]:
        return self.arrays["nodes"]

    def timeline(self) -> Timeline:
        """Return the events so far."""
        self.journal.count, self.journal.used = self.number("count"), self.number("used")
        return self.journal.timeline()

    # ── copies ──────────────────────────────────────────────────────────────────────────────────────────────

    def snapshot(self) -> Snapshot:
        """Return a copy of everything that changes, for `restore`."""
        stepping.show_at(self.address)
        count, used = self.number("count"), self.number("used")
        changing = ("columns", "order", "free", "nodes", "own_slots", "own_groups", "ending")
        arrays = {name: self.arrays[name].copy() for name in changing}
        arrays |= {"events": self.journal.events[:count].copy(), "arena": self.journal.slots[:used].copy()}
        index, slots = self.plan.dense()
        arrays |= {"ended": self.arrays["ended"].copy(), "estimate": self.table[c.ESTIMATE].copy()}
        arrays |= {"index": index, "slots": slots, "pace_s": self.plan.pace_s[: self.plan.jobs].copy()}
        return Snapshot(self.record.copy(), arrays, self._failures.snapshot() if self._failures else {})

    def restore(self, snapshot: Snapshot) -> None:
        """Make everything as it was at a snapshot, of this engine or of one that was made alike."""
        arrays = snapshot.arrays
        here = {name: self.number(name) for name in ENGINE.names or () if name in OF_THIS_ENGINE}
        self.record[:] = snapshot.record
        self.write(**here)
        if self._failures:
            self._failures.restore(snapshot.failures)
        journal = self.journal = TimelineWriter()  # timelines that were handed out keep the old one
        journal.reserve(len(arrays["events"]), len(arrays["arena"]))
        journal.events[: len(arrays["events"])] = arrays["events"]
        journal.slots[: len(arrays["arena"])] = arrays["arena"]
        changing = ("columns", "order", "free", "own_slots", "own_groups", "ending", "ended")
        self.put(**{name: arrays[name].copy() for name in changing})
        self.nodes[:] = arrays["nodes"]
        if self.known.predictor is not None:
            self.table[c.ESTIMATE] = arrays["estimate"]
        self._lay_out_rows(self.capacity)
        self.write(is_sorted=False)
        self._use_journal()
        plan = self.plan = self._plans[0]
        plan.jobs = jobs = len(arrays["pace_s"])
        plan.index[:, : jobs + 1], plan.pace_s[:jobs] = arrays["index"], arrays["pace_s"]
        plan.slots[: len(arrays["slots"])] = arrays["slots"]
        self._use_plans()
        self._show()
        self.view.active, self.view.ranked = self.active, None

    def fork(self, n: int) -> list["JobsEngine"]:
        """Return copies that go on from here, independently of each other."""
        snapshot = self.snapshot()
        forks = [self._another() for _ in range(n)]
        for fork in forks:
            fork.restore(snapshot)
        return forks

    def __deepcopy__(self, memo: Any) -> "JobsEngine":
        return self.fork(1)[0]

    def __reduce__(self) -> Any:
        raise TypeError("an engine cannot be pickled; pickle its snapshot")

    # ── memory ──────────────────────────────────────────────────────────────────────────────────────────────

    def _lay_out(self, preferences: Preferences, needs: Needs, speed: Speed) -> None:
        """Make all arrays whose sizes do not change."""
        cluster, slots = self.cluster, self.cluster.slots
        jobs = min(slots * needs.sharing, self.table.shape[1])
        own_slots, own_groups = len(needs.own_slots), len(needs.own_groups)
        changes = sorted(cluster.changes, key=lambda change: change.at_s)
        nodes = np.vstack([cluster.table(), preferences.rows])
        widest = max(slots, len(cluster.nodes), int(self.table[c.GPUS].max(initial=0)) + 1)
        scratch = np.zeros((scratch_rows(len(preferences.rows) // c.PREFERRED), widest), np.int32)
        groups = int(self.table[c.GROUP].max(initial=-1)) + 2
        by_model = np.ascontiguousarray(speed.by_model, np.float64)
        self.put(
            table=self.table,
            submit_s=np.ascontiguousarray(self.table[c.SUBMIT_S]),
            nodes=nodes,
            slot_node=cluster.slot_nodes(),
            own_slots=np.zeros((own_slots, slots)),
            own_groups=np.zeros((own_groups, groups)),
            speeds=by_model,
            change_s=np.array([change.at_s for change in changes], np.float64),
            change_node=np.array([change.node for change in changes], np.int32),
            change_joins=np.array([change.joins for change in changes], np.int32),
            scratch=scratch,
            load=np.zeros((2, slots), np.int32),
            **{name: np.zeros(jobs, np.int8) for name in ("actions", "kept")},
            **{name: np.zeros(max(jobs, 1), np.int32) for name in ("paused", "ending")},
            history=self.known.history,
            ended=np.zeros(self.table.shape[1] if self.known.predictor is not None else 0, np.int32),
        )
        self.write(
            fields=c.OWN + len(needs.own), node_rows=nodes.shape[0], node_count=nodes.shape[1], groups=groups,
            slot_rows=own_slots, group_rows=own_groups, changes=len(changes), models=by_model.shape[0],
            kinds=by_model.shape[1],
            history_jobs=self.known.history.shape[1],
            scratch_rows=scratch.shape[0], scratch_width=scratch.shape[1],
        )  # fmt: skip
        self._use_journal()

    def _use_journal(self) -> None:
        self.put(events=self.journal.events, arena=self.journal.slots)
        self.write(event_room=len(self.journal.events), arena_room=len(self.journal.slots))

    def _use_plans(self) -> None:
        """Let the first plan be the one that runs."""
        first, second = self._plans
        for plan in self._plans:
            plan.record["jobs"] = plan.jobs
        self.write(first=first.address, second=second.address, current=first.address, draft=second.address)
        self.view.current, self.view.draft = first, second

    def _reserve(self, events: int, slots: int) -> None:
        """Make room in the timeline."""
        self.journal.count, self.journal.used = self.number("count"), self.number("used")
        self.journal.reserve(events, slots)
        self._use_journal()

    def _grow(self) -> None:
        """Make the room that compiled code has asked for."""
        rows = self.number("need_rows")
        if rows > self.capacity:
            self._resize(rows)
        events = self.number("need_events") - self.number("count")
        self._reserve(events, max(self.number("need_slots") - self.number("used"), 0))

    def _resize(self, at_least: int) -> None:
        """Make room for more active jobs by doubling all arrays over rows."""
        old = self.arrays.get("columns", np.zeros((0, 0)))
        capacity, active = max(at_least, 2 * old.shape[1]), self.active
        columns = np.zeros((c.OWN + len(self._needs.own), capacity))
        columns[c.JOB] = columns[c.PLACE] = columns[c.WANTED] = -1.0
        columns[c.ITERATION_S] = columns[c.GPUS] = 1.0
        order = np.zeros(capacity, np.int32)
        free = np.arange(capacity - 1, -1, -1, dtype=np.int32)
        if active:
            columns[:, : old.shape[1]] = old
            order[:active] = self.order[:active]
            unused = np.setdiff1d(np.arange(capacity, dtype=np.int32), order[:active])[::-1]
            free[: len(unused)] = unused
        self.put(columns=columns, order=order, free=free)
        self._lay_out_rows(capacity)
        self._show()

    def _lay_out_rows(self, capacity: int) -> None:
        """Make the arrays over rows that compiled policies use; no job is in a queue then."""
        for name, kind in (("keys", "f8"), ("seqs", "i8"), ("marks", "i4"), ("ranking", "i4")):
            old = self.arrays.get(name, np.zeros(0, kind))[:capacity]
            self.put(**{name: np.concatenate([old, np.zeros(capacity - len(old), kind)])})
        self.write(capacity=capacity, queued=0)
        if "queue_kinds" in self.arrays:
            self.arrays["queue_facts"][queues.COUNT] = 0
            room = 1 << (capacity - 1).bit_length()
            self.put(queues=np.zeros((self.number("queue_count"), room), np.int32))
            self.write(queue_room=room)

    def use_queues(self) -> None:
        """Let a compiled policy keep waiting jobs in queues (`rota.core.queues`)."""
        if "queue_kinds" not in self.arrays:
            facts, kinds = queues.lay_out(self.table)
            self.put(queue_facts=facts, queue_kinds=kinds)
            self.write(queue_count=len(kinds))
        self._lay_out_rows(self.capacity)
        self.write(is_sorted=False)

    def _show_cluster(self) -> None:
        view = self.view
        view.address = self.address
        view.memory = self.record, self.arrays, self._plans
        view.active, view.resizes = 0, self.number("sizes") != 0
        view.cluster, view.cost, view.slots = self.cluster, self.cost, self.cluster.slots
        view.knows = self.known.knows
        view.nodes, view.slot_node = frozen(self.nodes), frozen(self.arrays["slot_node"])
        view.scratch, view.memo = self.arrays["scratch"], {}

    def _show(self) -> None:
        """Give the view its read-only columns."""
        view, columns = self.view, frozen(self.columns)
        view.rows, view.columns, view.capacity = self.order, self.columns, self.capacity
        view.exact_left, view.exact_duration_s = columns[c.REMAINING], columns[c.DURATION_S]
        view.iteration_s, view.submit_s = columns[c.ITERATION_S], columns[c.SUBMIT_S]
        view.gpus, view.priority = columns[c.GPUS], columns[c.PRIORITY]
        view.executed_s, view.place = columns[c.EXECUTED_S], columns[c.PLACE]
        arrays = self.arrays
        view.show_own(self._needs, self.columns[c.OWN :], arrays["own_slots"], arrays["own_groups"])

    # ── errors ──────────────────────────────────────────────────────────────────────────────────────────────

    def _handle(self, code: int) -> None:
        """Make room if that is all; else raise Stuck."""
        if code == stepping.RESTLESS:
            raise Stuck(f"the policy keeps changing its plan at {self.now_s:g} s")
        if code == stepping.STUCK:
            raise Stuck(why_stuck(self))
        if code == stepping.UNDECIDED:
            raise IllegalPlan(f"at {self.now_s} s: no plan was committed; commit one before the next instant")
        if code == stepping.REFIT:
            self._predict()
        else:
            self._grow()

    def _predict(self) -> None:
        """Predict how long the jobs take that have yet to arrive."""
        ended = self.arrays["ended"][: self.number("learnt")]
        self.write(refit_at=predict(self.table, ended, self.number("arrived"), self.known))
