"""When all would be done: by hand, and against a slow statement of the same bound."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Assign, Interval
from rota.policies.allocation.finish import ALL_DONE, DONE, NOTHING, Outlook
from rota.policies.allocation.horizon import Slots, divided, most_first, most_owed, too_much

ONE = 3
"""The candidate of one interval from the head of the queue."""


def slots_of(free_s, speeds, dispatch_s=0.0):
    count = len(speeds)
    order = np.argsort(-np.array(speeds), kind="stable")
    return Slots(
        np.array(free_s), np.array(speeds), order, dispatch_s, np.empty(count), np.empty(count, np.int64)
    )


def test_the_largest_come_first_and_nothing_is_left_out():
    assert most_first(np.array([2.0, 0.0, 5.0, 3.0]), np.empty(4, np.int64)).tolist() == [2, 3, 0]
    assert most_first(np.array([2.0, 0.0, 5.0, 3.0]), np.empty(2, np.int64)).tolist() == [2, 3]
    assert most_owed(np.array([2.0, 0.0, 5.0, 3.0]), np.empty(2)).tolist() == [5.0, 3.0]


def test_work_is_divided_over_those_who_could_do_most_of_it():
    """The fast slot is busy for 6 s: one slot alone does 4 s of work sooner if it is the slow one, 16 s if it
    is the fast one."""
    slots = slots_of([6.0, 0.0], [4.0, 1.0])
    assert divided(slots, 4.0, 1, 0.0) == pytest.approx(4.0)
    assert divided(slots, 16.0, 1, 0.0) == pytest.approx(6.0 + 16.0 / 4.0)
    assert divided(slots, 16.0, 2, 0.0) == pytest.approx((16.0 + 6.0 * 4.0) / 5.0)
    assert divided(slots, 10.0, 2, 20.0) == pytest.approx(22.0)


def test_two_long_trials_cannot_both_be_on_the_only_fast_slot():
    """Speeds 4 and 1, two trials of 10 s: 20 s ÷ 5. A third does not help: there are two slots. With 12 s and
    1 s, the long one needs 3 s on the fast slot alone, which is more than 13 s ÷ 5."""
    slots = slots_of([0.0, 0.0], [4.0, 1.0])
    assert too_much(slots, np.array([10.0, 10.0]), 4.0) == (0.0, 0)
    assert too_much(slots, np.array([12.0, 1.0]), 13.0 / 5.0) == (12.0, 1)


speeds = st.lists(st.floats(0.1, 20.0), min_size=1, max_size=5)


@given(st.data())
def test_a_division_is_the_best_over_all_choices_of_slots(data):
    """Of each set of so many slots, the moment at which they have done the work; the soonest of those."""
    given_speeds = data.draw(speeds)
    count = len(given_speeds)
    free_s = data.draw(st.lists(st.floats(0.0, 10.0), min_size=count, max_size=count))
    work, most, from_s = data.draw(st.floats(0.1, 50.0)), data.draw(st.integers(1, count)), 2.0
    found = divided(slots_of(free_s, given_speeds, 0.5), work, most, from_s)
    soonest = min(
        alone([(max(from_s, free_s[slot]) + 0.5, given_speeds[slot]) for slot in chosen], work)
        for chosen in combinations(range(count), most)
    )
    assert found == pytest.approx(soonest, rel=1e-9)


def alone(slots, work):
    """When slots that are ready at some moments have done some work: one more joins as long as it helps."""
    end_s = np.inf
    for count in range(1, len(slots) + 1):
        some = sorted(slots)[:count]
        total = work + sum(ready_s * speed for ready_s, speed in some)
        end_s = min(end_s, max(some[-1][0], total / sum(speed for _, speed in some)))
    return end_s


def test_what_comes_back_late_is_done_late(population):
    """The slow slot has the second trial for 0.5 s, an interval of 50 steps; then 50 steps are left, which
    take the fast one 0.05 s."""
    state = population(2, [1.0, 10.0], steps=100)
    state.request([Assign(0, [Interval(1, 50)])])
    assert Outlook(state, slot=1).candidates[ONE, ALL_DONE] == pytest.approx(0.5 + 0.05)


def test_nobody_counts_on_a_slot_that_was_left_idle_before(population):
    """Three slots, one of them at work for 0.5 s. If the faster idle one has just been left idle, the other
    cannot expect it to begin at once."""
    state = population(3, [1.0, 4.0, 2.0], steps=50)
    state.request([Assign(0, [Interval(0, 50)])])
    asked_first, asked_then = Outlook(state, slot=1), Outlook(state, slot=2)
    assert asked_first.about[DONE] == pytest.approx(0.5)
    assert asked_then.candidates[NOTHING, ALL_DONE] == pytest.approx(0.5 + 1.0 / 6.0)


def test_to_wait_costs_the_dispatches_that_come_later(population):
    """Nothing is gained by waiting where a list costs something: the later list costs it, too."""
    state = population(8, [1.0, 1.0], AssignmentCosts(dispatch_s=0.2), steps=100)
    state.request([Assign(0, [Interval(0, 50)])])
    candidates = Outlook(state, slot=1).candidates
    assert candidates[NOTHING, ALL_DONE] > candidates[1:, ALL_DONE].min()
