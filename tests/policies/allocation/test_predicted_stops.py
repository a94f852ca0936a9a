"""How much trials have still to do."""

from math import exp, log

import pytest

from rota.core.population.view import TrialStatus
from rota.policies.allocation.hrfs import RECENT, predicted_intervals_left, predicted_steps_left


@pytest.fixture
def curve(population):
    """One trial of 1,000 steps that was so good after so many steps; it should become 0.8."""

    def build(*reports):
        view = population(1, [1.0], target=0.8)
        view.history[0].extend(reports)
        view.steps[0] = reports[-1][0] if reports else 0
        return view

    return build


def test_a_curve_is_followed_to_the_target(curve):
    """0.2 more for each time e as many steps: from 0.4 at 100 it takes two times, 738.9 steps in all."""
    view = curve((100 / exp(1), 0.2), (100, 0.4))
    assert predicted_steps_left(view, 0) == pytest.approx(100 * exp(2) - 100)


def test_never_more_than_the_budget(curve):
    assert predicted_steps_left(curve((50, 0.1), (100, 0.11)), 0) == 900


@pytest.mark.parametrize(
    "reports", [[], [(50, 0.3)], [(50, 0.3), (100, 0.2)], [(50, 0.3), (100, float("nan"))], [(50, 0.3)] * 3]
)
def test_without_a_rise_all_of_the_budget_is_expected_to_be_needed(curve, reports):
    view = curve(*reports)
    assert predicted_steps_left(view, 0) == 1000 - view.steps[0]


def test_what_was_long_ago_does_not_count(curve):
    recent = [(steps, 0.1 * log(steps)) for steps in range(100, 100 + 10 * RECENT, 10)]
    assert predicted_steps_left(curve((1, 0.9), *recent), 0) == predicted_steps_left(curve(*recent), 0)


def test_a_trial_that_is_not_done_has_an_interval_left_at_least(population):
    """One is as good as done, one has all of its 20 intervals to go, one is finished."""
    view = population(3, [1.0], target=0.8)
    view.history[0].extend([(100, 0.5), (200, 0.79999)])
    view.steps[:] = [200, 0, 1000]
    view.status[2] = TrialStatus.FINISHED
    assert predicted_intervals_left(view) == pytest.approx(21)
