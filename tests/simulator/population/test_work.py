"""What was done, and the least time that it can take."""

import math

import pytest

from rota.core.cluster import Cluster, Slot, Slowdown
from rota.core.population.events import Cloned, Reported
from rota.simulator.bounds import best_speeds, bound_of_s, lower_bound_s, unequal_bound_s, work_done


class Sized:
    """A step takes as long as the trial is large."""

    def kind(self, hyper, changes):
        return f"size {hyper['size']}"

    def step_s(self, kind):
        return float(kind.split()[1])

    def size_mb(self, kind):
        return 0.0


def report(trial, steps):
    return Reported(0.0, 0, trial, steps, 0.0, 0.0, 0.0, math.nan)


def test_work_counts_as_the_trial_was_when_it_was_done():
    events = [report(0, 10), report(1, 10), Cloned(0.0, 0, 1, {"size": 3}, ()), report(0, 5)]
    done = work_done(events, [{"size": 1}, {"size": 3}], Sized())
    assert done == [{"size 1": 10.0, "size 3": 15.0}, {"size 3": 30.0}]


def test_trials_of_equal_work_have_the_bound_that_is_known_for_them():
    for trials in (1, 2, 3, 7):
        expected = lower_bound_s(trials, 10.0, [1.0, 2.0, 5.0])
        assert unequal_bound_s([10.0] * trials, [1.0, 2.0, 5.0]) == pytest.approx(expected)


def test_the_largest_trials_are_on_no_more_slots_than_there_are_of_them():
    # 100 s of work cannot be done in less than 20 s at a speed of 5, whoever else is there.
    assert unequal_bound_s([100.0, 1.0, 1.0], [5.0, 5.0, 5.0]) == 20.0
    # The two largest: 150 s at 5 + 1; all three: 160 s at 5 + 1 + 1.
    assert unequal_bound_s([100.0, 50.0, 10.0], [5.0, 1.0, 1.0]) == pytest.approx(25.0)


def test_slots_that_are_good_at_different_things_are_not_credited_with_both():
    cluster = Cluster.of_slots((Slot(0, 1.0, {"size 1": 4.0}), Slot(1, 1.0, {"size 2": 4.0})))
    # 8 s of work of each kind, in two trials each: each slot does what it is good at, at a speed of 4.
    done = [{"size 1": 4.0}, {"size 1": 4.0}, {"size 2": 4.0}, {"size 2": 4.0}]
    assert bound_of_s(done, cluster) == pytest.approx(2.0)


def test_a_kind_that_all_slots_are_good_at_does_not_loosen_the_bound_of_another():
    cluster = Cluster.of_slots((Slot(0, 1.0, {"size 1": 10.0}), Slot(1, 1.0, {"size 1": 10.0})))
    # 20 s of the one kind take 1 s on both slots, 20 s of the other 10 s; with the best speeds it would be 2.
    done = [{"size 1": 10.0}, {"size 1": 10.0}, {"size 2": 10.0}, {"size 2": 10.0}]
    assert bound_of_s(done, cluster) == pytest.approx(11.0)


def test_a_node_that_becomes_slower_may_not_lower_the_bound_but_one_that_becomes_faster_does():
    slots = (Slot(0, 2.0), Slot(1, 2.0))
    changes = (Slowdown(1.0, 0, 3.0), Slowdown(1.0, 1, 0.5))
    assert best_speeds(Cluster.of_slots(slots, slowdowns=changes), "any") == [2.0, 4.0]
