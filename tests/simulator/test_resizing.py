"""Gangs of several sizes: by hand, and what must hold."""

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.costs import COSTS, RESTART
from rota.core.errors import ConfigError, IllegalPlan, TraceError
from rota.core.loop import planned
from rota.core.policy import Needs
from rota.core.timeline import Arrived, Finished, Resized, Started
from rota.policies.cluster.elastic import Elastic
from rota.policies.cluster.registry import scheduler_class
from rota.results.metrics import measure
from rota.simulator.jobs import engine_for, simulate
from rota.workload.jobs import Workload, workload
from rota.workload.plain import write
from rota.workload.profiles import MODELS

FOUR = Cluster.uniform(1, 4)
SIZES = ((1, 1.9), (2, 1.0), (4, 0.55))


def two_jobs(startup_s=10.0) -> Workload:
    return workload(
        "two", ["a", "b"], [0.0, 20.0], [2, 2], ["m", "m"], duration_s=[100.0, 10.0],
        iterations=[100.0, 10.0],
        iteration_s=[1.0, 1.0], startup_s=[startup_s, 0.0], sizes=[SIZES, ()],
    )  # fmt: skip


def test_a_job_grows_into_idle_slots_and_shrinks_when_another_needs_them():
    # a begins with all four slots and does 10 s ÷ 0.55 s = 18.2 iterations until b comes, which takes two. a
    # has two left, so it does nothing but start up until b ends. Then four slots save 81.8 × 0.45 s = 37 s,
    # more than the 10 s of another start: 81.8 × 0.55 s = 45 s later it is done.
    jobs = two_jobs()
    done = simulate(jobs, FOUR, Elastic())
    assert list(done.timeline) == [
        Arrived(0.0, 0),
        Started(0.0, 0, 0.55, (0, 1, 2, 3)),
        Arrived(20.0, 1),
        Started(20.0, 1, 1.0, (1, 2)),
        Resized(20.0, 0, 1.0, (0, 3)),
        Finished(30.0, 1),
        Resized(30.0, 0, 0.55, (0, 1, 2, 3)),
        Finished(pytest.approx(85.0), 0),
    ]
    found = measure(done.timeline, jobs, FOUR)
    assert found.times.resizes.tolist() == [2, 0]
    assert found.times.running_s.tolist() == pytest.approx([85.0, 10.0])
    metrics = found.metrics
    assert (metrics.resizes, metrics.migrations, metrics.preemptions) == (2, 0, 0)
    assert metrics.utilisation == pytest.approx(1.0)
    assert metrics.goodput == pytest.approx((100 * 2 + 10 * 2) / (4 * 85))


def test_a_job_does_not_grow_if_that_takes_longer_than_it_saves():
    # With a start-up of 50 s nothing is done until 20 s, and all 100 iterations are left: two slots in place
    # of four cost 45 s, less than a start. But a has to be resized for b, and starts up until 70 s.
    done = simulate(two_jobs(startup_s=50.0), FOUR, Elastic())
    assert list(done.timeline)[-1] == Finished(170.0, 0)
    assert [event.at_s for event in done.timeline if isinstance(event, Resized)] == [20.0]


def test_work_since_the_last_checkpoint_is_lost_by_a_change_of_size():
    cost = replace(RESTART, checkpoint_every_s=7.0)
    metrics = measure(simulate(two_jobs(), FOUR, Elastic(), cost).timeline, two_jobs(), FOUR).metrics
    assert metrics.lost_gpu_s == pytest.approx(3.0 * 4)  # from 17 s to 20 s, on four slots; none at 30 s


def test_a_rigid_scheduler_does_not_see_the_sizes():
    rigid = replace(two_jobs(), sizes=())
    for name in ("srtf", "fifo", "muri-s"):
        same(
            simulate(two_jobs(), FOUR, scheduler_class(name)()),
            simulate(rigid, FOUR, scheduler_class(name)()),
        )
    same(simulate(rigid, FOUR, Elastic()), simulate(rigid, FOUR, scheduler_class("srtf")(), compiled=False))


@dataclass(frozen=True)
class Three(rota.Scheduler):
    """Gives the first job three slots."""

    resizes: bool = True

    @property
    def needs(self):
        return Needs(resizes=self.resizes)

    def plan(self, view):
        plan = view.first_fit(view.order[:1])
        plan.slots = np.arange(3, dtype=np.int32)
        plan.index[2, 1] = 3
        return plan


@pytest.mark.parametrize("resizes", [True, False])
def test_a_gang_has_one_of_the_sizes_of_its_job(resizes):
    with pytest.raises(IllegalPlan, match="the plan gives a job more or fewer slots than it needs"):
        simulate(two_jobs(), FOUR, Three(resizes))


# what must hold


@st.composite
def workloads(draw: st.DrawFn, most: int = 20) -> Workload:
    n = draw(st.integers(1, most))
    times = st.one_of(st.sampled_from([0.0, 10.0, 100.0]), st.floats(0.0, 5e4))
    seconds = st.one_of(st.sampled_from([60.0, 3600.0]), st.floats(0.5, 5e4))
    jobs = workload(
        "random",
        ids=[f"j{i}" for i in range(n)],
        submit_s=draw(st.lists(times, min_size=n, max_size=n)),
        gpus=draw(st.lists(st.sampled_from([1, 1, 2, 3, 4, 8]), min_size=n, max_size=n)),
        model=draw(st.lists(st.sampled_from(MODELS), min_size=n, max_size=n)),
        duration_s=draw(st.lists(seconds, min_size=n, max_size=n)),
        failed_after_s=[(1000.0,)] * n,
    )
    return jobs.elastic(
        *draw(st.sampled_from([(0.5, 2.0), (0.25, 8.0), (1.0, 4.0)])), draw(st.floats(0.0, 1.0))
    )


def same(one, other):
    assert np.array_equal(one.timeline.events, other.timeline.events)
    assert np.array_equal(one.timeline.slots, other.timeline.slots)


CHANGING = Cluster(
    nodes=(Node(8, 0, "v100"), Node(4, 0, "k80"), Node(8, 1, "v100")),
    cross_node=1.5,
    speeds={"k80": {"default": 0.25, "bert": 0.1}},
    changes=(NodeChange(50.0, 1, False), NodeChange(100.0, 0, False), NodeChange(900.0, 0, True)),
)
FAILURES = rota.Failures(per_gpu_hour=0.1, node_mtbf_s=40_000.0, node_repair_s=3000.0, attempts=20)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("cost", [*COSTS, "checkpoints"])
@settings(max_examples=15, deadline=None)
@given(jobs=workloads(), cluster=st.sampled_from([Cluster.uniform(2, 8), CHANGING]))
def test_no_work_appears_or_disappears(cost, fails, referee, jobs, cluster):
    model = COSTS.get(cost, replace(RESTART, checkpoint_every_s=600.0))
    done = simulate(jobs, cluster, Elastic(), model, failures=FAILURES if fails else None)
    referee(jobs, cluster, model, 1, done.timeline)
    resized = sum(isinstance(event, Resized) for event in done.timeline)
    assert measure(done.timeline, jobs, cluster).metrics.resizes == resized
    same(
        done, simulate(jobs, cluster, Elastic(), model, failures=FAILURES if fails else None, compiled=False)
    )


@settings(max_examples=15, deadline=None)
@given(jobs=workloads(), at=st.integers(0, 40))
def test_a_copy_goes_on_as_the_engine_does(jobs, at):
    whole = simulate(jobs, CHANGING, Elastic(), failures=FAILURES)
    engine = engine_for(jobs, CHANGING, Elastic().needs, failures=FAILURES)
    for view in islice(engine, at):
        engine.commit(planned(Elastic(), view))
    (copy,) = engine.fork(1)
    for each in (engine, copy):
        for view in each:
            each.commit(planned(Elastic(), view))
        assert np.array_equal(each.timeline().events, whole.timeline.events)


@settings(max_examples=15, deadline=None)
@given(jobs=workloads(), seed=st.integers(0, 99))
def test_a_job_fails_after_the_same_gpu_time_whatever_the_size_of_its_gang(jobs, seed):
    failures = rota.Failures(
        per_gpu_hour=0.5, seed=seed, as_in_trace=False, attempts=3, checkpoint_every_s=0.0
    )
    cluster = Cluster.uniform(2, 8)
    first = [
        gpu_s_of_first_failures(jobs, cluster, policy, failures)
        for policy in (Elastic(), scheduler_class("fifo")())
    ]
    for job in first[0].keys() & first[1].keys():
        assert first[0][job] == pytest.approx(first[1][job], rel=1e-6)


def gpu_s_of_first_failures(jobs, cluster, policy, failures):
    held, gpu_s, failed = {}, dict.fromkeys(range(len(jobs)), 0.0), {}
    for event in simulate(jobs, cluster, policy, failures=failures).timeline:
        job = getattr(event, "job", None)
        if job in held and type(event).__name__ in (
            "Resized",
            "Migrated",
            "Preempted",
            "AttemptFailed",
            "Failed",
        ):
            since_s, gpus = held.pop(job)
            gpu_s[job] += (event.at_s - since_s) * gpus
        if hasattr(event, "slots"):
            held[job] = event.at_s, len(event.slots)
        if type(event).__name__ in ("AttemptFailed", "Failed"):
            failed.setdefault(job, gpu_s[job])
    return failed


# where sizes come from


def test_sizes_are_halves_and_doubles_of_what_a_job_asks_for():
    jobs = workload(
        "w", ["a", "b"], [0.0, 0.0], [4, 3], ["m", "m"], duration_s=[8.0, 8.0], iteration_s=[1.0, 1.0]
    )
    found = jobs.elastic(smallest=0.25, largest=2.0, serial=0.2)
    assert found.sizes == (
        ((1, pytest.approx(0.2 + 0.8 * 4)), (2, pytest.approx(1.8)), (4, 1.0), (8, pytest.approx(0.6))),
        ((3, 1.0), (6, pytest.approx(0.6))),
    )
    assert jobs.elastic(1.0, 1.0).sizes == ()


def test_a_trace_may_say_them(tmp_path):
    write(tmp_path / "jobs.csv", two_jobs())
    assert "1:1.9|2:1|4:0.55" in (tmp_path / "jobs.csv").read_text()
    assert rota.read_trace(tmp_path / "jobs.csv").sizes == (SIZES, ())


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ("2:1|1:2", "sizes must rise, from 1 on, and have 2 GPUs with its iteration_s of 1"),
        ("1:2|4:0.5", "sizes must rise, from 1 on, and have 2 GPUs"),
        ("2:1|4:0", "seconds must be finite and above 0"),
        ("2:1|four", r"gang sizes with seconds per iteration, as 1:8\.0"),
    ],
)
def test_impossible_sizes_are_refused(tmp_path, sizes, says):
    text = f"id,submit_s,gpus,duration_s,iteration_s,sizes\na,0,2,10,1,{sizes}\n"
    (tmp_path / "jobs.csv").write_text(text)
    with pytest.raises(TraceError, match=says):
        rota.read_trace(tmp_path / "jobs.csv")


def test_what_cannot_be_is_refused():
    jobs = two_jobs()
    with pytest.raises(ConfigError, match="elastic: from 2 to 4 times the gang; give a range around 1"):
        jobs.elastic(2.0, 4.0)
    with pytest.raises(ConfigError, match=r"elastic: serial is 1\.5; it must be 0 to 1"):
        jobs.elastic(serial=1.5)
    with pytest.raises(ConfigError, match="gangs of several sizes cannot be combined with slots_per_gpu"):
        simulate(jobs, Cluster((Node(8),), slots_per_gpu=2), Elastic())
