"""Seconds per step: measured where they were, expected where they were not. All numbers by hand."""

import numpy as np
import pytest

from rota.core.population.step_times import StepTimes


def test_before_anything_is_measured_a_step_takes_what_is_expected():
    times = StepTimes(np.array([[1.0, 2.0], [0.5, 4.0]]))
    assert times.step_s.tolist() == [[1.0, 2.0], [0.5, 4.0]]
    assert not times.measured.any()


def test_the_first_measurement_counts_alone_and_later_ones_are_smoothed():
    times = StepTimes(np.array([[1.0]]))
    known = []
    for step_s in (2.0, 4.0, 3.0, 5.0, 1.0):
        times.observe(0, 0, step_s)
        known.append(float(times.step_s[0, 0]))
    # Weights 1, 1/2, 1/3, then 0.3: 2; 2 + ½·2; 3 + ⅓·0; 3 + 0.3·2; 3.6 - 0.3·2.6.
    assert known == pytest.approx([2.0, 3.0, 3.0, 3.6, 2.82])
    assert times.measured[0, 0] == 5


def test_how_far_measurements_are_apart_is_relative_to_what_was_known():
    times = StepTimes(np.array([[1.0]]))
    spreads = []
    for step_s in (2.0, 3.0, 2.5, 5.0):
        times.observe(0, 0, step_s)
        spreads.append(float(times.spread[0, 0]))
    # Known before: -, 2, 2.5, 2.5. Off by 3 ÷ 2 - 1 = 0.5, then 0, then 5 ÷ 2.5 - 1 = 1. Weights ½, ⅓, 0.3:
    # ½·0.25 = 0.125; 0.125·⅔ = 0.08333; 0.08333 + 0.3·(1 - 0.08333) = 0.35833.
    assert spreads == pytest.approx([0.0, 0.125, 0.125 * 2 / 3, 0.0833333 + 0.3 * 0.9166667])


def test_steady_measurements_have_no_spread_however_wrong_the_expectation_was():
    times = StepTimes(np.array([[1.0]]))
    for _ in range(5):
        times.observe(0, 0, 7.0)
    assert (times.step_s[0, 0], times.spread[0, 0]) == (7.0, 0.0)


def test_kinds_that_were_never_measured_on_a_slot_are_off_by_as_much_as_the_last_that_was():
    times = StepTimes(np.array([[1.0, 2.0, 10.0], [1.0, 2.0, 10.0]]))
    times.observe(0, 0, 3.0)  # three times as long as expected
    assert times.step_s.tolist() == [[3.0, 6.0, 30.0], [1.0, 2.0, 10.0]]
    times.observe(0, 1, 4.0)  # twice as long; the first kind has its own measurement
    assert times.step_s.tolist() == [[3.0, 4.0, 20.0], [1.0, 2.0, 10.0]]
    times.observe(0, 2, 5.0)
    assert times.step_s[0].tolist() == [3.0, 4.0, 5.0]
    times.observe(0, 0, 5.0)  # 3 + ½·2; the others keep what was measured
    assert times.step_s[0].tolist() == [4.0, 4.0, 5.0]


def test_a_new_kind_is_off_by_what_its_slot_was_off_before():
    times = StepTimes(np.zeros((2, 0)))
    times.add_kind(np.array([1.0, 2.0]))
    times.observe(1, 0, 3.0)  # one and a half times as long
    times.add_kind(np.array([4.0, 4.0]))
    assert times.step_s.tolist() == [[1.0, 4.0], [3.0, 6.0]]
    assert times.expected_s.tolist() == [[1.0, 4.0], [2.0, 4.0]]
    times.observe(1, 0, 5.0)  # 3 + ½·2 = 4: twice as long
    assert times.step_s[1].tolist() == [4.0, 8.0]
    times.observe(1, 1, 6.0)
    assert (times.step_s[1].tolist(), times.measured.tolist()) == ([4.0, 6.0], [[0, 0], [2, 1]])
