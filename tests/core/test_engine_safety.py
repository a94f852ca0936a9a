"""What a loop from outside may do wrong: it is an error, and never touches memory that is not there."""

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import rota
from rota.core.columns import BEGIN, ROW, UNIT, UP
from rota.core.compiled import kernel
from rota.core.driver import CompiledKey, CompiledPlan, compiled_of, decide_placed, drive_compiled
from rota.core.engine import Instant
from rota.core.errors import ConfigError, IllegalPlan
from rota.core.memory import engine_at
from rota.core.placement import first_fit
from rota.core.policy import Plan
from rota.policies.cluster.srtf import Srtf
from rota.policies.cluster.themis import Themis
from rota.simulator.jobs import engine_for
from rota.workload.jobs import workload


def engine_of(*durations_s, gpus=2):
    """An engine of jobs that are submitted at once, each for one GPU."""
    n = len(durations_s)
    jobs = workload(
        "few", ids=[f"j{number}" for number in range(n)], submit_s=np.zeros(n), gpus=[1] * n,
        model=["unnamed"] * n, duration_s=np.array(durations_s), priority=[0] * n,
    )  # fmt: skip
    return engine_for(jobs, rota.Cluster.uniform(1, gpus), Srtf().needs)


def finished(engine):
    for view in engine:
        engine.commit(Srtf().plan(view))
    timeline = engine.timeline()
    return [(float(e["at_s"]), int(e["kind"]), int(e["job"])) for e in timeline.events]


def test_an_instant_is_decided_before_the_next_one():
    engine, undisturbed = engine_of(1.0, 2.0, 3.0), finished(engine_of(1.0, 2.0, 3.0))
    views = iter(engine)
    engine.commit(Srtf().plan(next(views)))
    view = next(views)  # the first job has ended
    plan = view.first_fit(view.order)
    plan.wake_at_s = -1.0
    with pytest.raises(IllegalPlan, match="wake-up in the past"):
        engine.commit(plan)
    for _ in range(3):
        with pytest.raises(IllegalPlan, match=r"at 11.0 s: no plan was committed"):
            engine.advance()
    assert (engine.active, engine.done) == (2, 1)
    engine.commit(Srtf().plan(view))
    assert finished(engine) == undisturbed


def test_what_is_assigned_to_a_plan_is_what_runs():
    engine = engine_of(1.0, 2.0)
    view = next(iter(engine))
    plan = view.first_fit(view.order)
    plan.pace_s = plan.pace_s[: plan.jobs] * 3.0
    plan.slots = plan.slots[::-1].copy()
    engine.commit(plan)
    events = engine.timeline().events
    started = events[events["gpus"] > 0]
    assert started["value"].tolist() == [3.0, 3.0]
    assert engine.timeline().slots[started["begin"]].tolist() == [1, 0]
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a plan is part of its engine"):
            copied(plan)


def test_a_deep_copy_goes_on_by_itself():
    engine, undisturbed = engine_of(1.0, 2.0, 3.0), finished(engine_of(1.0, 2.0, 3.0))
    engine.commit(Srtf().plan(next(iter(engine))))
    other = copy.deepcopy(engine)
    assert finished(other) == undisturbed
    assert engine.now_s == 0.0
    assert finished(engine) == undisturbed
    with pytest.raises(TypeError, match="pickle its snapshot"):
        pickle.dumps(engine)


def own_plan(view, units=(0, 1)):
    """A plan of one's own: the first two jobs, in units with any numbers."""
    plan = Plan(8, 8)
    plan.jobs = 2
    for k, unit in enumerate(units):
        plan.index[ROW, k], plan.index[UNIT, k] = view.order[k], unit
        plan.index[BEGIN, unit], plan.index[BEGIN, unit + 1] = k, k + 1
        plan.slots[k], plan.pace_s[k] = k, 1.0
    return plan


def test_a_plan_of_ones_own_survives_snapshots_forks_and_the_compiled_loop():
    undisturbed = finished(engine_of(1.0, 2.0, 3.0))
    engine = engine_of(1.0, 2.0, 3.0)
    engine.commit(own_plan(next(iter(engine)), units=(3, 5)))
    snapshot = engine.snapshot()
    (fork,) = engine.fork(1)
    assert finished(fork) == undisturbed
    drive_compiled(engine, Srtf().compiled, 1)
    timeline = engine.timeline()
    assert [(float(e["at_s"]), int(e["kind"]), int(e["job"])) for e in timeline.events] == undisturbed
    before = timeline.events.copy()
    engine.restore(snapshot)
    engine.advance()
    assert (timeline.events == before).all()  # what was handed out stays as it is
    engine.commit(Srtf().plan(engine.view))
    assert finished(engine) == undisturbed


def test_a_plan_has_as_many_jobs_as_it_has_room_for():
    engine = engine_of(1.0, 2.0, 3.0)
    plan = own_plan(next(iter(engine)))
    for jobs in (-1, 3, 9):
        plan.jobs = jobs
        with pytest.raises(IllegalPlan, match=f"the plan runs {jobs} jobs"):
            engine.commit(plan)


@kernel
def wakes_in_the_past(address):
    e = engine_at(address)
    decide_placed(e, 0, e.now_s - 1.0)


def test_after_an_illegal_compiled_plan_the_next_one_is_checked():
    engine = engine_of(1.0, 2.0)
    with pytest.raises(IllegalPlan, match="wake-up in the past"):
        drive_compiled(engine, CompiledPlan(wakes_in_the_past), 1)
    plan = own_plan(engine.view)
    plan.slots[:2] = (99, -5)
    with pytest.raises(IllegalPlan, match="a slot that is not available"):
        engine.commit(plan)


def test_a_subclass_that_replaces_a_helper_is_simulated_by_its_plan():
    class Mine(Themis):
        def plan(self, view):
            return view.first_fit(view.order)

    @dataclass(frozen=True)
    class Other(rota.Scheduler):
        def key(self, view):
            return view.remaining_s

        @property
        def compiled(self):
            return CompiledKey(first_in_table)

        def plan(self, view):
            return view.first_fit(view.rank(self.key(view)))

    class Another(Other):
        def key(self, view):
            return -view.remaining_s

    assert compiled_of(Mine()) is None
    assert compiled_of(Other()) is not None
    assert compiled_of(Another()) is None


@kernel
def first_in_table(columns, row, now_s):
    return float(row)


def test_what_is_no_compiled_policy_is_an_error_that_says_what_to_return():
    class Flagged(rota.Scheduler):
        compiled = True

        def plan(self, view):
            return view.first_fit(view.order)

    with pytest.raises(ConfigError, match=r"Flagged.compiled is a bool; return a CompiledKey"):
        compiled_of(Flagged())
    with pytest.raises(ConfigError, match="is not compiled; put @kernel"):
        drive_compiled(engine_of(1.0), CompiledKey(lambda columns, row, now_s: 0.0), 1)


def test_a_job_keeps_the_slots_of_its_anchor():
    engine = engine_of(5.0, 5.0)
    view = next(iter(engine))
    engine.commit(view.first_fit(view.order))
    engine.apply(Instant(1.0, np.zeros(0, np.int32)))
    order = view.order.copy()
    plan = first_fit(view, order, anchors=order[::-1].copy())
    assert [plan.slots_of(k).tolist() for k in range(2)] == [[1], [0]]


def test_a_node_that_is_not_there_cannot_change():
    engine = engine_of(1.0)
    for nodes in ({"lost": [7]}, {"joined": [-9]}):
        with pytest.raises(IndexError):
            engine.apply(Instant(0.0, np.zeros(0, np.int32), **nodes))
    assert engine.nodes[UP].tolist() == [1]
