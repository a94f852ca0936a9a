"""Jobs and nodes that fail: by hand, and what must hold for every scheduler."""

import math
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.costs import COSTS, RESTART
from rota.core.driver import compiled_of, drive_compiled
from rota.core.errors import ConfigError, Stuck
from rota.core.loop import planned
from rota.core.timeline import (
    Arrived,
    AttemptFailed,
    EventKind,
    Failed,
    Finished,
    NodeJoined,
    NodeLost,
    Preempted,
    RolledBack,
    Started,
)
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.results.metrics import measure
from rota.simulator.jobs import engine_for, simulate
from rota.workload.jobs import Workload, workload
from rota.workload.profiles import MODELS

ONE = Cluster.uniform(1, 1)
NOTHING = rota.Failures(as_in_trace=False, checkpoint_every_s=0.0)
OFTEN = rota.Failures(
    per_gpu_hour=0.3, node_mtbf_s=40_000.0, node_repair_s=3000.0, checkpoint_every_s=600.0, attempts=20
)


def one_job(**more) -> Workload:
    return workload("one", ["a"], [0.0], [1], ["mine"], duration_s=[1000.0], startup_s=[10.0], **more)


def run(jobs, failures, cluster=ONE, name="fifo"):
    return simulate(jobs, cluster, scheduler_class(name)(), failures=failures)


# by hand: 1000 iterations of 1 s, a start-up of 10 s, and an attempt that fails after 500 s on its slot


@pytest.mark.parametrize(
    ("every_s", "lost", "end_s"),
    [(300.0, 190.0, 1210.0), (math.inf, 490.0, 1510.0), (0.0, 0.0, 1020.0), (490.0, 0.0, 1020.0)],
)
def test_a_job_goes_on_from_its_last_checkpoint(every_s, lost, end_s):
    jobs = one_job(failed_after_s=[(500.0,)])
    done = run(jobs, rota.Failures(checkpoint_every_s=every_s))
    left = 510.0 + lost
    assert list(done.timeline) == [
        Arrived(0.0, 0),
        Started(0.0, 0, 1.0, (0,)),
        *([RolledBack(500.0, 0, lost)] if lost else []),
        AttemptFailed(500.0, 0, left),
        Started(500.0, 0, 1.0, (0,)),
        Finished(end_s, 0),
    ]
    found = measure(done.timeline, jobs, ONE)
    assert found.times.attempts.tolist() == [2]
    assert found.times.lost_gpu_s.tolist() == [lost]
    metrics = found.metrics
    assert (metrics.failed_attempts, metrics.failed, metrics.lost_gpu_s) == (1, 0, lost)
    assert metrics.goodput == pytest.approx(1000.0 / end_s)
    assert metrics.utilisation == metrics.availability == 1.0
    assert metrics.preemptions == metrics.migrations == 0


def test_after_its_last_attempt_it_fails_for_good_and_all_of_its_time_is_lost():
    jobs = one_job(failed_after_s=[(500.0, 100.0)])
    done = run(jobs, rota.Failures(checkpoint_every_s=300.0, attempts=2))
    assert list(done.timeline)[3:] == [
        AttemptFailed(500.0, 0, 700.0),
        Started(500.0, 0, 1.0, (0,)),
        RolledBack(600.0, 0, 90.0),
        Failed(600.0, 0, 700.0),
    ]
    found = measure(done.timeline, jobs, ONE)
    assert found.times.attempts.tolist() == [2]
    assert found.times.lost_gpu_s.tolist() == [600.0]
    assert (found.metrics.failed_attempts, found.metrics.failed, found.metrics.goodput) == (2, 1, 0.0)


def test_a_job_that_had_failed_in_the_trace_fails_at_its_end():
    jobs = one_job(failed=[True])
    done = run(jobs, rota.Failures())
    assert list(done.timeline)[2:] == [Failed(1010.0, 0, 0.0)]
    found = measure(done.timeline, jobs, ONE)
    assert (found.times.attempts.tolist(), found.times.lost_gpu_s.tolist()) == ([1], [1010.0])
    assert list(run(jobs, rota.Failures(as_in_trace=False)).timeline)[2:] == [Finished(1010.0, 0)]
    assert list(run(jobs, None).timeline)[2:] == [Finished(1010.0, 0)]


def test_a_preempted_job_is_saved_first_unless_the_cost_model_has_checkpoints():
    # srtf: the short job comes after 200 s, and the long one waits for 100 s.
    jobs = workload(
        "two",
        ["long", "short"],
        [0.0, 200.0],
        [1, 1],
        ["m", "m"],
        duration_s=[1000.0, 100.0],
        startup_s=[0.0, 0.0],
    )
    failures = rota.Failures(checkpoint_every_s=150.0)
    saved = run(jobs, failures, name="srtf")
    assert Preempted(200.0, 0, 800.0) in list(saved.timeline)
    lost = simulate(
        jobs,
        ONE,
        scheduler_class("srtf")(),
        replace(RESTART, checkpoint_every_s=150.0),
        failures=rota.Failures(),
    )
    assert list(lost.timeline)[3:5] == [RolledBack(200.0, 0, 50.0), Preempted(200.0, 0, 850.0)]
    assert measure(lost.timeline, jobs, ONE).metrics.lost_gpu_s == 50.0


# draws, computed once more in plain Python


def exponential(seed, *parts):
    whole = 2**64
    z = (seed + 0x9E3779B97F4A7C15) % whole
    for part in (None, *parts):
        if part is not None:
            z = ((z ^ part) + 0x9E3779B97F4A7C15) % whole
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % whole
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % whole
        z ^= z >> 31
    return -math.log(((z >> 11) + 1) / 2**53)


def test_attempts_fail_when_the_seed_says_whatever_the_number_of_gpus_and_the_wait():
    jobs = workload(
        "two", ["a", "b"], [0.0, 0.0], [2, 2], ["m", "m"], duration_s=[1e6, 1e6], startup_s=[0.0, 0.0]
    )
    failures = rota.Failures(per_gpu_hour=0.01, checkpoint_every_s=0.0, seed=7)
    events = list(run(jobs, failures, Cluster.uniform(1, 2)).timeline)
    first = [event for event in events if isinstance(event, AttemptFailed)][:2]
    mean_s = 3600.0 / 0.01 / 2
    assert first[0].at_s == pytest.approx(exponential(7, 1, 0, 0) * mean_s)
    assert first[1].at_s - first[0].at_s == pytest.approx(exponential(7, 1, 0, 1) * mean_s)
    began_s = next(event.at_s for event in events if isinstance(event, Started) and event.job == 1)
    of_b = [event.at_s for event in events if isinstance(event, AttemptFailed) and event.job == 1]
    assert of_b[0] - began_s == pytest.approx(exponential(7, 1, 1, 0) * mean_s)


def test_nodes_fail_and_are_repaired_when_the_seed_says():
    jobs = workload("one", ["a"], [0.0], [1], ["m"], duration_s=[5e5], startup_s=[0.0])
    failures = rota.Failures(node_mtbf_s=1e5, node_repair_s=2e4, checkpoint_every_s=math.inf, seed=3)
    done = run(jobs, failures)
    fails_s = exponential(3, 2, 0, 0) * 1e5
    repaired_s = fails_s + exponential(3, 2, 0, 1) * 2e4
    assert fails_s < 5e5
    assert list(done.timeline)[2:7] == [
        NodeLost(pytest.approx(fails_s), 0),
        RolledBack(pytest.approx(fails_s), 0, pytest.approx(fails_s)),
        Preempted(pytest.approx(fails_s), 0, pytest.approx(5e5)),
        NodeJoined(pytest.approx(repaired_s), 0),
        Started(pytest.approx(repaired_s), 0, 1.0, (0,)),
    ]
    found = measure(done.timeline, jobs, ONE).metrics
    assert found.failed_attempts == 0  # a node has, not the job
    assert found.preemptions >= 1
    assert found.availability < 1.0


def test_failures_are_as_frequent_as_the_rate_says():
    jobs = rota.synthetic_trace(jobs=2000, gpus=64, seed=4)
    found = measure(
        run(jobs, rota.Failures(per_gpu_hour=0.05, checkpoint_every_s=0.0), Cluster.uniform(8, 8)).timeline,
        jobs,
        Cluster.uniform(8, 8),
    )
    expected = 0.05 * float((found.times.running_s * jobs.gpus).sum()) / 3600.0
    assert found.metrics.failed_attempts == pytest.approx(expected, abs=4 * math.sqrt(expected))


def test_a_node_that_is_away_by_plan_stays_away_when_it_is_repaired_and_a_broken_one_does_not_join():
    cluster = Cluster(
        (Node(1), Node(1)), changes=(NodeChange(10.0, 1, joins=False), NodeChange(2e6, 1, joins=True))
    )
    jobs = workload("one", ["a"], [0.0], [1], ["m"], duration_s=[4e6], startup_s=[0.0])
    failures = rota.Failures(node_mtbf_s=3e4, node_repair_s=3e4, checkpoint_every_s=0.0, seed=1)
    changes, at_s = [(10.0, "leaves"), (2e6, "joins")], 0.0
    for number in range(200):
        at_s += exponential(1, 2, 1, number) * 3e4
        changes.append((at_s, "repaired" if number % 2 else "fails"))
    expected, reasons = [], set()
    for at_s, what in sorted(changes):
        was_up = not reasons
        reasons ^= {"plan"} if what in ("leaves", "joins") else {"broken"}
        if was_up == bool(reasons):
            expected.append((at_s, not reasons))
    events = [
        (event.at_s, isinstance(event, NodeJoined))
        for event in run(jobs, failures, cluster).timeline
        if isinstance(event, NodeJoined | NodeLost) and event.node == 1
    ]
    assert expected[0] == (10.0, False)
    assert len([at_s for at_s, _ in expected if at_s > 2e6]) > 20
    assert events == [(pytest.approx(at_s), up) for at_s, up in expected[: len(events)]]
    assert len(events) > 20


def test_a_run_that_waits_for_nodes_for_ever_says_so():
    cluster = Cluster((Node(1), Node(1)), changes=(NodeChange(10.0, 1, joins=False),))
    jobs = workload("one", ["a"], [0.0], [2], ["m"], duration_s=[100.0])
    with pytest.raises(Stuck, match="nothing runs and nothing will happen"):
        run(jobs, rota.Failures(node_mtbf_s=1e5, node_repair_s=1e3), cluster)


# what must hold


@st.composite
def workloads(draw: st.DrawFn, most: int = 20) -> Workload:
    n = draw(st.integers(1, most))
    times = st.one_of(st.sampled_from([0.0, 10.0, 100.0]), st.floats(0.0, 5e4))
    seconds = st.one_of(st.sampled_from([60.0, 3600.0]), st.floats(0.5, 5e4))
    attempts = st.lists(st.floats(1.0, 4000.0), max_size=2).map(tuple)
    return workload(
        "random",
        ids=[f"j{i}" for i in range(n)],
        submit_s=draw(st.lists(times, min_size=n, max_size=n)),
        gpus=draw(st.lists(st.sampled_from([1, 1, 2, 3, 4, 8]), min_size=n, max_size=n)),
        model=draw(st.lists(st.sampled_from(MODELS), min_size=n, max_size=n)),
        duration_s=draw(st.lists(seconds, min_size=n, max_size=n)),
        priority=draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)),
        failed_after_s=draw(st.lists(attempts, min_size=n, max_size=n)),
        failed=draw(st.lists(st.booleans(), min_size=n, max_size=n)),
    )


def same(one, other):
    assert np.array_equal(one.events, other.events)
    assert np.array_equal(one.slots, other.slots)


CHANGING = Cluster(
    nodes=(Node(8, 0, "v100"), Node(4, 0, "k80"), Node(8, 1, "v100")),
    cross_node=1.5,
    speeds={"k80": {"default": 0.25, "bert": 0.1}},
    changes=(NodeChange(50.0, 1, False), NodeChange(100.0, 0, False), NodeChange(900.0, 0, True)),
)


@pytest.mark.parametrize("cost", [*COSTS, "checkpoints"])
@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=12, deadline=None)
@given(
    jobs=workloads(),
    seed=st.integers(0, 2**63 - 1),
    cluster=st.sampled_from([Cluster.uniform(2, 8), CHANGING]),
)
def test_no_work_appears_or_disappears(name, cost, referee, jobs, seed, cluster):
    model = COSTS.get(cost, replace(RESTART, checkpoint_every_s=600.0))
    policy = scheduler_class(name)()
    done = simulate(jobs, cluster, policy, model, failures=replace(OFTEN, seed=seed))
    seen = referee(jobs, cluster, model, policy.needs.sharing, done.timeline)
    found = measure(done.timeline, jobs, cluster)
    assert [life.failures for life in seen.lives] == (found.times.attempts - 1 + found.times.failed).tolist()
    assert found.metrics.failed_attempts == sum(life.failures for life in seen.lives)
    assert found.metrics.goodput >= 0.0
    assert 0.0 < found.metrics.availability <= 1.0


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", [name for name in SCHEDULERS if compiled_of(scheduler_class(name)())])
@settings(max_examples=10, deadline=None)
@given(jobs=workloads(), seed=st.integers(0, 99))
def test_all_drivers_agree(name, cost, jobs, seed):
    policy, failures = scheduler_class(name)(), replace(OFTEN, seed=seed)
    runs = [
        simulate(jobs, CHANGING, policy, COSTS[cost], compiled=compiled, failures=failures)
        for compiled in (False, True)
    ]
    same(runs[0].timeline, runs[1].timeline)
    bare = engine_for(jobs, CHANGING, policy.needs, COSTS[cost], keeps_timeline=False, failures=failures)
    drive_compiled(bare, compiled_of(policy), 7)
    assert bare.instants == runs[0].instants


@pytest.mark.parametrize("name", ["srtf", "tiresias", "antman", "muri-l"])
@settings(max_examples=10, deadline=None)
@given(jobs=workloads(), at=st.integers(0, 60), ahead=st.integers(0, 30))
def test_a_copy_goes_on_with_the_same_failures(name, jobs, at, ahead):
    policy = scheduler_class(name)()
    whole = simulate(jobs, CHANGING, policy, failures=OFTEN).timeline
    engine = engine_for(jobs, CHANGING, policy.needs, failures=OFTEN)
    go_on(engine, policy, at)
    snapshot = engine.snapshot()
    go_on(engine, policy, ahead)
    (copy,) = engine.fork(1)
    go_on(engine, policy)
    same(engine.timeline(), whole)
    engine.restore(snapshot)
    go_on(engine, policy)
    same(engine.timeline(), whole)
    go_on(copy, policy)
    same(copy.timeline(), whole)


def go_on(engine, policy, instants=None):
    for view in islice(engine, instants):
        engine.commit(planned(policy, view))


@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=5, deadline=None)
@given(jobs=workloads())
def test_where_nothing_can_fail_nothing_differs(name, jobs):
    policy = scheduler_class(name)()
    calm = simulate(jobs, CHANGING, policy).timeline
    same(simulate(jobs, CHANGING, policy, failures=NOTHING).timeline, calm)
    assert not np.isin(calm.events["kind"], [EventKind.ATTEMPT_FAILED, EventKind.ROLLED_BACK]).any()


def test_schedulers_meet_the_same_failures():
    jobs = rota.synthetic_trace(jobs=60, gpus=16, seed=2)
    cluster, failures = Cluster.uniform(2, 8), rota.Failures(per_gpu_hour=0.1, seed=5)
    first = []
    for name in ("fifo", "srtf", "tiresias"):
        ran_s, since_s, failed_s = dict.fromkeys(range(60), 0.0), {}, {}
        for event in run(jobs, failures, cluster, name).timeline:
            job = getattr(event, "job", -1)
            if isinstance(event, Started):
                since_s[job] = event.at_s
            elif isinstance(event, Preempted | AttemptFailed | Finished):
                ran_s[job] += event.at_s - since_s[job]
                if isinstance(event, AttemptFailed):
                    failed_s.setdefault(job, ran_s[job])
        first.append(failed_s)
    assert len(first[0]) > 5
    assert first[1] == pytest.approx(first[0])
    assert first[2] == pytest.approx(first[0])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"per_gpu_hour": -1.0}, "failures: per_gpu_hour is -1.0; it must be 0 or more"),
        ({"node_mtbf_s": math.nan}, "failures: node_mtbf_s is nan"),
        ({"node_repair_s": 0.0}, "failures: node_repair_s is 0.0; it must be above 0"),
        ({"checkpoint_every_s": -5.0}, "failures: checkpoint_every_s is -5.0"),
        ({"attempts": 0}, "failures: attempts is 0; it must be at least 1"),
        ({"seed": -1}, "failures: seed is -1"),
    ],
)
def test_what_cannot_be_is_refused(given, says):
    with pytest.raises(ConfigError, match=says):
        rota.Failures(**given)


def test_two_intervals_between_checkpoints_are_refused():
    with pytest.raises(ConfigError, match=r"checkpoint_every_s and failures\.checkpoint_every_s differ"):
        rota.simulate(
            one_job(), ONE, "fifo", checkpoint_every_s=10.0, failures=rota.Failures(checkpoint_every_s=20.0)
        )
    with pytest.raises(ConfigError, match=r"failures is a dict; give a rota\.Failures"):
        rota.simulate(one_job(), ONE, "fifo", failures={"seed": 1})
    with pytest.raises(ConfigError, match="node_mtbf_s cannot be combined with slots_per_gpu"):
        simulate(
            one_job(), Cluster((Node(4),), slots_per_gpu=4), scheduler_class("fifo")(),
            failures=rota.Failures(node_mtbf_s=1e5),
        )  # fmt: skip
