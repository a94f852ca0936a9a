"""Timelines of lists, written by hand. A step takes a second on a slot of speed 1.

`Reported` reads: at, slot, trial, steps, began, ended, moved, metric.
"""

from dataclasses import dataclass, field

import pytest

from rota.core.cluster import Cluster, NodeChange, Slot
from rota.core.errors import Stuck
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import (
    Assigned,
    Continue,
    Idled,
    Joined,
    NodeFailed,
    Reported,
    Retired,
    Stop,
    Stopped,
    TrialFinished,
)

ONE = Cluster.of_speeds([1.0])
SLOW_AND_FAST = Cluster.of_speeds([1.0, 2.0])


@dataclass
class Asked:
    """Lets every trial go on, and remembers who it was asked about."""

    about: list[int] = field(default_factory=list)

    def decide(self, view, trial):
        self.about.append(trial)
        return Continue(trial)


def test_two_trials_on_two_unequal_slots(run):
    # 20 steps each. The fast slot does its ten in 5 s and goes on with the only trial that waits: its own.
    # At 10 s both are free; trial 0 goes to the slot that was begun with first, and takes 10 s more.
    assert run([{}, {}], SLOW_AND_FAST).timeline == [
        Joined(0.0, 0),
        Joined(0.0, 1),
        Assigned(0.0, 0, 1, 10),
        Assigned(0.0, 1, 1, 10),
        Reported(5.0, 1, 1, 10, 0.0, 5.0, 0.0, 0.0),
        Idled(5.0, 1),
        Assigned(5.0, 1, 1, 10),
        Reported(10.0, 0, 0, 10, 0.0, 10.0, 0.0, 0.0),
        Idled(10.0, 0),
        Reported(10.0, 1, 1, 10, 5.0, 10.0, 0.0, 0.0),
        TrialFinished(10.0, 1),
        Idled(10.0, 1),
        Assigned(10.0, 0, 1, 10),
        Reported(20.0, 0, 0, 10, 10.0, 20.0, 0.0, 0.0),
        TrialFinished(20.0, 0),
        Idled(20.0, 0),
    ]


PARTS = [(0, [(0, 10), (1, 5)]), (0, [(1, 5)])]


def test_a_list_is_dispatched_once_and_each_of_its_trials_reports_when_its_part_is_done(run):
    done = run([{}, {}], ONE, *PARTS, steps=10, costs=AssignmentCosts(dispatch_s=3.0))
    # 3 s for the first list and 10 s of training; trial 1 follows without a dispatch; 3 s again for the next.
    assert done.timeline[1:] == [
        Assigned(0.0, 0, 2, 15),
        Reported(13.0, 0, 0, 10, 0.0, 13.0, 3.0, 0.0),
        TrialFinished(13.0, 0),
        Reported(18.0, 0, 1, 5, 13.0, 18.0, 0.0, 0.0),
        Idled(18.0, 0),
        Assigned(18.0, 0, 1, 5),
        Reported(26.0, 0, 1, 5, 18.0, 26.0, 3.0, 0.0),
        TrialFinished(26.0, 1),
        Idled(26.0, 0),
    ]


def test_a_list_may_report_at_its_end(run):
    done = run([{}, {}], ONE, *PARTS, steps=10, costs=AssignmentCosts(dispatch_s=3.0), report_each=False)
    assert done.timeline[1:6] == [
        Assigned(0.0, 0, 2, 15),
        Reported(18.0, 0, 0, 10, 0.0, 13.0, 3.0, 0.0),
        TrialFinished(18.0, 0),
        Reported(18.0, 0, 1, 5, 13.0, 18.0, 0.0, 0.0),
        Idled(18.0, 0),
    ]
    assert done.makespan_s == 26.0


def test_a_trial_may_be_in_a_list_several_times_and_waits_for_nobody_else_in_between(run):
    lists = [(0, [(0, 10), (1, 5), (0, 10)]), (1, [(0, 5)]), (1, [(1, 15)])]
    # Trial 0 reports at 10 s and is still on the list, so slot 1 cannot have it; trial 1 it can, from 15 s.
    assert run([{}, {}], Cluster.of_speeds([1.0, 1.0]), *lists).timeline[2:] == [
        Assigned(0.0, 0, 2, 25),
        Reported(10.0, 0, 0, 10, 0.0, 10.0, 0.0, 0.0),
        Reported(15.0, 0, 1, 5, 10.0, 15.0, 0.0, 0.0),
        Assigned(15.0, 1, 1, 15),
        Reported(25.0, 0, 0, 10, 15.0, 25.0, 0.0, 0.0),
        TrialFinished(25.0, 0),
        Idled(25.0, 0),
        Reported(30.0, 1, 1, 15, 15.0, 30.0, 0.0, 0.0),
        TrialFinished(30.0, 1),
        Idled(30.0, 1),
    ]


def test_a_trial_that_reports_twice_at_one_instant_is_judged_once_and_waits_once(run):
    lists = [(0, [(0, 10), (1, 5), (0, 5)]), (0, [(0, 5)]), (0, [(1, 15)])]
    asked = Asked()
    done = run([{}, {}], ONE, *lists, report_each=False, evolution=asked)
    # 20 s for the first list, 5 s for what trial 0 has left, 15 s for trial 1.
    assert [event for event in done.timeline if isinstance(event, TrialFinished)] == [
        TrialFinished(25.0, 0),
        TrialFinished(40.0, 1),
    ]
    assert asked.about == [0, 1]


def test_a_trial_whose_second_report_at_one_instant_is_its_last_is_not_judged(run):
    asked = Asked()
    done = run([{}], ONE, (0, [(0, 10), (0, 10)]), report_each=False, evolution=asked)
    assert done.timeline[2:] == [
        Reported(20.0, 0, 0, 10, 0.0, 10.0, 0.0, 0.0),
        Reported(20.0, 0, 0, 10, 10.0, 20.0, 0.0, 0.0),
        TrialFinished(20.0, 0),
        Idled(20.0, 0),
    ]
    assert asked.about == []


# trials that are done before their list is


BETTER = [{"gain": 0.1}, {}]  # trial 0 is as good as 1 after ten steps


def test_a_trial_that_reaches_the_target_in_the_middle_of_a_list_leaves_its_place_to_the_next(run):
    lists = [(0, [(0, 10), (0, 10), (1, 10)]), (0, [(1, 10)])]
    assert run(BETTER, ONE, *lists, target=1.0).timeline[2:5] == [
        Reported(10.0, 0, 0, 10, 0.0, 10.0, 0.0, 1.0),
        TrialFinished(10.0, 0),
        Reported(20.0, 0, 1, 10, 10.0, 20.0, 0.0, 0.0),
    ]


def test_a_list_of_which_nothing_is_left_after_the_target_is_done_at_that_moment(run):
    done = run(BETTER[:1], ONE, (0, [(0, 10), (0, 10)]), target=1.0)
    assert done.timeline[-3:] == [
        Reported(10.0, 0, 0, 10, 0.0, 10.0, 0.0, 1.0),
        TrialFinished(10.0, 0),
        Idled(10.0, 0),
    ]


def test_a_list_that_reports_at_its_end_has_trained_beyond_the_target_in_vain(run):
    lists = [(0, [(0, 10), (0, 10), (1, 10)]), (0, [(1, 10)])]
    # Nobody saw before 30 s that trial 0 was good enough at 10 s; what it did from 10 s to 20 s is not told.
    assert run(BETTER, ONE, *lists, target=1.0, report_each=False).timeline[2:6] == [
        Reported(30.0, 0, 0, 10, 0.0, 10.0, 0.0, 1.0),
        TrialFinished(30.0, 0),
        Reported(30.0, 0, 1, 10, 20.0, 30.0, 0.0, 0.0),
        Idled(30.0, 0),
    ]


def test_a_trial_that_is_stopped_in_the_middle_of_a_list_is_passed_over(run, verdicts):
    lists = [(0, [(0, 10), (1, 10), (0, 10)]), (0, [(1, 10)])]
    done = run([{}, {}], ONE, *lists, evolution=verdicts({(0, 10): Stop(0)}))
    assert done.timeline[2:] == [
        Reported(10.0, 0, 0, 10, 0.0, 10.0, 0.0, 0.0),
        Stopped(10.0, 0),
        Reported(20.0, 0, 1, 10, 10.0, 20.0, 0.0, 0.0),
        Idled(20.0, 0),
        Assigned(20.0, 0, 1, 10),
        Reported(30.0, 0, 1, 10, 20.0, 30.0, 0.0, 0.0),
        TrialFinished(30.0, 1),
        Idled(30.0, 0),
    ]


def test_a_run_in_which_the_last_trial_is_stopped_is_over(run, verdicts):
    done = run([{}], ONE, evolution=verdicts({(0, 10): Stop(0)}))
    assert done.timeline[-1:] == [Stopped(10.0, 0)]
    assert (done.makespan_s, done.state.left) == (10.0, 0)


# slots that are given up


def test_a_busy_slot_is_given_up_when_its_list_is_done(run, given_up):
    done = run([{}, {}], SLOW_AND_FAST, retirement=given_up(5.0, [0]))
    # Asked for at 5 s; the slot is free at 10 s, and its trial finishes on the other, ten steps in 5 s.
    assert done.timeline[4:] == [
        Reported(5.0, 1, 1, 10, 0.0, 5.0, 0.0, 0.0),
        Idled(5.0, 1),
        Assigned(5.0, 1, 1, 10),
        Reported(10.0, 0, 0, 10, 0.0, 10.0, 0.0, 0.0),
        Idled(10.0, 0),
        Retired(10.0, 0),
        Reported(10.0, 1, 1, 10, 5.0, 10.0, 0.0, 0.0),
        TrialFinished(10.0, 1),
        Idled(10.0, 1),
        Assigned(10.0, 1, 1, 10),
        Reported(15.0, 1, 0, 10, 10.0, 15.0, 0.0, 0.0),
        TrialFinished(15.0, 0),
        Idled(15.0, 1),
    ]


def test_an_idle_slot_is_given_up_at_once(run, given_up):
    done = run([{}], SLOW_AND_FAST, steps=10, retirement=given_up(0.0, [0]))
    assert done.timeline[2:4] == [Retired(0.0, 0), Assigned(0.0, 1, 1, 10)]
    assert done.makespan_s == 5.0


def test_a_slot_that_was_to_be_given_up_and_is_lost_before_is_given_up_then(run, given_up):
    cluster = Cluster.of_slots(
        SLOW_AND_FAST.all_slots, changes=(NodeChange(7.0, 0, False), NodeChange(8.0, 0, True))
    )
    done = run([{}, {}], cluster, retirement=given_up(5.0, [0]))
    assert done.timeline[7:10] == [NodeFailed(7.0, 0), Retired(7.0, 0), Joined(8.0, 0)]
    # From 5 s slot 1 has trial 1 until 10 s, then trial 0 from its beginning: 20 steps in 10 s.
    assert done.makespan_s == 20.0


# no way on


def test_when_the_last_slot_is_given_up_and_all_others_are_gone_there_is_no_way_on(run, given_up):
    cluster = Cluster.of_slots(SLOW_AND_FAST.all_slots, changes=(NodeChange(3.0, 1, joins=False),))
    complaint = "at 10 s nothing runs and nothing will happen, but 2 trials are not done and 0 slots are idle"
    with pytest.raises(Stuck, match=f"^{complaint}$"):
        run([{}, {}], cluster, retirement=given_up(3.0, [0]))


def test_when_an_allocation_leaves_every_slot_idle_there_is_no_way_on(run):
    # The only list that is ever handed out ends at 5 s; trial 1 is never handed to anybody.
    with pytest.raises(Stuck, match=r"^at 5 s .* 1 trials are not done and 2 slots are idle$"):
        run([{}, {}], SLOW_AND_FAST, (1, [(0, 10)]), steps=10)


# unequal trials, and trials that take several slots


def test_each_kind_of_trial_has_its_own_speed_on_a_slot(run):
    # The second kind takes 2 s per step at speed 1; slot 0 does it four times as fast, slot 1 twice as fast.
    cluster = Cluster.of_slots((Slot(0, 1.0, {"2.0 0.0": 4.0}), Slot(1, 2.0)))
    lists = [(0, [(0, 10), (1, 10)]), (1, [(0, 10), (1, 10)])]
    done = run([{}, {"step_s": 2.0}], cluster, *lists)
    reports = [event for event in done.timeline if isinstance(event, Reported)]
    # 10 × 1 ÷ 1, 10 × 2 ÷ 4, 10 × 1 ÷ 2, 10 × 2 ÷ 2.
    assert [(report.trial, report.ended_s) for report in reports] == [
        (0, 10.0),
        (1, 15.0),
        (0, 20.0),
        (1, 30.0),
    ]


def test_trials_may_span_several_slots(run):
    # Slots of speed 3 and 2 together, at three quarters of twice the slower: 3. The third is left over.
    cluster = Cluster.of_slots((Slot(0, 1.0), Slot(0, 3.0), Slot(0, 2.0))).spanned(2, 0.75)
    assert run([{}], cluster, (0, [(0, 30)]), steps=30).makespan_s == 10.0
