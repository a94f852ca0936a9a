"""Asynchronous successive halving, against the same rule written as a question to a table."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.cluster import Cluster
from rota.core.errors import ConfigError
from rota.core.population.events import Hyper, Reported, Stopped, TrialFinished
from rota.core.population.view import Terms
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.config import TrialsConfig
from rota.policies.evolution.asha import Asha, losers, rungs
from rota.policies.population import PopulationPolicy
from rota.recordings.curve import read_curves
from rota.simulator.landscapes import Equal, RecordedLandscape
from rota.simulator.noise import TimingNoise
from rota.simulator.population import PopulationScenario, simulate_trials

NAN = float("nan")
CURVES = Path(__file__).parents[3] / "results" / "recordings" / "curves" / "convnet2-fashion-mnist"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((4, 1, 50), [16, 4, 1]),
        ((4, 1, 64), [64, 16, 4, 1]),
        ((4, 1, 63), [16, 4, 1]),
        ((2, 3, 20), [12, 6, 3]),
        ((10, 1, 9), [1]),
    ],
)
def test_rungs_are_powers_up_to_the_most_with_the_largest_first(options, found):
    assert rungs(*options) == found


def test_the_best_quarter_of_a_rung_stays():
    # 75 % of the way from the least to the most of 1, 2, 3, 4, 5 is 4
    assert losers([1, 2, 3, 4, 5], 4, "max") == [True, True, True, False, False]
    assert losers([1, 2, 3, 4, 5], 4, "min") == [False, False, True, True, True]


def test_between_two_values_the_limit_is_on_the_line():
    # of 1 and 3: half of the way is 2, three quarters 2.5
    assert losers([1, 3], 2, "max") == [True, False]
    assert losers([1, 3, 2.5, 2.49], 4, "max") == [True, False, True, True]


def test_alone_and_equals_stay():
    assert losers([0.3], 4, "max") == [False]
    assert losers([0.3] * 5, 4, "min") == [False] * 5


def test_what_is_not_a_number_loses_and_does_not_count():
    assert losers([NAN, 1, 3, NAN], 2, "max") == [True, True, False, True]
    assert losers([NAN, 1, 3, float("inf")], 2, "min") == [True, False, True, True]
    assert losers([NAN, NAN], 2, "max") == [True, True]
    assert losers([float("inf"), 1, 3], 2, "max") == [True, True, False]


class Drawn(Equal):
    """Trials whose metrics were drawn beforehand: position t is what they report after t intervals."""

    def __init__(self, curves: list[list[float]], interval: int) -> None:
        super().__init__()
        self.curves, self.interval = curves, interval
        self.steps = [0] * len(curves)

    def train(self, trial: int, steps: int) -> float:
        self.steps[trial] += steps
        return self.curves[trial][self.steps[trial] // self.interval - 1]


def table_rule(table: list[dict], rungs_largest_first: list[int], factor: float) -> list[int]:
    """Trials to prune, given all rows (t, trial, metric) so far: rung by rung, rows in their order."""
    pruned = []
    for rung in rungs_largest_first:
        rows = [row for row in table if row["t"] == rung]
        known = [row["metric"] for row in rows if row["metric"] == row["metric"]]
        kept = [value for value in known if value >= np.percentile(known, (1 - 1 / factor) * 100)]
        pruned += [row["trial"] for row in rows if row["metric"] not in kept]
    return pruned


def stopped_by_the_table(
    timeline, interval: int, all_rungs: list[int], asha: Asha
) -> list[tuple[float, int]]:
    """Who would be stopped when, if each report became a row and the table was asked after each of them."""
    table, steps, found = [], {}, []
    finished = {(event.at_s, event.trial) for event in timeline if isinstance(event, TrialFinished)}
    for event in timeline:
        if isinstance(event, Reported):
            steps[event.trial] = steps.get(event.trial, 0) + event.steps
            table.append({"t": steps[event.trial] // interval, "trial": event.trial, "metric": event.metric})
            pruned = table_rule(table, all_rungs, asha.reduction_factor)
            if event.trial in pruned and (event.at_s, event.trial) not in finished:
                found.append((event.at_s, event.trial))
    return found


@given(
    st.integers(0, 10**6),
    st.integers(2, 16),
    st.sampled_from([(2, [16, 8, 4, 2, 1], 1), (3, [9, 3, 1], 1), (4, [16, 4, 1], 1), (4, [12, 3], 3)]),
    st.sampled_from([0.0, 0.1]),
)
def test_it_stops_the_trials_that_the_table_rule_stops_at_the_same_report(seed, trials, rule, gaps):
    factor, all_rungs, min_t = rule
    random = np.random.default_rng(seed)
    curves = np.round(random.normal(0, 1, (trials, 1)) + random.normal(0, 0.5, (trials, 18)), 1)
    curves[random.random(curves.shape) < gaps] = NAN
    asha = Asha(factor, min_t, 17)
    hypers: tuple[Hyper, ...] = ({},) * trials
    scene = PopulationScenario(
        hypers,
        Cluster.of_speeds([1.0, 0.7, 2.3]),
        Terms(50, 900),
        noise=TimingNoise(noise=0.3, seed=seed),
    )
    timeline = simulate_trials(
        scene, Drawn(curves.tolist(), 50), PopulationPolicy(FifoAllocation(), asha)
    ).timeline
    stopped = [(event.at_s, event.trial) for event in timeline if isinstance(event, Stopped)]
    assert stopped == stopped_by_the_table(timeline, 50, all_rungs, asha)


def test_on_recorded_curves_it_stops_the_trials_that_the_table_rule_stops():
    recorded = read_curves(CURVES)
    hypers = tuple(each.hyper for each in recorded.settings.values())
    scene = PopulationScenario(
        hypers, Cluster.of_speeds([1.0, 0.7, 2.3]), Terms(50, 1000), noise=TimingNoise(noise=0.1)
    )
    timeline = simulate_trials(
        scene, RecordedLandscape(recorded), PopulationPolicy(FifoAllocation(), Asha())
    ).timeline
    stopped = [(event.at_s, event.trial) for event in timeline if isinstance(event, Stopped)]
    assert stopped == stopped_by_the_table(timeline, 50, [16, 4, 1], Asha())
    assert len(stopped) > 50


def test_most_of_a_large_population_is_stopped():
    curves = np.random.default_rng(1).random((64, 1)).repeat(20, axis=1)
    scene = PopulationScenario(
        ({},) * 64, Cluster.of_speeds([1.0] * 4), Terms(50, 1000), noise=TimingNoise(noise=0.1)
    )
    found = simulate_trials(scene, Drawn(curves.tolist(), 50), PopulationPolicy(FifoAllocation(), Asha()))
    kept = [event.trial for event in found.timeline if isinstance(event, TrialFinished)]
    assert int(curves[:, 0].argmax()) in kept
    assert len(kept) < 16


def test_one_that_was_good_enough_is_stopped_once_better_ones_have_come(population):
    state = population([0.5, float("nan")])
    state.history[0] = [(50, 0.5)]
    asha = Asha(reduction_factor=2)
    assert type(asha.decide(state, 0)).__name__ == "Continue"
    state.steps[:] = [100, 50]
    state.history[0].append((100, 0.9))
    state.history[1] = [(50, 0.8)]
    assert type(asha.decide(state, 0)).__name__ == "Stop"


def test_an_interval_that_was_reported_in_parts_is_an_interval(population):
    state = population([0.1, 0.2])
    state.history[:] = [[(25, 0.9), (50, 0.1)], [(25, 0.0), (75, 0.2)]]
    state.steps[:] = [50, 75]
    asha = Asha(reduction_factor=2)
    assert [type(asha.decide(state, trial)).__name__ for trial in (0, 1)] == ["Stop", "Continue"]
    state.steps[0] = 25
    state.history[0] = [(25, 0.1)]
    assert type(asha.decide(state, 0)).__name__ == "Continue"


@pytest.mark.parametrize(
    "options", [{"reduction_factor": 1.0}, {"min_t": 0}, {"min_t": 5, "max_t": 5}, {"max_t": 0}]
)
def test_an_option_out_of_range_is_refused(options):
    with pytest.raises(ConfigError, match=r"must be above 1|max_t > min_t > 0"):
        Asha(**options)


class Later(TrialsConfig):
    """Trials of which nothing is known before step 50."""

    def measured_from(self) -> int:
        return 50


def test_the_lowest_rung_is_not_below_the_first_step_that_is_measured():
    Asha().check(Later(interval=50))
    Asha(min_t=3).check(Later(interval=20))
    with pytest.raises(ConfigError, match=r"reviewed after 20 steps, but the curves begin at step 50"):
        Asha().check(Later(interval=20))
