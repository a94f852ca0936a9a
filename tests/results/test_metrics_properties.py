"""The one pass over a timeline against a slow account that keeps everything in dictionaries."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.core.cluster import Cluster
from rota.core.costs import INTERVAL, RESTART
from rota.core.timeline import Arrived, Finished, Migrated, Preempted, Started, Timeline
from rota.policies.cluster.antman import AntMan
from rota.policies.cluster.srtf import Srtf
from rota.results.metrics import MeasuredRun, measure
from rota.results.timeline_pass import segments
from rota.simulator.jobs import simulate
from rota.workload.jobs import Workload, workload

CLUSTER = Cluster.uniform(2, 4)
RUNS = [
    pytest.param(Srtf(), RESTART, id="srtf-restart"),  # pauses
    pytest.param(Srtf(), INTERVAL, id="srtf-interval"),  # moves
    pytest.param(AntMan(), RESTART, id="antman-restart"),  # shares slots
]


class Moment(NamedTuple):
    """How things stand from one instant to the next."""

    from_s: float
    to_s: float
    slots: dict[int, tuple[int, ...]]
    """Of each running job."""
    left: dict[int, float]
    """Iterations of each waiting job."""


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    n = draw(st.integers(1, 9))
    number = st.integers(0, 40)
    return workload(
        "drawn",
        ids=[f"job {i}" for i in range(n)],
        submit_s=draw(st.lists(number, min_size=n, max_size=n)),
        gpus=draw(st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=n, max_size=n)),
        model=draw(st.lists(st.sampled_from(["bert", "resnet18"]), min_size=n, max_size=n)),
        duration_s=draw(st.lists(st.integers(1, 60), min_size=n, max_size=n)),
        priority=draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)),
    )


def moments(timeline: Timeline, jobs: Workload) -> Iterator[Moment]:
    slots: dict[int, tuple[int, ...]] = {}
    left: dict[int, float] = {}
    times = [event.at_s for event in timeline]
    for event, (now_s, next_s) in zip(timeline, pairwise([*times, times[-1]]), strict=True):
        match event:
            case Arrived(_, job):
                left[job] = jobs.iterations[job]
            case Preempted(_, job, remaining):
                del slots[job]
                left[job] = max(remaining, min(1.0, jobs.iterations[job]))
            case Started(_, job, _, where) | Migrated(_, job, _, where):
                left.pop(job, None)
                slots[job] = where
            case Finished(_, job):
                del slots[job]
        if next_s > now_s:
            yield Moment(now_s, next_s, dict(slots), dict(left))


def blocking_index(story: list[Moment], jobs: Workload) -> float:
    waited_s: Counter[int] = Counter()
    total, blocked_s = 0.0, 0.0
    for moment in story:
        for job in moment.left:
            waited_s[job] += moment.to_s - moment.from_s
        if moment.left:
            half_s = (moment.to_s - moment.from_s) / 2
            ages = [
                (waited_s[job] - half_s) / (left * jobs.iteration_s[job]) for job, left in moment.left.items()
            ]
            total += 2 * half_s * sum(ages) / len(ages)
            blocked_s += 2 * half_s
    return total / blocked_s if blocked_s else 0.0


def fairness(story: list[Moment], jobs: Workload, job: int, jct_s: float) -> float:
    life = [moment for moment in story if job in moment.slots or job in moment.left]
    lived_s = sum(moment.to_s - moment.from_s for moment in life)
    asked_s = sum(
        (moment.to_s - moment.from_s) * sum(jobs.gpus[other] for other in {*moment.slots, *moment.left})
        for moment in life
    )
    return float(jct_s / (jobs.solo_s[job] * max(1.0, asked_s / lived_s / CLUSTER.slots)))


def check_times(measured: MeasuredRun, story: list[Moment], jobs: Workload, timeline: Timeline) -> None:
    times = measured.times
    for job in range(len(jobs)):
        ended_s = next(event.at_s for event in timeline if isinstance(event, Finished) and event.job == job)
        assert times.jct_s[job] == ended_s - jobs.submit_s[job]
        waiting_s = sum(moment.to_s - moment.from_s for moment in story if job in moment.left)
        assert times.waiting_s[job] == pytest.approx(waiting_s, abs=1e-9)
        assert times.waiting_s[job] + times.running_s[job] == pytest.approx(times.jct_s[job], abs=1e-6)
        assert times.fairness[job] == pytest.approx(fairness(story, jobs, job, times.jct_s[job]))


def check_metrics(measured: MeasuredRun, story: list[Moment], jobs: Workload) -> None:
    metrics, span_s = measured.metrics, story[-1].to_s - story[0].from_s
    busy_s = sum(
        (m.to_s - m.from_s) * len({slot for slots in m.slots.values() for slot in slots}) for m in story
    )
    queue_s = sum((m.to_s - m.from_s) * len(m.left) for m in story)
    assert metrics.utilisation == pytest.approx(busy_s / span_s / CLUSTER.slots)
    assert metrics.queue_length == pytest.approx(queue_s / span_s)
    assert metrics.blocking_index == pytest.approx(blocking_index(story, jobs), rel=1e-9)
    assert metrics.preemptions == sum(
        len(m.left.keys() & before.slots.keys()) for before, m in pairwise(story)
    )


@pytest.mark.parametrize(("policy", "cost"), RUNS)
@settings(max_examples=60)
@given(jobs=workloads())
def test_metrics_agree_with_a_slow_account(policy, cost, jobs):
    timeline = simulate(jobs, CLUSTER, policy, cost).timeline
    measured = measure(timeline, jobs, CLUSTER)
    story = list(moments(timeline, jobs))
    check_times(measured, story, jobs, timeline)
    check_metrics(measured, story, jobs)


@pytest.mark.parametrize(("policy", "cost"), RUNS)
@settings(max_examples=60)
@given(jobs=workloads())
def test_segments_cover_exactly_the_slot_time_of_each_job(policy, cost, jobs):
    timeline = simulate(jobs, CLUSTER, policy, cost).timeline
    cut = segments(timeline)
    held_s: Counter[int] = Counter()
    for job, start_s, end_s, gpus in zip(cut.job, cut.start_s, cut.end_s, cut.gpus, strict=True):
        assert end_s > start_s
        held_s[int(job)] += (end_s - start_s) * gpus
    gpu_s = measure(timeline, jobs, CLUSTER).times.running_s * jobs.gpus
    assert [held_s[job] for job in range(len(jobs))] == pytest.approx(gpu_s.tolist(), abs=1e-6)
