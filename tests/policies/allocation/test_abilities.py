"""TCA: how many intervals the others do meanwhile."""

import numpy as np
import pytest

from rota.policies.allocation.hrfs import meanwhile, original_abilities, standing


@pytest.mark.parametrize(
    ("first_s", "abilities"),
    [([10.0, 20.0, 100.0], [1, 5, 22]), ([100.0, 20.0, 10.0], [22, 4, 1]), ([20.0, 10.0, 100.0], [4, 1, 22])],
)
def test_abilities_of_the_original(population, first_s, abilities):
    """Who needs less time reports first. The same times on other slots give other values: 5, and 4."""
    view = population(3, [1.0] * 3)
    view.first_s[:] = first_s
    view.measured = sorted(range(3), key=lambda slot: first_s[slot])
    assert original_abilities(view) == dict(enumerate(abilities))


def test_the_first_to_report_is_the_fastest_for_ever_in_the_original(population):
    """A slot that reports later gets 3, though it is twice as fast: 1, what the other does, and itself."""
    view = population(2, [1.0, 1.0])
    view.first_s[:] = [20.0, 10.0]
    view.measured = [0, 1]
    assert original_abilities(view) == {0: 1, 1: 3}


def ask(slot, step_s, *, up=None, retired=None, trial_s=None, spread=0.0, caution=0.0):
    count = len(step_s)
    every, none = np.ones(count, bool), np.zeros(count, bool)
    times = np.array(step_s)
    return meanwhile(
        slot, 0, times[:, None], np.full((count, 1), spread), caution,
        every if up is None else np.array(up), none if retired is None else np.array(retired),
        times if trial_s is None else np.array(trial_s),
    )  # fmt: skip


def test_ours_counts_what_the_others_really_do():
    """In 100 s the others do 10 and 5; in 20 s one does 2; in 10 s nobody does any. In any order."""
    assert [ask(slot, [10.0, 20.0, 100.0]) for slot in range(3)] == [0, 2, 15]
    assert [ask(slot, [100.0, 20.0, 10.0]) for slot in range(3)] == [15, 2, 0]


def test_who_is_not_there_was_given_up_or_never_measured_does_nothing_meanwhile():
    assert ask(2, [10.0, 20.0, 100.0], up=[False, True, True]) == 5
    assert ask(2, [10.0, 20.0, 100.0], retired=[False, True, False]) == 10
    assert ask(2, [10.0, 20.0, 100.0], trial_s=[np.inf, 20.0, 100.0]) == 5
    assert ask(2, [10.0, 20.0, 100.0], trial_s=[10.0, 20.0, np.inf]) == -1


def test_with_caution_a_slot_that_varies_is_taken_to_be_slower():
    """A relative variance of 0.04 is a deviation of a fifth: 100 s are taken for 140 s with two of them."""
    assert ask(2, [10.0, 20.0, 100.0], spread=0.04, caution=2.0) == 14 + 7


def test_only_waiting_trials_are_behind():
    """50 steps each: one is behind by 4 intervals, one by 1; what is handed or finished does not count."""
    steps, status = np.array([0, 160, 0, 100, 200]), np.array([0, 0, 1, 3, 0])
    assert standing(steps, status, 200, 50, 400) == (4 + 1, 8 + 5 + 8 + 4)
