"""HRFS: fast slots for who is behind, slow slots for who is ahead."""

from collections.abc import Callable

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.errors import ConfigError, Stuck
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Assign, Interval, Stop
from rota.core.population.view import Terms, TrialStatus
from rota.policies.allocation.hrfs import Hrfs, original_lag
from rota.policies.population import PopulationPolicy
from rota.simulator.population import PopulationScenario, simulate_trials

HALF, WHOLE = 25, 50


@pytest.fixture
def measured(population, done) -> Callable:
    """Slots that were measured, in so many seconds per step; trials that have had so many steps.

    What slots were measured with is one more trial for each, which was stopped.
    """

    def build(step_s, steps, **terms):
        view = population(len(steps) + len(step_s), [1.0] * len(step_s), **terms)
        for slot, seconds in enumerate(step_s):
            other = len(steps) + slot
            view.request([Assign(slot, [Interval(other, 1)])])
            done(view, slot, [other], seconds, after=Stop)
        for trial, had in enumerate(steps):
            if had:
                view.request([Assign(0, [Interval(trial, had)])])
                done(view, 0, [trial], step_s[0])
        return view

    return build


def parts(view, found):
    """Slot → its trial and steps."""
    return {slot: (trials[0], int(view.assigned[trials[0]])) for slot, trials in found.items()}


def test_a_slot_that_was_never_measured_gets_half_an_interval_of_the_most_advanced(population, lists):
    view = population(4, [1.0, 2.0])
    assert parts(view, lists(view, Hrfs())) == {1: (3, HALF), 0: (2, HALF)}


def test_a_fast_slot_pulls_the_least_advanced_along(measured, lists):
    """The first does 1 interval while the second does one, and trials are behind by 2 + 1, then by 1."""
    view = measured([1.0, 1.01], [0, 50, 100])
    assert parts(view, lists(view, Hrfs())) == {0: (0, WHOLE), 1: (1, WHOLE)}


def test_a_slow_slot_does_half_an_interval_of_the_most_advanced(measured, lists):
    """The first does 5 while the second does one, and trials are behind by 2 + 1, then by 1."""
    view = measured([1.0, 5.0], [0, 50, 100])
    assert parts(view, lists(view, Hrfs())) == {0: (0, WHOLE), 1: (2, HALF)}


def test_the_fastest_is_fast_though_nobody_is_behind(measured, lists):
    view = measured([1.0, 5.0], [100, 100, 100])
    assert parts(view, lists(view, Hrfs())) == {0: (0, WHOLE), 1: (2, HALF)}


def test_a_slot_rests_if_the_others_do_all_that_is_left_meanwhile(measured, lists):
    """Three trials with an interval each to go; 5 could be done meanwhile, or only 2."""
    assert lists(measured([1.0, 5.0], [950, 950, 950]), Hrfs()) == {0: [0]}
    assert lists(measured([1.0, 2.5], [950, 950, 950]), Hrfs()) == {0: [0], 1: [2]}


def test_slow_slots_rest_once_the_target_is_reached(measured, lists):
    view = measured([1.0, 5.0], [100, 100, 100], target=0.8)
    view.best = 0.8
    assert lists(view, Hrfs()) == {0: [0]}


def test_somebody_works_though_all_should_rest(population, lists):
    """The only slot was never measured, so it counts as slow; the original gives it up."""
    for original, expected in ((False, {0: [0]}), (True, {})):
        view = population(1, [1.0], target=0.8)
        view.best = 0.9
        assert lists(view, Hrfs(original=original)) == expected
        assert view.retired[0] == original


def test_a_part_is_never_longer_than_what_is_left(measured, lists):
    view = measured([1.0, 2.0], [990, 990])
    assert parts(view, lists(view, Hrfs())) == {0: (0, 10), 1: (1, 10)}


def test_finished_trials_are_behind_for_ever_in_the_original(measured):
    """One is behind by 2; the other that was measured with stopped after one step, behind by 4."""
    view = measured([1.0], [100, 200])
    assert original_lag(view) == 2 + 4
    view.status[0] = TrialStatus.FINISHED
    assert original_lag(view) == 2 + 4
    view.status[0] = TrialStatus.ASSIGNED
    assert original_lag(view) == 4


def test_slots_that_are_slower_by_far_get_shorter_parts_of_more_advanced_trials(measured, lists):
    """3 and 9 times as slow as the fastest: tiers 1 and 3 of 0 to 3. Of four that wait, 2nd; then last."""
    view = measured([1.0, 3.0, 9.0], [100] * 5)
    assert parts(view, lists(view, Hrfs(tiers=4))) == {0: (0, WHOLE), 1: (2, 25), 2: (4, 6)}


def test_a_slot_that_has_rested_is_measured_again(measured, lists):
    """Its interval took 50 × 5 s."""
    view = measured([1.0, 5.0], [950, 950, 950])
    view.now_s = 499.0
    assert lists(view, Hrfs(again=2.0)) == {0: [0]}
    view = measured([1.0, 5.0], [950, 950, 950])
    view.now_s = 500.0
    assert lists(view, Hrfs(again=2.0)) == {0: [0], 1: [2]}


def test_with_caution_a_slot_whose_times_vary_rests_earlier(measured, lists):
    """2.5 times as slow, or 3.5 with a deviation of 40 %: 3 intervals are left, not 4."""
    for caution, expected in ((0.0, {0: [0], 1: [2]}), (2.0, {0: [0]})):
        view = measured([1.0, 2.5], [950, 950, 950])
        view.step_times.spread[1] = 0.16
        assert lists(view, Hrfs(caution=caution)) == expected


def test_trials_that_will_stop_early_leave_less_to_do(measured, lists):
    """Twenty intervals each by their budget; one each by their curves, and 5 could be done meanwhile."""
    for predict_stops, expected in ((False, {0: [0], 1: [2]}), (True, {0: [0]})):
        view = measured([1.0, 5.0], [500, 500, 500], target=0.8)
        for trial in range(3):
            view.history[trial][:] = [(400, 0.7), (500, 0.79)]
        assert lists(view, Hrfs(predict_stops=predict_stops)) == expected


@pytest.mark.parametrize(("near", "first"), [(True, 1), (False, 0)])
def test_of_equally_advanced_trials_one_that_is_near_is_taken(measured, lists, near, first):
    """The second trial is where the first slot is."""
    view = measured([1.0, 1.01], [0, 0, 50], costs=AssignmentCosts(latency_s=1.0))
    view.checkpoint_node[:3] = [1, 0, 0]
    assert lists(view, Hrfs(near=near))[0] == [first]


def random_population(seed, rising):
    """One to twelve trials, one to six slots, and a target that most trials reach within their steps."""
    rng = np.random.default_rng(seed)
    trials, slots = int(rng.integers(1, 13)), int(rng.integers(1, 7))
    rates = rng.uniform(0.001, 0.02, trials)
    cluster = Cluster.of_speeds([float(speed) for speed in np.exp(rng.uniform(-2.0, 2.0, slots))])
    scene = PopulationScenario(
        tuple({"rate": float(rate)} for rate in rates), cluster, Terms(steps=400, target=0.8)
    )
    return scene, rising()


def test_every_population_is_done(rising):
    for seed in range(500):
        scene, landscape = random_population(seed, rising)
        assert simulate_trials(scene, landscape, PopulationPolicy(Hrfs())).state.left == 0


def is_stuck(scene, landscape):
    try:
        simulate_trials(scene, landscape, PopulationPolicy(Hrfs(original=True)))
    except Stuck:
        return True
    return False


def test_the_original_gives_its_last_slot_up_in_some(rising):
    stuck = [seed for seed in range(150) if is_stuck(*random_population(seed, rising))]
    assert 5 <= len(stuck) <= 30
    with pytest.raises(Stuck, match="and 0 slots are idle"):
        simulate_trials(*random_population(stuck[0], rising), PopulationPolicy(Hrfs(original=True)))


def test_options_out_of_range_are_refused():
    with pytest.raises(ConfigError, match=r"tiers is 1, caution 0\.0, again 0\.0; give 2 or more"):
        Hrfs(tiers=1)


def test_predicted_speeds_are_believed_before_anything_was_measured(population, lists):
    """The slow slot is 160 times as slow: the fast one does all before it has done half an interval."""
    state = population(2, [16.0, 0.1], steps=100)
    assert parts(state, lists(state, Hrfs(predict=True))) == {0: (0, WHOLE)}
    state = population(2, [16.0, 0.1], steps=100)
    assert parts(state, lists(state, Hrfs())) == {0: (1, HALF), 1: (0, HALF)}
