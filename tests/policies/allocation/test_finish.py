"""Finish: what the estimate says by hand, and what the rule makes of it."""

import numpy as np
import pytest

from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Assign
from rota.policies.allocation.finish import (
    ALL_DONE,
    DONE,
    ENDS,
    FIRST,
    LAST,
    LISTS,
    MEAN,
    NOTHING,
    REST,
    SEQUENCE,
    STEPS,
    TRIALS,
    UNDONE,
    Finish,
    Outlook,
)

ONE = 3
"""The candidate of one interval from the head of the queue."""


def test_all_is_done_when_the_work_is_divided_in_proportion_to_speed(population):
    """Four trials of 1 s at speed 1, on speeds 1 and 3: 4 s ÷ 4. One trial alone takes 1 s ÷ 3."""
    outlook = Outlook(population(4, [1.0, 3.0], steps=100), slot=1)
    assert outlook.about[[DONE, UNDONE, SEQUENCE, MEAN]] == pytest.approx([1.0, 4, 1 / 3, 100])


def test_a_trial_is_not_done_before_its_steps_have_followed_on_each_other(population):
    """1 s each at speed 1: two trials on speeds 1 and 3 share 4; one is on the faster alone."""
    assert Outlook(population(2, [1.0, 3.0], steps=100), slot=1).about[DONE] == pytest.approx(0.5)
    assert Outlook(population(1, [1.0, 3.0], steps=100), slot=1).about[DONE] == pytest.approx(1 / 3)


def test_lists_are_as_long_as_parts_and_multiples_of_an_interval_and_of_the_fair_share(population):
    """All would take 2.5 s, so that the fair share of speed 3 is 750 steps."""
    candidates = Outlook(population(10, [1.0, 3.0], steps=100, interval=50), slot=1).candidates
    assert candidates[1 : LISTS + 1, STEPS].tolist() == [12, 25, 50, 100, 200, 400, 93, 187, 375, 562, 750]
    assert candidates[1 : LISTS + 1, TRIALS].tolist() == [1, 1, 1, 1, 2, 4, 1, 2, 4, 6, 8]
    assert candidates[1 : LISTS + 1, ENDS] == pytest.approx(candidates[1 : LISTS + 1, STEPS] * 0.01 / 3)
    assert candidates[ONE, [FIRST, REST]].tolist() == [100, 50]
    assert candidates[ONE, LAST] == pytest.approx(100 * 0.01 / 3)


def test_work_that_the_others_would_finish_sooner_is_left_to_them(population, lists):
    """The fast slot does both in 0.1 s; the slow one would need 0.5 s for its own."""
    assert lists(population(2, [1.0, 10.0], steps=50), Finish()).keys() == {1}


def test_a_slow_slot_works_while_there_is_enough_for_all(population, lists):
    assert lists(population(20, [1.0, 10.0], steps=50), Finish()).keys() == {0, 1}


def test_a_slot_is_idle_only_if_somebody_else_works(population, lists):
    state = population(2, [1.0, 10.0], steps=50)
    assert np.isinf(Outlook(state, slot=1).candidates[NOTHING, ALL_DONE])
    state.request([Assign(1, state.first(1))])
    assert Outlook(state, slot=0).candidates[NOTHING, ALL_DONE] == pytest.approx(0.1)
    assert lists(population(1, [1.0], steps=50), Finish()) == {0: [0]}


def test_lists_are_longer_where_a_dispatch_costs_something(population, lists):
    """One slot: an interval takes 0.5 s, a dispatch 0 s or 10 s."""
    free = lists(population(6, [1.0], steps=100), Finish())[0]
    dear = lists(population(6, [1.0], AssignmentCosts(dispatch_s=10.0), steps=100), Finish())[0]
    assert len(free) < len(dear) == 12  # intervals: all that there is
