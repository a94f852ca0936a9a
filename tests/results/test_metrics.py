"""Each metric derived by hand on runs that fit on a page."""

from dataclasses import replace

import numpy as np
import pytest

from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.errors import InputError
from rota.core.timeline import Arrived, Failed, Finished, Migrated, NodeJoined, NodeLost, Preempted, Started
from rota.results.metrics import Metrics, at_rank, measure


def test_every_metric_of_two_jobs(two_jobs):
    assert measure(*two_jobs).metrics == Metrics(
        jobs=2,
        avg_jct_s=9.0,  # a: 14, b: 4
        p50_jct_s=9.0,  # half-way between 4 and 14
        p99_jct_s=14.0,
        makespan_s=14.0,
        queueing_s=2.0,  # a waits from 2 to 6, b never
        utilisation=pytest.approx(24 / 28),  # two slots busy for 2 s, one for 4 s, two for 8 s
        queue_length=pytest.approx(4 / 14),
        blocking_index=pytest.approx(0.25),  # a has 8 s left and waits from 0 to 4 s
        fairness_mean=pytest.approx((1.225 + 2 / 3) / 2),
        fairness_worst=pytest.approx(1.225),
        preemptions=1,
        migrations=0,
        goodput=pytest.approx(24 / 28),  # a needs 2 slots for 10 s, b one for 4 s
    )


def test_fairness_compares_with_the_job_alone_on_its_share(two_jobs):
    # In the life of a 32 GPU-seconds are asked for where there are 28; in that of b 12 where there are 8.
    assert measure(*two_jobs).times.fairness == pytest.approx([14 / (10 * 32 / 28), 4 / (4 * 12 / 8)])


def test_a_cluster_that_is_not_full_gives_no_excuse_for_being_slow(write_down, some_jobs):
    timeline = write_down(Arrived(0, 0), Started(5, 0, 1.0, (0,)), Finished(15, 0))
    times = measure(timeline, some_jobs((0, 1, 10, 1)), Cluster.uniform(1, 4)).times
    assert times.fairness.tolist() == [1.5]


def test_the_table_of_jobs_tells_waiting_from_running(two_jobs):
    times = measure(*two_jobs).times
    assert times.submit_s.tolist() == [0, 2]
    assert times.first_start_s.tolist() == [0, 2]
    assert times.end_s.tolist() == [14, 6]
    assert times.waiting_s.tolist() == [4, 0]
    assert times.running_s.tolist() == [10, 4]
    assert times.preemptions.tolist() == [1, 0]


def test_the_series_has_a_step_per_instant(two_jobs):
    series = measure(*two_jobs).series
    assert series.at_s.tolist() == [0, 2, 6, 14]
    assert series.waiting.tolist() == [0, 1, 0, 0]
    assert series.running.tolist() == [1, 1, 1, 0]
    assert series.busy.tolist() == [2, 1, 2, 0]
    assert series.available.tolist() == [2, 2, 2, 2]


def test_a_shared_slot_is_busy_once(shared_slots):
    measured = measure(*shared_slots)
    assert measured.series.busy.tolist() == [2, 2, 1, 0]
    assert measured.series.running.tolist() == [3, 2, 1, 0]
    assert measured.metrics.utilisation == pytest.approx((2 * 6 + 2) / (2 * 8))
    assert measured.metrics.migrations == 1
    assert measured.times.migrations.tolist() == [0, 1, 0]


def test_the_clock_of_the_trace_need_not_start_at_0(shared_slots):
    metrics = measure(*shared_slots).metrics
    assert metrics.makespan_s == 8  # the first submit is at 1, the last end at 9
    assert metrics.avg_jct_s == pytest.approx((6 + 8 + 4) / 3)


def test_waiting_time_adds_up_over_the_spells_of_a_job(write_down, some_jobs):
    timeline = write_down(
        Arrived(0, 0), Arrived(0, 1), Started(0, 1, 1.0, (0,)),
        Finished(4, 1), Started(4, 0, 1.0, (0,)),
        Preempted(6, 0, 4.0),
        Started(9, 0, 1.0, (0,)), Finished(13, 0),
    )  # fmt: skip
    measured = measure(timeline, some_jobs((0, 1, 6, 1), (0, 1, 4, 1)), Cluster.uniform(1, 1))
    assert measured.times.waiting_s.tolist() == [4 + 3, 0]
    # From 0 to 4 s a has 6 s left and has waited 2 s on average; then, for 3 s, 4 s left and 5.5 s waited.
    assert measured.metrics.blocking_index == pytest.approx((4 * 2 / 6 + 3 * 5.5 / 4) / 7)


def test_the_blocking_index_is_a_mean_over_the_jobs_that_wait(write_down, some_jobs):
    timeline = write_down(
        Arrived(0, 0), Arrived(0, 1), Arrived(0, 2), Started(0, 0, 1.0, (0,)),
        Finished(2, 0), Started(2, 1, 1.0, (0,)),
        Finished(3, 1), Started(3, 2, 1.0, (0,)),
        Finished(7, 2),
    )  # fmt: skip
    jobs = some_jobs((0, 1, 2, 1), (0, 1, 1, 1), (0, 1, 4, 1))
    metrics = measure(timeline, jobs, Cluster.uniform(1, 1)).metrics
    # For 2 s b (1 s left) and c (4 s left) wait, then c alone for 1 s.
    assert metrics.blocking_index == pytest.approx((2 * (1 / 1 + 1 / 4) / 2 + 1 * 2.5 / 4) / 3)
    assert metrics.queue_length == pytest.approx((2 * 2 + 1) / 7)


def test_what_is_left_after_a_pause_is_at_least_an_iteration(write_down, some_jobs):
    events = [Arrived(0, 0), Started(0, 0, 1.0, (0,)), Preempted(5, 0, 1e-12), Started(7, 0, 1.0, (0,))]
    metrics = measure(
        write_down(*events, Finished(7, 0)), some_jobs((0, 1, 5, 1)), Cluster.uniform(1, 1)
    ).metrics
    assert metrics.blocking_index == pytest.approx(1.0)


def test_nobody_who_waits_blocks_nobody(shared_slots):
    assert measure(*shared_slots).metrics.blocking_index == 0.0


def test_a_pause_and_a_start_in_one_instant_is_no_preemption(write_down, some_jobs):
    timeline = write_down(
        Arrived(0, 0), Started(0, 0, 1.0, (0,)),
        NodeLost(2, 0), Preempted(2, 0, 8.0), Started(2, 0, 1.0, (1,)),
        Preempted(4, 0, 6.0), Started(5, 0, 1.0, (1,)), Migrated(5, 0, 1.0, (1,)),
        Finished(11, 0),
    )  # fmt: skip
    times = measure(timeline, some_jobs((0, 1, 10, 1)), Cluster.uniform(2, 1)).times
    assert times.preemptions.tolist() == [1]
    assert times.migrations.tolist() == [1]
    assert times.waiting_s.tolist() == [1]


def test_nodes_count_only_while_they_are_there(write_down, some_jobs):
    cluster = Cluster((Node(1), Node(3), Node(2)), changes=(NodeChange(6, 1, True), NodeChange(8, 2, False)))
    timeline = write_down(
        NodeLost(0, 0), NodeJoined(1, 0),
        Arrived(4, 0), Started(4, 0, 1.0, (0,)),
        NodeJoined(6, 1),
        NodeLost(8, 2), NodeLost(8, 2),
        Finished(14, 0), NodeLost(15, 0),
    )  # fmt: skip
    measured = measure(timeline, some_jobs((4, 1, 10, 1)), cluster)
    assert measured.series.at_s.tolist() == [4, 6, 8, 14]
    assert measured.series.available.tolist() == [3, 6, 4, 4]
    assert measured.metrics.utilisation == pytest.approx(10 / (2 * 3 + 2 * 6 + 6 * 4))


def test_fractions_of_a_gpu_are_asked_for_and_there_in_gpus(write_down, some_jobs):
    cluster = replace(Cluster.uniform(1, 2), slots_per_gpu=2)
    timeline = write_down(
        Arrived(0, 0), Arrived(0, 1), Started(0, 0, 1.0, (0, 1)),
        Finished(4, 0), Started(4, 1, 1.0, (0,)), Finished(8, 1),
    )  # fmt: skip
    times = measure(timeline, some_jobs((0, 1, 4, 1), (0, 0.5, 4, 1)), cluster).times
    # One GPU is there; 1.5 are asked for in the life of a, 1 on average in that of b.
    assert times.fairness == pytest.approx([4 / (4 * 1.5), 8 / (4 * 1)])


@pytest.mark.parametrize(("share", "value"), [(0.5, 2.0), (0.99, 3.0), (0.0, 0.0)])
def test_a_percentile_is_one_of_the_values(share, value):
    assert at_rank(np.array([3.0, 0.0, 2.0, 1.0]), share) == value


@pytest.mark.parametrize(
    ("events", "what"),
    [
        ([Arrived(0, 0), Arrived(1, 0)], "event 1, at 1.0 s: job a arrived"),
        ([Started(0, 0, 1.0, (0,))], "event 0, at 0.0 s: job a started"),
        ([Arrived(0, 0), Preempted(2, 0, 1.0)], "event 1, at 2.0 s: job a paused"),
        ([Arrived(0, 0), Finished(2, 0)], "event 1, at 2.0 s: job a finished"),
        ([Arrived(0, 7)], "names jobs"),
        ([NodeLost(0, 7)], "names nodes"),
        ([Arrived(0, 0), Started(0, 0, 1.0, (7,))], "names slots"),
        ([Arrived(1, 0), Started(0, 0, 1.0, (0,))], "not in order of time"),
        ([Arrived(0, 0), Started(1, 0, 1.0, (0,))], "1 of 1 jobs, the first of them a, have not ended"),
    ],
)
def test_a_timeline_that_cannot_be_is_refused(write_down, some_jobs, events, what):
    with pytest.raises(InputError, match=what):
        measure(write_down(*events), some_jobs((0, 1, 5, 1)), Cluster.uniform(1, 1))


# jobs that are given up


@pytest.fixture
def one_failed(write_down, some_jobs):
    """a runs from 0 to 4 s and finishes, b from 0 to 10 s and fails, c from 4 to 6 s and finishes."""
    timeline = write_down(
        Arrived(0, 0), Arrived(0, 1), Arrived(0, 2), Started(0, 0, 1.0, (0,)), Started(0, 1, 1.0, (1,)),
        Finished(4, 0), Started(4, 2, 1.0, (0,)), Finished(6, 2), Failed(10, 1, 3.0),
    )  # fmt: skip
    return timeline, some_jobs((0, 1, 4, 1), (0, 1, 13, 1), (0, 1, 2, 1)), Cluster.uniform(1, 2)


def test_completion_times_are_of_the_jobs_that_finished(one_failed):
    measured = measure(*one_failed)
    found = measured.metrics
    assert (found.jobs, found.failed) == (3, 1)
    assert measured.times.failed.tolist() == [0, 1, 0]
    assert (found.avg_jct_s, found.p50_jct_s, found.p99_jct_s) == (5.0, 5.0, 6.0)  # 4 and 6 s
    assert found.makespan_s == 10.0  # until the last end, whatever it was
    assert found.queueing_s == pytest.approx(4 / 3)  # c waited 4 s
    assert found.utilisation == pytest.approx(16 / 20)
    assert found.fairness_worst == pytest.approx(measured.times.fairness[[0, 2]].max())


def test_a_run_in_which_no_job_finishes_has_no_completion_times(write_down, some_jobs):
    timeline = write_down(Arrived(0, 0), Started(0, 0, 1.0, (0,)), Failed(2, 0, 8.0))
    found = measure(timeline, some_jobs((0, 1, 10, 1)), Cluster.uniform(1, 1)).metrics
    assert (found.jobs, found.failed, found.makespan_s) == (1, 1, 2.0)
    assert (found.avg_jct_s, found.p50_jct_s, found.p99_jct_s, found.fairness_mean) == (0.0, 0.0, 0.0, 0.0)
