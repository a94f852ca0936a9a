"""Virtual time: what counts as one instant, and when there is no way on."""

from dataclasses import dataclass

import pytest

from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.costs import INTERVAL, RESTART
from rota.core.errors import IllegalPlan, Stuck
from rota.core.placement import first_fit
from rota.core.policy import Needs
from rota.core.stepping import PATIENCE
from rota.core.timeline import Arrived, Finished, NodeJoined, NodeLost, Preempted, Started
from rota.policies.cluster.antman import AntMan
from rota.policies.cluster.fifo import Fifo
from rota.policies.cluster.muri import MuriL
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.policies.cluster.srsf import Srsf
from rota.policies.cluster.srtf import Srtf
from rota.policies.cluster.tiresias import Tiresias
from rota.simulator.jobs import simulate
from rota.workload.jobs import workload

# Every job here takes a second per iteration and, being of a model that nobody has measured, 10 s to start.

TWO_GPUS = Cluster.uniform(1, 2)


def jobs(*rows):
    """Rows of (submit, gpus, seconds)."""
    submit_s, gpus, seconds = zip(*rows, strict=True)
    n = len(rows)
    return workload(
        "by hand", [f"j{i}" for i in range(n)], submit_s, gpus, ["unmeasured"] * n,
        duration_s=seconds, iterations=seconds, iteration_s=[1.0] * n, stages_s=[[0.3] * n] * 3,
    )  # fmt: skip


def ends(done):
    return [event for event in done.timeline if isinstance(event, Finished)]


# no way on


ALL = [pytest.param(name) if name == "themis" else name for name in SCHEDULERS]


@pytest.mark.parametrize("name", ALL)
def test_when_the_nodes_leave_for_good_the_jobs_that_wait_are_stuck(name):
    cluster = Cluster((Node(1), Node(1)), changes=tuple(NodeChange(50.0, node, False) for node in (0, 1)))
    with pytest.raises(Stuck, match="at 50 s nothing runs and nothing will happen, but 2 jobs wait"):
        simulate(jobs((0, 1, 100), (0, 1, 100)), cluster, scheduler_class(name)())


@pytest.mark.parametrize("name", ALL)
def test_when_all_nodes_are_away_for_a_while_the_jobs_wait_for_them(name):
    changes = tuple(NodeChange(at_s, node, at_s > 50.0) for at_s in (50.0, 90.0) for node in (0, 1))
    done = simulate(
        jobs((0, 1, 100), (0, 1, 100)), Cluster((Node(1), Node(1)), changes=changes), scheduler_class(name)()
    )
    # 40 s of work are done by 50 s; at 90 s both start anew.
    assert sorted(ends(done), key=lambda end: end.job) == [Finished(160.0, 0), Finished(160.0, 1)]


def test_a_gang_for_which_too_few_nodes_are_left_is_stuck():
    cluster = Cluster((Node(1), Node(1)), changes=(NodeChange(5.0, 1, joins=False),))
    with pytest.raises(
        Stuck, match=r"at 20 s .* 1 jobs wait; the first, number 1 of the trace, needs 2 slots"
    ):
        simulate(jobs((0, 1, 10), (10, 2, 10)), cluster, Fifo())


def test_who_is_done_by_the_time_its_node_leaves_is_not_stuck():
    cluster = Cluster((Node(1),), changes=(NodeChange(50.0, 0, joins=False),))
    # 10 s start-up and 40 s of work: it ends as the node goes.
    assert list(simulate(jobs((0, 1, 40)), cluster, Fifo()).timeline)[2:] == [
        Finished(50.0, 0),
        NodeLost(50.0, 0),
    ]


def test_jobs_wait_for_a_node_that_will_join():
    cluster = Cluster((Node(1),), changes=(NodeChange(30.0, 0, joins=True),))
    assert list(simulate(jobs((0, 1, 10)), cluster, Srtf()).timeline) == [
        Arrived(0.0, 0),
        NodeJoined(30.0, 0),
        Started(30.0, 0, 1.0, (0,)),
        Finished(50.0, 0),
    ]


def test_a_node_may_leave_and_come_back_at_once():
    changes = (NodeChange(30.0, 0, joins=False), NodeChange(30.0, 0, joins=True))
    done = simulate(jobs((0, 1, 100)), Cluster((Node(1),), changes=changes), Srtf())
    assert list(done.timeline)[2:] == [
        NodeLost(30.0, 0),
        Preempted(30.0, 0, 80.0),
        NodeJoined(30.0, 0),
        Started(30.0, 0, 1.0, (0,)),
        Finished(120.0, 0),
    ]


@dataclass(frozen=True)
class Restless:
    """Wants to be asked again, so many seconds later, for ever."""

    after_s: float

    @property
    def needs(self):
        return Needs()

    def plan(self, view):
        plan = first_fit(view, view.order)
        plan.wake_at_s = view.now_s + self.after_s
        return plan


def test_a_policy_that_keeps_changing_its_mind_is_stopped():
    with pytest.raises(Stuck, match="the policy keeps changing its plan at 7 s"):
        simulate(jobs((7, 1, 10)), Cluster.uniform(1, 1), Restless(0.0))


def test_a_policy_may_be_asked_as_often_as_it_likes_if_time_passes():
    done = simulate(jobs((7, 1, 10)), Cluster.uniform(1, 1), Restless(1 / 1024))
    assert ends(done) == [Finished(27.0, 0)]
    assert done.instants == 1 + 20 * 1024
    assert done.instants > PATIENCE


def test_a_policy_that_wants_to_be_asked_in_the_past_is_told_so():
    with pytest.raises(IllegalPlan):
        simulate(jobs((7, 1, 10)), Cluster.uniform(1, 1), Restless(-1.0))


class OnlyTheFirst:
    """One job at a time, however many would fit."""

    needs = Needs()

    def plan(self, view):
        return first_fit(view, view.order[:1])


def test_a_policy_may_place_some_of_the_jobs_only():
    done = simulate(jobs((0, 1, 10), (0, 1, 20), (0, 1, 30)), TWO_GPUS, OnlyTheFirst())
    assert ends(done) == [Finished(20.0, 0), Finished(50.0, 1), Finished(90.0, 2)]


# what counts as one instant: 1e-9 of 1000 s are a microsecond

JUST_AFTER = 1000 * (1 + 5e-10)
WELL_AFTER = 1000 * (1 + 5e-9)


def test_under_interval_ends_within_a_billionth_are_one_event():
    done = simulate(jobs((0, 1, 1000), (0, 1, JUST_AFTER)), TWO_GPUS, Srtf(), INTERVAL)
    assert ends(done) == [Finished(1000.0, 0), Finished(1000.0, 1)]
    assert done.instants == 2


def test_they_end_when_the_one_that_is_listed_first_does():
    # The gang has more GPU time left, so SRSF lists the other first, though it ends half a microsecond later.
    done = simulate(jobs((0, 2, 1000), (0, 1, JUST_AFTER)), Cluster.uniform(1, 3), Srsf(), INTERVAL)
    assert ends(done) == [Finished(JUST_AFTER, 1), Finished(JUST_AFTER, 0)]
    assert done.instants == 2


def test_under_interval_ends_further_apart_are_two_events():
    done = simulate(jobs((0, 1, 1000), (0, 1, WELL_AFTER)), TWO_GPUS, Srtf(), INTERVAL)
    # The second lost 10 s in the interval that the first end closes, and has no more than those left.
    assert ends(done) == [Finished(1000.0, 0), Finished(pytest.approx(1010.0), 1)]
    assert done.instants == 3


def test_under_restart_ends_are_one_event_only_if_they_are_equal():
    done = simulate(jobs((0, 1, 1000), (0, 1, JUST_AFTER)), TWO_GPUS, Srtf(), RESTART)
    assert ends(done) == [Finished(1010.0, 0), Finished(10 + JUST_AFTER, 1)]
    assert done.instants == 3
    assert simulate(jobs((0, 1, 1000), (0, 1, 1000)), TWO_GPUS, Srtf(), RESTART).instants == 2


def test_for_tiresias_ends_must_be_equal_even_under_interval():
    policy = Tiresias(limits_gpu_s=())
    assert simulate(jobs((0, 1, 1000), (0, 1, JUST_AFTER)), TWO_GPUS, policy, INTERVAL).instants == 3
    assert simulate(jobs((0, 1, 1000), (0, 1, 1000)), TWO_GPUS, policy, INTERVAL).instants == 2


def test_for_antman_ends_within_a_tenth_of_a_millisecond_join_the_earliest():
    done = simulate(jobs((0, 1, 1000), (0, 1, 1000.00005)), TWO_GPUS, AntMan(), INTERVAL)
    assert ends(done) == [Finished(1000.0, 0), Finished(1000.0, 1)]
    assert simulate(jobs((0, 1, 1000), (0, 1, 1000.0002)), TWO_GPUS, AntMan(), INTERVAL).instants == 3


def test_under_interval_arrivals_within_a_billionth_are_one_event():
    work = jobs((1000, 1, 5), (JUST_AFTER, 1, 5), (WELL_AFTER, 1, 5))
    arrivals = [
        event
        for event in simulate(work, Cluster.uniform(1, 3), Srtf(), INTERVAL).timeline
        if isinstance(event, Arrived)
    ]
    assert arrivals == [Arrived(1000.0, 0), Arrived(1000.0, 1), Arrived(WELL_AFTER, 2)]


def test_under_restart_arrivals_are_when_they_are():
    work = jobs((1000, 1, 5), (JUST_AFTER, 1, 5))
    arrivals = [event for event in simulate(work, TWO_GPUS, Srtf()).timeline if isinstance(event, Arrived)]
    assert arrivals == [Arrived(1000.0, 0), Arrived(JUST_AFTER, 1)]


@pytest.mark.parametrize("seconds", [99.99995, 100.0, 100.00005])
def test_for_muri_an_arrival_and_an_end_that_are_close_happen_when_the_arrival_does(seconds):
    done = simulate(jobs((0, 1, seconds), (100, 1, 50)), Cluster.uniform(1, 1), MuriL(), INTERVAL)
    assert list(done.timeline)[2:] == [
        Finished(100.0, 0),
        Arrived(100.0, 1),
        Started(100.0, 1, 1.0, (0,)),
        Finished(150.0, 1),
    ]
    assert done.instants == 3


@pytest.mark.parametrize(("seconds", "policy", "cost"), [
    (99.9998, MuriL(), INTERVAL),  # further than a tenth of a millisecond
    (99.99995, Srtf(), INTERVAL),  # not a rule of SRTF
    (89.99995, MuriL(), RESTART),  # nor of a real cluster
])  # fmt: skip
def test_otherwise_they_are_two_events(seconds, policy, cost):
    done = simulate(jobs((0, 1, seconds), (100, 1, 50)), Cluster.uniform(1, 1), policy, cost)
    assert ends(done)[0].at_s == pytest.approx(seconds if cost is INTERVAL else seconds + 10, abs=1e-9)
    assert done.instants == 4


@pytest.mark.parametrize("cost", [RESTART, INTERVAL])
def test_an_arrival_at_the_very_end_of_a_job_is_one_event(cost):
    arrives_s = 100 if cost is INTERVAL else 110
    done = simulate(jobs((0, 1, 100), (arrives_s, 1, 50)), Cluster.uniform(1, 1), Srtf(), cost)
    assert list(done.timeline)[2:5] == [
        Finished(arrives_s, 0),
        Arrived(arrives_s, 1),
        Started(arrives_s, 1, 1.0, (0,)),
    ]
    assert done.instants == 3


def test_progress_is_told_how_many_jobs_are_done():
    done_jobs = []
    simulate(jobs(*[(0, 1, 5)] * 3), TWO_GPUS, Fifo(), progress=done_jobs.append)
    assert done_jobs == [3]
