"""What it takes to have a checkpoint where it is needed: latency, and size ÷ bandwidth.

A step takes a second; `Reported` reads: at, slot, trial, steps, began, ended, moved, metric.
"""

import pytest

from rota.core.cluster import Cluster, Slot
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Assigned, Clone, Cloned, Idled, Reported, TrialFinished

# Nodes 0 and 1 are at one switch, node 2 at another. Node 0 has two slots: 0 and 1; then come 2 and 3.
CLUSTER = Cluster.of_slots((Slot(0), Slot(0), Slot(1), Slot(2)), switches=(0, 0, 1))
COSTS = AssignmentCosts(latency_s=2.0, bandwidth_mb_s=10.0, cross_switch_mb_s=5.0)
BIG = {"size_mb": 40.0}
SAME_SWITCH_S = 2.0 + 40.0 / 10.0
OTHER_SWITCH_S = 2.0 + 40.0 / 5.0


def reports(done):
    return [event for event in done.timeline if isinstance(event, Reported)]


def test_a_checkpoint_moves_when_the_node_or_the_switch_is_another(run):
    lists = [(slot, [(0, 10)]) for slot in (0, 0, 1, 2, 3)]
    assert reports(run([BIG], CLUSTER, *lists, steps=50, costs=COSTS)) == [
        Reported(10.0, 0, 0, 10, 0.0, 10.0, 0.0, 0.0),  # there is nothing to move yet
        Reported(20.0, 0, 0, 10, 10.0, 20.0, 0.0, 0.0),  # the same slot
        Reported(30.0, 1, 0, 10, 20.0, 30.0, 0.0, 0.0),  # the same node
        Reported(46.0, 2, 0, 10, 30.0, 46.0, SAME_SWITCH_S, 0.0),
        Reported(66.0, 3, 0, 10, 46.0, 66.0, OTHER_SWITCH_S, 0.0),
    ]


def test_what_is_said_about_switches_only_matters_if_their_bandwidth_is_given(run):
    lists = [(slot, [(0, 10)]) for slot in (0, 3)]
    done = run([BIG], CLUSTER, *lists, costs=AssignmentCosts(latency_s=2.0, bandwidth_mb_s=10.0))
    assert reports(done)[-1].moved_s == SAME_SWITCH_S


def test_a_list_is_dispatched_and_then_the_first_checkpoint_is_moved(run):
    costs = AssignmentCosts(dispatch_s=1.0, latency_s=2.0, bandwidth_mb_s=10.0)
    lists = [(0, [(0, 10), (1, 10)]), (2, [(0, 10), (1, 10)])]
    # 1 s + 10 s + 10 s; then 1 s + 6 s + 10 s, and 6 s + 10 s.
    assert [(r.ended_s, r.moved_s) for r in reports(run([BIG, BIG], CLUSTER, *lists, costs=costs))] == [
        (11.0, 1.0),
        (21.0, 0.0),
        (38.0, 7.0),
        (54.0, 6.0),
    ]


@pytest.mark.parametrize("report_each", [True, False])
def test_the_checkpoint_of_a_trial_that_is_in_a_list_several_times_moves_once(run, report_each):
    lists = [(0, [(0, 10)]), (2, [(0, 10), (0, 10)])]
    done = run([BIG], CLUSTER, *lists, steps=30, costs=COSTS, report_each=report_each)
    assert [report.moved_s for report in reports(done)] == [0.0, SAME_SWITCH_S, 0.0]
    assert done.makespan_s == 36.0


@pytest.mark.parametrize("report_each", [True, False])
def test_policies_see_when_a_list_will_be_done_with_its_dispatch_and_moves(run, by_hand, report_each):
    lists = [(0, [(0, 10)]), (3, [(0, 10), (1, 30), (0, 10)])]
    seen = []

    class Watching(by_hand):
        def hand_out(self, view):
            for hand in super().hand_out(view):
                yield hand
                seen.append(float(view.ends_s[hand.slot]))

    costs = AssignmentCosts(dispatch_s=1.0, latency_s=2.0, bandwidth_mb_s=10.0)
    done = run(
        [BIG, BIG], CLUSTER, steps=30, costs=costs, report_each=report_each, allocation=Watching(*lists)
    )  # fmt: skip
    # 1 + 10; from there 1 + 6 + 10 + 30 + 10.
    assert seen == [11.0, 68.0]
    assert [event.at_s for event in done.timeline if isinstance(event, Idled)] == seen


# clones


def test_a_clone_begins_with_the_checkpoint_of_its_donor_wherever_that_is(run, verdicts):
    # Trial 1, on node 2, reports at 5 s and at 10 s; trial 0, on node 0, goes on as trial 1 at 10 s.
    cluster = Cluster.of_slots((Slot(0), Slot(1), Slot(2, 2.0)), switches=(0, 0, 1))
    hyper = {**BIG, "gain": 1.0}
    lists = [(0, [(0, 10)]), (2, [(1, 10)]), (0, [(0, 10)]), (2, [(1, 10)])]
    clone = Clone(0, 1, hyper, ("deepen 0",))
    done = run(
        [BIG, {**BIG, "gain": 3.0}], cluster, *lists, costs=COSTS, evolution=verdicts({(0, 10): clone})
    )
    # The donor is done with 20 × 3; its copy has 10 × 1 more.
    assert done.timeline[7:] == [
        Assigned(5.0, 2, 1, 10),
        Reported(10.0, 0, 0, 10, 0.0, 10.0, 0.0, 0.0),
        Idled(10.0, 0),
        Reported(10.0, 2, 1, 10, 5.0, 10.0, 0.0, 60.0),
        TrialFinished(10.0, 1),
        Idled(10.0, 2),
        Cloned(10.0, 0, 1, hyper, ("deepen 0",)),
        Assigned(10.0, 0, 1, 10),
        Reported(30.0, 0, 0, 10, 10.0, 30.0, OTHER_SWITCH_S, 70.0),
        TrialFinished(30.0, 0),
        Idled(30.0, 0),
    ]
    assert done.state.hyper[0] == hyper
    assert done.state.changes == [("deepen 0",), ()]


def test_a_clone_in_the_middle_of_a_list_fetches_the_checkpoint_before_its_next_part(run, verdicts):
    cluster = Cluster.of_slots((Slot(0), Slot(1, 2.0)))
    lists = [(0, [(0, 10), (0, 10)]), (1, [(1, 20)])]
    done = run([BIG, BIG], cluster, *lists, costs=COSTS, evolution=verdicts({(0, 10): Clone(0, 1, BIG)}))
    # Trial 1 is on node 1, done at 10 s; then 6 s for its checkpoint, and ten steps.
    assert reports(done)[-1] == Reported(26.0, 0, 0, 10, 10.0, 26.0, SAME_SWITCH_S, 0.0)


def test_a_clone_goes_on_at_the_pace_of_what_it_has_become(run, verdicts):
    slower = {"step_s": 3.0}
    lists = [(0, [(0, 10), (0, 10)]), (1, [(1, 5), (1, 15)])]
    done = run(
        [{}, {}], Cluster.of_speeds([1.0, 1.0]), *lists, evolution=verdicts({(0, 10): Clone(0, 1, slower)})
    )
    assert [event for event in done.timeline if isinstance(event, TrialFinished)] == [
        TrialFinished(20.0, 1),
        TrialFinished(40.0, 0),  # ten steps of 1 s, ten of 3 s
    ]
    assert done.state.kinds == ["1.0 0.0", "3.0 0.0"]


def test_a_clone_has_what_its_donor_has_reported_and_not_what_is_still_on_its_way(run, verdicts):
    # Lists report at their end. At 20 s trial 1 has trained for 20 steps of its second list, unreported.
    gains = [{}, {"gain": 1.0}]
    lists = [(0, [(0, 10)]), (1, [(1, 5)]), (0, [(0, 10)]), (1, [(1, 10), (1, 15)]), (0, [(0, 10)])]
    clone = Clone(0, 1, {})
    done = run(
        gains, Cluster.of_speeds([1.0, 1.0]), *lists, steps=30, report_each=False,
        evolution=verdicts({(0, 20): clone}),
    )  # fmt: skip
    assert [report.metric for report in reports(done) if report.trial == 0] == [0.0, 0.0, 5.0]
