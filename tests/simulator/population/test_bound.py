"""The least time for trials of equal work, by hand."""

import pytest

from rota.simulator.bounds import lower_bound_s

NINE = [1.3, 1.0, 0.33, 0.33, 0.33, 1.6, 1.0, 1.0, 8.0]


def test_twenty_trials_on_the_nine_slots():
    # 1,000 steps of 0.02 s are 20 s of work. All of it: 20 × 20 = 400 s, over a speed of
    #   8 + 1.6 + 1.3 + 1 + 1 + 1 + 0.33 + 0.33 + 0.33 = 14.89, that is 26.8637 s.
    # k trials on the k fastest slots, which is less:
    #   20 ÷ 8 = 2.5, 40 ÷ 9.6 = 4.17, 60 ÷ 10.9 = 5.50, 80 ÷ 11.9 = 6.72, 100 ÷ 12.9 = 7.75,
    #   120 ÷ 13.9 = 8.63, 140 ÷ 14.23 = 9.84, 160 ÷ 14.56 = 10.99, 180 ÷ 14.89 = 12.09.
    assert lower_bound_s(20, 20.0, NINE) == pytest.approx(400.0 / 14.89)


def test_few_trials_cannot_use_all_slots():
    # Three trials are on three slots at most, at best the fastest: 60 ÷ 10.9 = 5.50 s. All nine: 4.03 s.
    assert lower_bound_s(3, 20.0, NINE) == pytest.approx(60.0 / 10.9)


def test_one_trial_takes_as_long_as_the_fastest_slot():
    assert lower_bound_s(1, 20.0, NINE) == pytest.approx(2.5)


def test_a_trial_more_than_slots_is_bound_by_all_of_them():
    # One trial: 10 ÷ 4 = 2.5; two: 20 ÷ 5 = 4; three on both: 30 ÷ 5 = 6.
    assert lower_bound_s(3, 10.0, [1.0, 4.0]) == 6.0


def test_slots_that_are_alike_each_do_one_trial():
    # Two trials on four slots of speed 2: no trial is on two slots at once.
    assert lower_bound_s(2, 10.0, [2.0] * 4) == 5.0
