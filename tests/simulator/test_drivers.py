"""One semantics, several drivers: a policy in Python, its compiled form, a loop from outside, a copy."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.columns import GPUS, ITERATION_S, REMAINING, SUBMIT_S
from rota.core.compiled import kernel
from rota.core.costs import COSTS, RESTART
from rota.core.driver import CompiledKey, CompiledPlan, compiled_of, drive_compiled
from rota.core.errors import ConfigError, IllegalPlan, Stuck
from rota.core.loop import planned
from rota.core.memory import engine_at
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.policies.cluster.srtf import Srtf
from rota.simulator.jobs import engine_for, simulate
from rota.workload.jobs import Workload, workload
from rota.workload.profiles import MODELS

COMPILED = [name for name in SCHEDULERS if compiled_of(scheduler_class(name)())]
CHANGING = Cluster(
    nodes=(Node(8, 0, "v100"), Node(4, 0, "k80"), Node(4, 1, "k80"), Node(8, 1, "v100")),
    cross_node=1.5,
    cross_switch=3.0,
    speeds={"k80": {"default": 0.25, "bert": 0.1}},
    changes=(NodeChange(50.0, 1, False), NodeChange(100.0, 0, False), NodeChange(900.0, 0, True)),
)


@st.composite
def workloads(draw: st.DrawFn, most: int = 40) -> Workload:
    """Jobs of which many are alike, so that keys and times are often equal."""
    n = draw(st.integers(1, most))
    times = st.one_of(st.sampled_from([0.0, 10.0, 100.0]), st.floats(0.0, 5e4))
    seconds = st.one_of(st.sampled_from([1.0, 60.0, 3600.0]), st.floats(0.5, 1e5))
    return workload(
        "random",
        ids=[f"j{i}" for i in range(n)],
        submit_s=draw(st.lists(times, min_size=n, max_size=n)),
        gpus=draw(st.lists(st.sampled_from([1, 1, 2, 3, 4, 8]), min_size=n, max_size=n)),
        model=draw(st.lists(st.sampled_from(MODELS), min_size=n, max_size=n)),
        duration_s=draw(st.lists(seconds, min_size=n, max_size=n)),
        priority=draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)),
    )


def same(one, other):
    assert np.array_equal(one.events, other.events)
    assert np.array_equal(one.slots, other.slots)


def test_these_have_a_compiled_form():
    assert set(COMPILED) >= {"fifo", "srtf", "srsf", "themis", "tiresias", "antman"}


@pytest.mark.parametrize("cost", [*COSTS, "checkpoints"])
@pytest.mark.parametrize("name", COMPILED)
@settings(max_examples=25, deadline=None)
@given(jobs=workloads(), cluster=st.sampled_from([Cluster.uniform(1, 8), Cluster.uniform(2, 8), CHANGING]))
def test_a_compiled_form_decides_as_the_policy_does(name, cost, jobs, cluster):
    model = COSTS.get(cost, replace(RESTART, checkpoint_every_s=30.0))
    policy = scheduler_class(name)()
    runs = [simulate(jobs, cluster, policy, model, compiled=compiled) for compiled in (False, True)]
    same(runs[0].timeline, runs[1].timeline)
    assert runs[0].instants == runs[1].instants


@pytest.mark.parametrize("options", [{"backfill": True}, {"placement": "spread"}, {"placement": "anywhere"}])
@settings(max_examples=15, deadline=None)
@given(jobs=workloads())
def test_with_its_options_too(options, jobs):
    policy = scheduler_class("fifo")(**options)
    runs = [simulate(jobs, CHANGING, policy, compiled=compiled) for compiled in (False, True)]
    same(runs[0].timeline, runs[1].timeline)


def test_a_long_queue_is_kept_in_order():
    n = 3000
    draw = np.random.default_rng(5)
    jobs = workload(
        "queue", [str(i) for i in range(n)], np.sort(draw.choice(np.arange(0.0, 3e4, 7.0), n)),
        draw.choice([1, 1, 2, 4], n).tolist(), [MODELS[i % len(MODELS)] for i in range(n)],
        duration_s=draw.choice([10.0, 300.0, 301.0, 2000.0], n),
    )  # fmt: skip
    for name in ("srtf", "srsf", "fifo"):
        policy = scheduler_class(name)()
        runs = [
            simulate(jobs, Cluster.uniform(1, 8), policy, compiled=compiled) for compiled in (False, True)
        ]
        same(runs[0].timeline, runs[1].timeline)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=8, deadline=None)
@given(jobs=workloads(most=20), at=st.integers(0, 60), ahead=st.integers(0, 20))
def test_from_a_snapshot_the_same_decisions_lead_to_the_same_timeline(name, cost, jobs, at, ahead):
    policy = scheduler_class(name)()
    engine = engine_for(jobs, CHANGING, policy.needs, COSTS[cost])
    for _ in zip(range(at), steps(engine, policy), strict=False):
        pass
    snapshot = engine.snapshot()
    for _ in zip(range(ahead), steps(engine, policy), strict=False):
        pass
    (copy,) = engine.fork(1)
    for _ in steps(engine, policy):
        pass
    whole = simulate(jobs, CHANGING, policy, COSTS[cost]).timeline
    same(engine.timeline(), whole)
    engine.restore(snapshot)
    for _ in steps(engine, policy):
        pass
    same(engine.timeline(), whole)
    for _ in steps(copy, policy):
        pass
    same(copy.timeline(), whole)


def steps(engine, policy):
    for view in engine:
        engine.commit(planned(policy, view))
        yield


@settings(max_examples=20, deadline=None)
@given(jobs=workloads())
def test_the_sums_are_those_of_the_timeline(jobs):
    engine = engine_for(jobs, CHANGING)
    drive_compiled(engine, Srtf().compiled, 7)
    events = engine.timeline().events
    ends = {int(event["job"]): float(event["at_s"]) for event in events if event["kind"] == 0}
    completed_s = sum(ends[job] - jobs.submit_s[job] for job in range(len(jobs)))
    sums = engine.sums
    assert engine.done == len(jobs)
    assert sums["completed_s"] == pytest.approx(completed_s)
    assert sums["active_s"] == pytest.approx(completed_s)
    assert sums["active_s"] == pytest.approx(sums["waiting_s"] + sums["running_s"], rel=1e-9, abs=1e-6)
    assert sums["busy_s"] <= engine.now_s * CHANGING.slots * (1 + 1e-9)


def test_without_a_timeline_the_rest_is_the_same():
    jobs = rota.synthetic_trace(jobs=200, gpus=16, seed=2)
    engines = [engine_for(jobs, Cluster.uniform(2, 8), keeps_timeline=keeps) for keeps in (True, False)]
    for engine in engines:
        drive_compiled(engine, Srtf().compiled, 100)
    assert engines[0].sums == engines[1].sums
    assert len(engines[1].timeline()) < len(engines[0].timeline())


# policies from outside


@kernel
def youngest_first(columns, row, now_s):
    return -columns[SUBMIT_S, row] + 0.0 * now_s


@dataclass(frozen=True)
class Youngest(rota.Scheduler):
    @property
    def compiled(self):
        return CompiledKey(youngest_first, fixed_while_waiting=True)

    def plan(self, view):
        return view.first_fit(view.rank(-view.submit_s))


@settings(max_examples=20, deadline=None)
@given(jobs=workloads())
def test_a_policy_from_outside_may_offer_a_key(jobs):
    runs = [simulate(jobs, CHANGING, Youngest(), compiled=compiled) for compiled in (False, True)]
    same(runs[0].timeline, runs[1].timeline)


class ChangesItsMind(Srtf):
    def plan(self, view):
        return view.first_fit(view.rank(view.gpus))


def test_the_form_of_a_base_class_does_not_stand_for_another_plan():
    assert compiled_of(ChangesItsMind()) is None
    assert compiled_of(Srtf()) is not None


@kernel
def whole_number(columns, row, now_s):
    return 3


@kernel
def none_at_all(address):
    engine_at(address).planned = 0


@kernel
def too_many(address):
    engine_at(address).planned = 1_000_000


@dataclass(frozen=True)
class Wrong(rota.Scheduler):
    form: object

    @property
    def compiled(self):
        return self.form

    def plan(self, view):
        return view.first_fit(view.order)


@pytest.mark.parametrize(
    ("form", "error", "says"),
    [
        (CompiledKey(whole_number), ConfigError, "whole_number: the compiled function returns int64"),
        (CompiledPlan(none_at_all), Stuck, "the policy keeps changing its plan|nothing runs"),
        (CompiledPlan(too_many), IllegalPlan, "at .* s: the plan runs 1000000 jobs; "),
    ],
)
def test_what_a_compiled_form_does_wrong_is_said(form, error, says):
    with pytest.raises(error, match=says):
        simulate(rota.synthetic_trace(jobs=5, gpus=8, seed=1), Cluster.uniform(1, 8), Wrong(form))


@kernel
def shortest(columns, row, now_s):
    return columns[REMAINING, row] * columns[ITERATION_S, row] + 0.0 * columns[GPUS, row]


def test_a_wrapper_uses_the_compiled_form_of_what_it_wraps():
    jobs = rota.synthetic_trace(jobs=300, gpus=16, seed=3)
    cluster = Cluster.uniform(2, 8)
    one = simulate(jobs, cluster, Wrong(CompiledKey(shortest))).timeline
    same(one, simulate(jobs, cluster, Srtf(), compiled=False).timeline)
