"""Nodes that slow down, fail and come back. A step takes a second on a slot of speed 1.

`Reported` reads: at, slot, trial, steps, began, ended, moved, metric.
"""

import pytest

from rota.core.cluster import Cluster, NodeChange, Slot, Slowdown
from rota.core.errors import Stuck
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Assigned, Idled, Joined, NodeFailed, Reported, TrialFinished

ONE = Cluster.of_speeds([1.0])
TWO = Cluster.of_speeds([1.0, 1.0])


def changed(cluster, *changes, slowdowns=()):
    """The same slots; changes are (at, node, joins), slow-downs (at, node, factor)."""
    return Cluster.of_slots(
        cluster.all_slots,
        changes=tuple(NodeChange(*change) for change in changes),
        slowdowns=tuple(Slowdown(*slowdown) for slowdown in slowdowns),
    )


def spans(done):
    """Of each report: trial, when its part began, when it ended."""
    return [(e.trial, e.began_s, e.ended_s) for e in done.timeline if isinstance(e, Reported)]


# slowing down


@pytest.mark.parametrize(
    ("slowdowns", "ends_s"),
    [
        # 4 s at full speed, the other 6 s three times as long: 22 s.
        ([(4.0, 0, 3.0)], 22.0),
        # At 16 s there are 6 s of those 18 s left, which become 2 s.
        ([(4.0, 0, 3.0), (16.0, 0, 1.0)], 18.0),
        # Twice as long from the beginning; then, at 8 s, three times: 12 s are left, which become 18 s.
        ([(0.0, 0, 2.0), (8.0, 0, 3.0)], 26.0),
        # Another node.
        ([(4.0, 1, 3.0)], 10.0),
        # It comes too late.
        ([(10.0, 0, 3.0)], 10.0),
    ],
)
def test_what_is_left_of_a_part_takes_longer_from_the_moment_when_the_node_slows_down(run, slowdowns, ends_s):
    cluster = changed(TWO, slowdowns=slowdowns)
    assert spans(run([{}], cluster, (0, [(0, 10)]), steps=10)) == [(0, 0.0, ends_s)]


def test_a_part_that_begins_as_the_node_slows_down_takes_longer_as_a_whole(run):
    cluster = changed(ONE, slowdowns=[(10.0, 0, 2.0)])
    assert spans(run([{}], cluster, (0, [(0, 10), (0, 10)]))) == [(0, 0.0, 10.0), (0, 10.0, 30.0)]


@pytest.mark.parametrize("at_s", [2.0, 5.0])
def test_a_slow_node_is_slow_at_training_not_at_what_comes_before(run, at_s):
    # 5 s of dispatch, then ten steps at 2 s.
    cluster = changed(ONE, slowdowns=[(at_s, 0, 2.0)])
    done = run([{}], cluster, (0, [(0, 10)]), steps=10, costs=AssignmentCosts(dispatch_s=5.0))
    assert done.makespan_s == 25.0


def test_an_end_that_was_expected_before_the_node_became_faster_means_nothing_later(run):
    cluster = changed(ONE, slowdowns=[(10.0, 0, 10.0), (20.0, 0, 1.0)])
    # The second part would end at 110 s. From 20 s, 9 s are left: it ends at 29 s. The third takes 100 s.
    done = run([{}], cluster, (0, [(0, 10)]), (0, [(0, 10)]), (0, [(0, 100)]), steps=120)
    assert spans(done) == [(0, 0.0, 10.0), (0, 10.0, 29.0), (0, 29.0, 129.0)]


def test_step_times_are_measured_as_they_are(run):
    done = run([{}], changed(ONE, slowdowns=[(0.0, 0, 4.0)]), (0, [(0, 10)]), steps=10)
    assert done.state.step_times.step_s[0, 0] == 4.0


# failing and coming back


def test_a_part_that_is_lost_is_trained_again_and_the_rest_of_its_list_waits_again(run):
    lists = [(0, [(0, 10), (1, 10), (2, 10)]), (0, [(1, 10), (2, 10)])]
    done = run([{}, {}, {}], changed(ONE, (15.0, 0, False), (20.0, 0, True)), *lists, steps=10)
    # Trial 0 is done at 10 s. Trial 1 has had 5 s of its 10 s; trial 2 nothing.
    assert done.timeline[2:] == [
        Reported(10.0, 0, 0, 10, 0.0, 10.0, 0.0, 0.0),
        TrialFinished(10.0, 0),
        NodeFailed(15.0, 0),
        Joined(20.0, 0),
        Assigned(20.0, 0, 2, 20),
        Reported(30.0, 0, 1, 10, 20.0, 30.0, 0.0, 0.0),
        TrialFinished(30.0, 1),
        Reported(40.0, 0, 2, 10, 30.0, 40.0, 0.0, 0.0),
        TrialFinished(40.0, 2),
        Idled(40.0, 0),
    ]


def test_the_end_of_a_part_that_was_lost_means_nothing_to_the_next_on_that_slot(run):
    # Trial 0 would have ended at 10 s; anew from 6 s it ends at 16 s. Trial 1 ends before either.
    lists = [(0, [(0, 10)]), (1, [(1, 8)]), (0, [(0, 10)]), (1, [(1, 2)])]
    done = run([{}, {}], changed(TWO, (5.0, 0, False), (6.0, 0, True)), *lists, steps=10)
    assert spans(done) == [(1, 0.0, 8.0), (1, 8.0, 10.0), (0, 6.0, 16.0)]


def test_a_trial_goes_back_to_its_last_report(run):
    lists = [(0, [(0, 10), (0, 10), (0, 10)]), (1, [(0, 10)])]
    done = run([{"gain": 1.0}], changed(TWO, (25.0, 0, False)), *lists, steps=30)
    # It reported at 10 s and at 20 s, so ten steps are left at 25 s.
    assert done.timeline[-4:] == [
        Assigned(25.0, 1, 1, 10),
        Reported(35.0, 1, 0, 10, 25.0, 35.0, 0.0, 30.0),
        TrialFinished(35.0, 0),
        Idled(35.0, 1),
    ]


def test_what_a_list_would_have_reported_at_its_end_is_lost_with_its_node(run):
    lists = [(0, [(0, 10), (1, 10)]), (1, [(0, 10)]), (1, [(1, 10)])]
    done = run(
        [{"gain": 1.0}, {}], changed(TWO, (15.0, 0, False)), *lists, steps=10, report_each=False,
    )  # fmt: skip
    # Trial 0 was trained to a metric of 10 at 10 s, which nobody has been told; it begins anew.
    assert done.timeline[3:7] == [
        NodeFailed(15.0, 0),
        Assigned(15.0, 1, 1, 10),
        Reported(25.0, 1, 0, 10, 15.0, 25.0, 0.0, 10.0),
        TrialFinished(25.0, 0),
    ]


def test_a_trial_that_has_left_a_list_is_not_lost_with_it(run):
    lists = [(0, [(0, 10), (1, 10)]), (1, [(0, 10)]), (2, [(0, 5)]), (1, [(1, 20)])]
    # Trial 0 reports at 10 s and is on slot 1 until 20 s. With node 0, at 15 s, only trial 1 is lost; slot 2,
    # which would take trial 0 if it waited, stays idle.
    done = run([{}, {}], changed(Cluster.of_speeds([1.0] * 3), (15.0, 0, False)), *lists)
    assert spans(done) == [(0, 0.0, 10.0), (0, 10.0, 20.0), (1, 20.0, 40.0)]
    assert {event.slot for event in done.timeline if isinstance(event, Assigned)} == {0, 1}


def test_trials_that_lost_their_node_wait_behind_those_that_are_as_far(run, by_hand):
    queues = []

    class Watching(by_hand):
        def hand_out(self, view):
            yield from super().hand_out(view)
            queues.append((view.now_s, list(view.waiting)))

    lists = [(0, [(0, 10), (1, 10)]), (1, [(2, 5)])]
    with pytest.raises(Stuck):
        run([{}, {}, {}, {}], changed(TWO, (3.0, 0, False)), allocation=Watching(*lists))
    # Trial 3 waits from the beginning; at 5 s trial 2 reports, the furthest.
    assert queues == [(0.0, [3]), (3.0, [3, 0, 1]), (5.0, [3, 0, 1, 2])]


# the very instant


def test_a_part_that_ends_at_the_moment_when_its_node_is_lost_has_been_trained(run):
    lists = [(0, [(0, 10), (0, 10)]), (1, [(0, 10)])]
    done = run([{}], changed(TWO, (10.0, 0, False)), *lists)
    assert done.timeline[2:] == [
        Assigned(0.0, 0, 1, 20),
        Reported(10.0, 0, 0, 10, 0.0, 10.0, 0.0, 0.0),
        NodeFailed(10.0, 0),
        Assigned(10.0, 1, 1, 10),
        Reported(20.0, 1, 0, 10, 10.0, 20.0, 0.0, 0.0),
        TrialFinished(20.0, 0),
        Idled(20.0, 1),
    ]


def test_who_is_done_by_the_time_its_node_leaves_for_good_is_not_stuck(run):
    done = run([{}], changed(ONE, (10.0, 0, False)), steps=10)
    assert done.timeline[-3:] == [TrialFinished(10.0, 0), Idled(10.0, 0), NodeFailed(10.0, 0)]


def test_a_node_may_fail_and_come_back_at_the_moment_when_a_part_ends(run):
    lists = [(0, [(0, 10), (0, 10)]), (0, [(0, 10)])]
    cluster = changed(ONE, (13.0, 0, False), (13.0, 0, True))
    done = run([{}], cluster, *lists, costs=AssignmentCosts(dispatch_s=3.0))
    # The first part took 3 s + 10 s, and so does the next, since the list is a new one.
    assert done.timeline[2:] == [
        Reported(13.0, 0, 0, 10, 0.0, 13.0, 3.0, 0.0),
        NodeFailed(13.0, 0),
        Joined(13.0, 0),
        Assigned(13.0, 0, 1, 10),
        Reported(26.0, 0, 0, 10, 13.0, 26.0, 3.0, 0.0),
        TrialFinished(26.0, 0),
        Idled(26.0, 0),
    ]


# who is there


def test_trials_wait_for_a_node_that_will_join(run):
    done = run([{}], changed(ONE, (5.0, 0, True)), steps=10)
    assert done.timeline[:2] == [Joined(5.0, 0), Assigned(5.0, 0, 1, 10)]
    assert done.makespan_s == 15.0


def test_a_node_that_joins_at_the_beginning_and_one_that_leaves_then(run):
    done = run([{}], changed(TWO, (0.0, 1, True), (0.0, 0, False)), steps=10)
    # Node 0 is there, and handed the trial, before it leaves.
    assert done.timeline[:4] == [Joined(0.0, 0), Assigned(0.0, 0, 1, 10), Joined(0.0, 1), NodeFailed(0.0, 0)]
    assert spans(done) == [(0, 0.0, 10.0)]


def test_a_slot_that_was_given_up_stays_so_when_its_node_comes_back(run, given_up):
    cluster = changed(TWO, (2.0, 0, False), (4.0, 0, True))
    done = run([{}, {}], cluster, steps=10, retirement=given_up(0.0, [0]))
    assert {event.slot for event in done.timeline if isinstance(event, Assigned)} == {1}


def test_all_slots_of_a_node_are_lost_with_it(run):
    cluster = Cluster.of_slots((Slot(0), Slot(0), Slot(1)), changes=(NodeChange(5.0, 0, False),))
    # Trials 0 and 1 are lost at 5 s; slot 2 is done with trial 2 at 10 s and trains them one after the other.
    done = run([{}, {}, {}], cluster, steps=10)
    assert spans(done) == [(2, 0.0, 10.0), (0, 10.0, 20.0), (1, 20.0, 30.0)]


def test_when_the_only_node_leaves_for_good_there_is_no_way_on(run):
    with pytest.raises(Stuck, match="at 5 s nothing runs and nothing will happen, but 1 trials are not done"):
        run([{}], changed(ONE, (5.0, 0, False)))
