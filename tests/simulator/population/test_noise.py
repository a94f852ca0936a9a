"""Noise is 1 on average and belongs to trials; drift belongs to slots; without either nothing is drawn."""

from math import exp, inf, nan

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.errors import ConfigError
from rota.core.population import stepping
from rota.core.population.events import Reported
from rota.core.population.view import Terms
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal
from rota.simulator.noise import AHEAD, TimingNoise
from rota.simulator.population import PopulationScenario, engine_for, simulate_trials


class NoiseStream:
    """The factors that an engine draws, one after the other."""

    def __init__(self, noise: TimingNoise, trials: int, slots: int) -> None:
        scene = PopulationScenario(({},) * trials, Cluster.of_speeds([1.0] * slots), noise=noise)
        self.engine = engine_for(scene, Equal())

    def factor(self, trial: int, slot: int, intervals: float = 1.0) -> float:
        self.engine.reserve()
        return float(stepping.factor_of(self.engine.record[0], trial, slot, intervals))


def test_without_noise_intervals_take_as_long_as_they_should():
    stream = NoiseStream(TimingNoise(), 2, 2)
    assert [stream.factor(trial, slot) for trial in (0, 1) for slot in (0, 1)] == [1.0] * 4


@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_noise_is_log_normal_with_mean_1(noise):
    stream = NoiseStream(TimingNoise(noise=noise), 200, 1)
    factors = np.array([stream.factor(trial, 0) for trial in range(200) for _ in range(200)])
    # The variance of such a factor is exp(noise²) - 1; that of the mean of 40,000 is 40,000 times less.
    error = np.sqrt(np.expm1(noise**2) / factors.size)
    assert factors.mean() == pytest.approx(1.0, abs=4 * error)
    assert np.log(factors).mean() == pytest.approx(-(noise**2) / 2, abs=4 * noise / 200)
    assert np.log(factors).std() == pytest.approx(noise, rel=0.02)


def test_part_n_of_a_trial_has_one_factor_in_whichever_order_and_wherever_trials_are_trained():
    parts = AHEAD + 10
    one_after_the_other = NoiseStream(TimingNoise(noise=0.3), 3, 2)
    rows = [[one_after_the_other.factor(trial, 0) for _ in range(parts)] for trial in (2, 0, 1)]
    in_turns = NoiseStream(TimingNoise(noise=0.3), 3, 2)
    columns = [[in_turns.factor(trial, n % 2) for trial in (2, 0, 1)] for n in range(parts)]
    assert np.array_equal(np.array(rows), np.array(columns).T)
    assert len(np.unique(rows)) == 3 * parts


def test_the_factors_of_a_trial_do_not_depend_on_how_many_trials_there_are():
    few, many = NoiseStream(TimingNoise(noise=0.3), 2, 1), NoiseStream(TimingNoise(noise=0.3), 50, 1)
    assert [few.factor(1, 0) for _ in range(2 * AHEAD)][:AHEAD] == [many.factor(1, 0) for _ in range(AHEAD)]


def test_other_seeds_are_other_noise():
    first, second = (NoiseStream(TimingNoise(noise=0.3, seed=seed), 1, 1).factor(0, 0) for seed in (0, 1))
    assert first != second


def test_drift_wanders_from_part_to_part_and_is_the_same_for_all_trials_on_a_slot():
    stream = NoiseStream(TimingNoise(drift=0.1), 2, 1)
    logs = np.log([stream.factor(part % 2, 0) for part in range(4000)])
    steps = np.diff(logs, prepend=0.0)
    # A walk: its steps are N(0, 0.1) and do not depend on each other.
    assert steps.std() == pytest.approx(0.1, rel=0.05)
    assert abs(np.corrcoef(steps[1:], steps[:-1])[0, 1]) < 4 / np.sqrt(4000)


def test_short_parts_drift_as_far_as_long_ones_in_the_same_training():
    """Four quarters of an interval wander, together, as far as an interval: the variance is the same."""
    whole, quarters = (
        NoiseStream(TimingNoise(drift=0.1), 1, 1),
        NoiseStream(TimingNoise(drift=0.1, seed=1), 1, 1),
    )
    long = np.diff(np.log([whole.factor(0, 0) for _ in range(4000)]))
    short = np.diff(np.log([quarters.factor(0, 0, 0.25) for _ in range(16000)])[::4])
    assert short.std() == pytest.approx(long.std(), rel=0.05)
    assert long.std() == pytest.approx(0.1, rel=0.05)


def test_each_slot_drifts_for_itself_and_only_when_it_is_used():
    stream, alone = NoiseStream(TimingNoise(drift=0.1), 1, 2), NoiseStream(TimingNoise(drift=0.1), 1, 2)
    mixed = [stream.factor(0, slot) for slot in (0, 1, 1, 0)]
    assert [mixed[0], mixed[3]] == [alone.factor(0, 0), alone.factor(0, 0)]
    assert mixed[0] != mixed[1]


def test_noise_and_drift_multiply():
    both = NoiseStream(TimingNoise(noise=0.2, drift=0.1), 1, 1)
    noise, drift = NoiseStream(TimingNoise(noise=0.2), 1, 1), NoiseStream(TimingNoise(drift=0.1), 1, 1)
    for _ in range(3):
        assert both.factor(0, 0) == pytest.approx(noise.factor(0, 0) * drift.factor(0, 0))


def test_a_part_takes_its_steps_times_its_factor():
    scene = PopulationScenario(
        ({}, {}), Cluster.of_speeds([2.0]), Terms(10, 30), noise=TimingNoise(noise=0.2, seed=7)
    )
    stream = NoiseStream(scene.noise, 2, 1)
    done = simulate_trials(scene, Equal(3.0), PopulationPolicy(FifoAllocation()))
    spans = [event for event in done.timeline if isinstance(event, Reported)]
    for span in spans:  # ten steps of 3 s at twice the speed: 15 s
        assert span.ended_s - span.began_s == pytest.approx(15.0 * stream.factor(span.trial, 0))
    assert len(spans) == 6


@pytest.mark.parametrize("wrong", [{"noise": -0.1}, {"noise": nan}, {"drift": inf}, {"drift": 10.0}])
def test_noise_that_cannot_be_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"sigma is .*, drift .*; give 0 to 10"):
        TimingNoise(**wrong)


def test_the_largest_noise_can_still_be_written_as_a_number():
    stream = NoiseStream(TimingNoise(noise=9.99), 1, 1)
    assert all(0.0 < stream.factor(0, 0) < exp(300.0) for _ in range(1000))
