"""Trials that train as recorded curves say: exactly where they were recorded, nearly so in between."""

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.errors import ConfigError, InputError
from rota.core.population.events import Cloned, Reported, Stopped
from rota.core.population.view import Terms
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.evolution.asha import Asha
from rota.policies.evolution.pbt import Pbt
from rota.policies.evolution.registry import Unchanged
from rota.policies.population import PopulationPolicy
from rota.recordings.curve import CurvePoint, Curves, CurveSetting, read_curves
from rota.recordings.folder import Provenance
from rota.simulator.landscapes import CurveAssumptions, RecordedLandscape
from rota.simulator.population import PopulationScenario, simulate_trials

SHIPPED = Path(__file__).parents[3] / "results" / "recordings" / "curves" / "convnet2-fashion-mnist"
ORIGIN = Provenance("cpu", {}, "", 0, "", "2026-01-02T03:04:05+00:00", "0.1.0")


def setting(hyper: dict, accuracies: Sequence[float], seconds: float = 5.0, seed: int = 0) -> CurveSetting:
    """A run of intervals of 10 steps."""
    intervals = [
        CurvePoint(k, 10 * (k + 1), seconds, {"accuracy": value, "loss": 1.0 - value})
        for k, value in enumerate(accuracies)
    ]
    name = ",".join(f"{key}={value}" for key, value in hyper.items()) + f",seed={seed}"
    return CurveSetting.of(name, hyper, "cpu", seed, intervals)


def curves(*settings: CurveSetting) -> Curves:
    return Curves("net", "data", tuple(settings[0].hyper), 3, {each.name: each for each in settings}, ORIGIN)


TWO = curves(
    setting({"lr": 0.01, "batch_size": 16}, [0.1, 0.2, 0.3], seconds=5.0),
    setting({"lr": 0.1, "batch_size": 16}, [0.3, 0.6, 0.7], seconds=5.0),
    setting({"lr": 0.01, "batch_size": 64}, [0.2, 0.4, 0.5], seconds=10.0),
    setting({"lr": 0.1, "batch_size": 64}, [0.4, 0.8, 0.9], seconds=10.0),
)
SLOW, FAST = {"lr": 0.01, "batch_size": 16}, {"lr": 0.1, "batch_size": 16}


def test_a_setting_at_which_training_failed_at_once_is_the_worst_not_like_its_neighbours():
    late = setting({"lr": 1.0, "batch_size": 16}, [0.5])
    failed = {"lr=1.0,batch_size=16,seed=0": late.hyper, "at once": {"lr": 1.0, "batch_size": 64}}
    settings = {**TWO.settings, late.name: late}
    landscape = RecordedLandscape(replace(TWO, settings=settings, failed=failed))
    assert landscape.curve({"lr": 1.0, "batch_size": 64}).tolist() == [0.1, 0.1, 0.1]
    assert landscape.curve({"lr": 1.0, "batch_size": 16}).tolist() == [0.5, 0.5, 0.5]  # is held
    assert landscape.curve(FAST).tolist() == [0.3, 0.6, 0.7]


@pytest.fixture(scope="module")
def shipped() -> Curves:
    return read_curves(SHIPPED)


def test_a_recorded_setting_trains_as_it_was_recorded(shipped):
    landscape = RecordedLandscape(shipped)
    for trial, each in enumerate(shipped.settings.values()):
        landscape.begin(trial, each.hyper)
        assert [landscape.train(trial, 50) for _ in range(20)] == each.metrics["accuracy"].tolist()
        step_s = landscape.step_s(landscape.kind(each.hyper, ()))
        assert [50 * step_s] * 20 == pytest.approx(each.seconds.tolist(), rel=1e-12)


def test_between_intervals_a_metric_is_on_the_straight_line_and_it_is_held_after_the_last():
    """Before the first nothing is claimed: a part that is shorter than an interval has reached nothing."""
    landscape = RecordedLandscape(TWO)
    landscape.begin(0, FAST)
    # 0.3 after 10 steps, 0.6 after 20, 0.7 after 30
    found = [landscape.train(0, steps) for steps in (5, 5, 5, 5, 3, 7, 100)]
    assert found == pytest.approx([nan, 0.3, 0.45, 0.6, 0.63, 0.7, 0.7], nan_ok=True)


def test_between_settings_curves_are_multilinear_on_the_logarithms_of_rate_and_batch_size():
    landscape = RecordedLandscape(TWO)
    # halfway between 0.01 and 0.1, and between 16 and 64, in the logarithm
    middle = 10**-1.5
    assert landscape.curve({"lr": middle, "batch_size": 16}) == pytest.approx([0.2, 0.4, 0.5])
    assert landscape.curve({"lr": 0.01, "batch_size": 32}) == pytest.approx([0.15, 0.3, 0.4])
    assert landscape.curve({"lr": middle, "batch_size": 32}) == pytest.approx([0.25, 0.5, 0.6])


def test_momentum_is_on_the_scale_of_what_it_leaves():
    landscape = RecordedLandscape(
        curves(setting({"momentum": 0.0}, [0.2]), setting({"momentum": 0.99}, [0.6]))
    )
    # 1 − 0.9 is halfway between 1 and 0.01 in the logarithm
    assert landscape.curve({"momentum": 0.9}) == pytest.approx([0.4])


def test_a_narrow_range_is_on_its_own_scale():
    landscape = RecordedLandscape(curves(setting({"dropout": 0.2}, [0.2]), setting({"dropout": 0.6}, [0.6])))
    assert landscape.curve({"dropout": 0.5}) == pytest.approx([0.5])


def test_beyond_what_was_recorded_the_edge_holds():
    landscape = RecordedLandscape(TWO)
    assert landscape.curve({"lr": 0.9, "batch_size": 64}).tolist() == [0.4, 0.8, 0.9]
    assert landscape.curve({"lr": -1.0, "batch_size": 1}).tolist() == [0.1, 0.2, 0.3]


def test_a_setting_that_was_recorded_twice_counts_as_the_mean():
    hyper = {"lr": 0.1}
    twice = curves(setting(hyper, [0.2, 0.4], seed=0), setting(hyper, [0.4, 0.8], seed=1))
    assert RecordedLandscape(twice).curve(hyper) == pytest.approx([0.3, 0.6])


def test_a_setting_that_a_grid_lacks_is_filled_in_from_both_sides():
    line = [setting({"lr": lr, "momentum": 0.5}, [value]) for lr, value in ((0.01, 0.2), (1.0, 0.6))]
    rest = [setting({"lr": 0.1, "momentum": momentum}, [0.9]) for momentum in (0.0, 0.75)]
    more = [
        setting({"lr": lr, "momentum": momentum}, [0.0]) for lr in (0.01, 1.0) for momentum in (0.0, 0.75)
    ]
    # Halfway from 0.2 to 0.6 by rate, halfway from 0.9 to 0.9 by momentum (1, 1/2, 1/4); then the mean.
    assert RecordedLandscape(curves(*line, *rest, *more)).curve(
        {"lr": 0.1, "momentum": 0.5}
    ) == pytest.approx([0.65])


def test_a_corner_that_a_grid_lacks_is_the_nearest_setting():
    grid = [
        setting({"lr": lr, "batch_size": batch}, [value])
        for lr, batch, value in (
            (0.01, 16, 0.1),
            (0.02, 16, 0.2),
            (0.1, 16, 0.3),
            (0.01, 64, 0.4),
            (0.02, 64, 0.5),
        )
    ]
    # From (0.1, 64): a whole scale to (0.1, 16), seven tenths of one to (0.02, 64).
    assert RecordedLandscape(curves(*grid)).curve({"lr": 0.1, "batch_size": 64}).tolist() == [0.5]


def test_scattered_settings_count_for_all_that_is_nearer_to_them_than_to_others():
    points = [(0.001, 0.1, 0.2), (0.01, 0.3, 0.4), (0.1, 0.5, 0.6), (0.3, 0.8, 0.8)]
    landscape = RecordedLandscape(
        curves(*(setting({"lr": lr, "dropout": drop}, [v]) for lr, drop, v in points))
    )
    assert landscape.curve({"lr": 0.1, "dropout": 0.5}).tolist() == [0.6]
    assert landscape.curve({"lr": 0.02, "dropout": 0.35}).tolist() == [0.4]
    assert landscape.curve({"lr": 0.9, "dropout": 0.9}).tolist() == [0.8]


def test_words_have_no_in_between():
    both = curves(setting({"optimizer": "sgd"}, [0.2]), setting({"optimizer": "adam"}, [0.6]))
    assert RecordedLandscape(both).curve({"optimizer": "adam"}).tolist() == [0.6]
    with pytest.raises(InputError, match=r"'adm'\. Did you mean 'adam'"):
        RecordedLandscape(both).curve({"optimizer": "adm"})


def interior(shipped: Curves, name: str) -> bool:
    """Whether a setting of the grid has neighbours on both sides on at least one axis."""
    ends = {key: [each.hyper[key] for each in shipped.settings.values()] for key in shipped.hyper}
    hyper = shipped.settings[name].hyper
    return any(min(ends[key]) < hyper[key] < max(ends[key]) for key in shipped.hyper)


def test_a_setting_that_is_left_out_is_nearly_found_again(shipped):
    """Mean absolute error of accuracy over 64 settings: 0.020 at the end, 0.024 along the curve."""
    off, off_by_mean = [], []
    for name, each in shipped.settings.items():
        if interior(shipped, name):
            others = {key: other for key, other in shipped.settings.items() if key != name}
            found = RecordedLandscape(replace(shipped, settings=others)).curve(each.hyper)
            off.append(np.abs(found - each.metrics["accuracy"]))
            others_mean = np.mean([o.metrics["accuracy"] for o in others.values()], 0)
            off_by_mean.append(np.abs(others_mean - each.metrics["accuracy"]))
    assert len(off) == 72 - 8
    final, along = np.mean(off, axis=0)[-1], np.mean(off)
    assert final < 0.025 < 0.3 * np.mean(off_by_mean, axis=0)[-1]
    assert along < 0.030 < 0.3 * np.mean(off_by_mean)


@pytest.mark.parametrize(("axis", "final", "along"), [("lr", 0.03, 0.035), ("momentum", 0.025, 0.033)])
def test_values_that_are_left_out_altogether_are_nearly_found_again(shipped, axis, final, along):
    """Mean absolute error of accuracy: 0.025 and 0.029 for rates three times apart on both sides, 0.020 and
    0.027 for a momentum of 0.5 between 0 and 0.9."""
    off = []
    for value in sorted({each.hyper[axis] for each in shipped.settings.values()})[1:-1]:
        others = {name: each for name, each in shipped.settings.items() if each.hyper[axis] != value}
        landscape = RecordedLandscape(replace(shipped, settings=others))
        left_out = [each for name, each in shipped.settings.items() if name not in others]
        off += [np.abs(landscape.curve(each.hyper) - each.metrics["accuracy"]) for each in left_out]
    assert np.mean(off, axis=0)[-1] < final
    assert np.mean(off) < along


def test_a_clone_goes_on_from_the_first_interval_that_is_not_below_its_donor():
    landscape = RecordedLandscape(TWO)
    landscape.begin(0, SLOW)
    landscape.begin(1, SLOW)
    assert [landscape.train(1, 10), landscape.train(1, 15)] == pytest.approx([0.1, 0.25])
    landscape.clone(0, 1, FAST, ())
    assert landscape.train(0, 10) == pytest.approx(0.6)  # from 10 steps, where 0.3 is not below 0.25
    landscape.clone(1, 0, SLOW, ())
    assert landscape.train(1, 10) == pytest.approx(0.3)  # nothing is as good as 0.6: from the last


def test_the_same_curve_goes_on_from_where_the_donor_is():
    landscape = RecordedLandscape(TWO)
    landscape.begin(0, SLOW)
    landscape.begin(1, FAST)
    landscape.train(1, 20)
    landscape.clone(0, 1, FAST, ())
    assert landscape.train(0, 5) == landscape.train(1, 5) == pytest.approx(0.65)


def test_a_trial_may_go_on_with_other_hyper_parameters_of_its_own():
    landscape = RecordedLandscape(TWO)
    landscape.begin(0, FAST)
    landscape.train(0, 10)
    landscape.clone(0, 0, SLOW, ())
    assert landscape.train(0, 10) == pytest.approx(0.3)  # 0.3 is reached after 30 steps, the last


def test_a_donor_that_was_not_trained_gives_what_it_has():
    landscape = RecordedLandscape(TWO)
    landscape.begin(0, SLOW)
    landscape.begin(1, SLOW)
    landscape.clone(0, 1, FAST, ())
    assert landscape.train(0, 20) == pytest.approx(0.6)


def test_kinds_are_model_batch_size_and_changes():
    landscape = RecordedLandscape(TWO, CurveAssumptions(size_mb=8.0, growth=1.5))
    kinds = [landscape.kind(hyper, ()) for hyper in (SLOW, FAST, {**FAST, "batch_size": 64})]
    assert kinds == ["net 16", "net 16", "net 64"]
    assert [landscape.step_s(kind) for kind in kinds] == [0.5, 0.5, 1.0]
    grown = landscape.kind(FAST, ("deepen 0", "widen 1 64"))
    assert (landscape.step_s(grown), landscape.size_mb(grown)) == (0.5 * 1.5**2, 8.0 * 1.5**2)
    assert landscape.size_mb("net 16") == 8.0


@pytest.mark.parametrize(("batch", "step_s"), [(8, 0.5), (16, 0.5), (40, 0.75), (64, 1.0), (128, 2.0)])
def test_steps_with_other_batch_sizes_take_what_lies_in_between_or_is_in_proportion(batch, step_s):
    landscape = RecordedLandscape(TWO)
    assert landscape.step_s(landscape.kind({"lr": 0.1, "batch_size": batch}, ())) == pytest.approx(step_s)


def test_without_a_batch_size_all_trials_are_of_one_kind():
    landscape = RecordedLandscape(curves(setting({"lr": 0.1}, [0.2], seconds=3.0)))
    assert landscape.kind({"lr": 0.1}, ()) == "net"
    assert landscape.step_s("net") == pytest.approx(0.3)


def test_changes_of_a_network_add_to_the_metric_only_if_that_is_said():
    for gain, found in ((0.0, 0.6), (0.05, 0.7)):
        landscape = RecordedLandscape(TWO, CurveAssumptions(gain=gain))
        landscape.begin(0, FAST)
        landscape.begin(1, FAST)
        landscape.train(1, 10)
        landscape.clone(0, 1, FAST, ("deepen 0", "deepen 1"))
        assert landscape.train(0, 10) == pytest.approx(found)


def test_a_loss_counts_negatively():
    landscape = RecordedLandscape(TWO, CurveAssumptions(metric="loss"))
    landscape.begin(0, FAST)
    assert landscape.train(0, 10) == pytest.approx(-0.7)


@pytest.mark.parametrize(
    ("hyper", "says"),
    [
        ({"lr": 0.1}, "a trial has no batch_size; the curves of net need lr, batch_size"),
        ({"lr": "much", "batch_size": 16}, "lr is 'much'; it must be a number"),
        ({"lr": float("nan"), "batch_size": 16}, "lr is nan; it must be a number"),
    ],
)
def test_hyper_parameters_that_curves_cannot_tell_are_an_error(hyper, says):
    with pytest.raises(InputError, match=says):
        RecordedLandscape(TWO).begin(0, hyper)


def test_curves_that_do_not_say_enough_are_an_error():
    with pytest.raises(InputError, match=r"'accurcy'\. Did you mean 'accuracy'"):
        RecordedLandscape(TWO, CurveAssumptions(metric="accurcy"))
    with pytest.raises(InputError, match="seconds were not recorded for every batch size"):
        RecordedLandscape(curves(setting(FAST, [0.1], seconds=float("nan"))))
    with pytest.raises(InputError, match="no settings were recorded"):
        RecordedLandscape(replace(TWO, settings={}))


@pytest.mark.parametrize("options", [{"size_mb": -1.0}, {"growth": 0.0}, {"gain": float("nan")}])
def test_assumptions_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match="size_mb is"):
        CurveAssumptions(**options)


def test_a_simulation_reports_what_was_recorded_when_it_was(shipped):
    settings = list(shipped.settings.values())[::9]
    scene = PopulationScenario(
        tuple(each.hyper for each in settings), Cluster.of_speeds([1.0] * len(settings))
    )
    timeline = simulate_trials(
        scene, RecordedLandscape(shipped), PopulationPolicy(FifoAllocation(), Unchanged())
    ).timeline
    for trial, each in enumerate(settings):
        reports = [event for event in timeline if isinstance(event, Reported) and event.trial == trial]
        assert [event.metric for event in reports] == each.metrics["accuracy"].tolist()
        assert [event.at_s for event in reports] == pytest.approx(np.cumsum(each.seconds).tolist())


def population(shipped: Curves) -> PopulationScenario:
    random = np.random.default_rng(0)
    hypers = tuple(
        {
            "lr": float(10 ** random.uniform(-3, -0.5)),
            "momentum": float(random.uniform(0, 0.9)),
            "batch_size": 64,
        }
        for _ in range(20)
    )
    return PopulationScenario(hypers, Cluster.of_speeds([1.0, 0.5, 2.0]), Terms(50, 1000))


def test_a_population_that_evolves_does_better_than_one_that_does_not(shipped):
    scene = population(shipped)
    alone = simulate_trials(
        scene, RecordedLandscape(shipped), PopulationPolicy(FifoAllocation(), Unchanged())
    ).state
    together = simulate_trials(scene, RecordedLandscape(shipped), PopulationPolicy(FifoAllocation(), Pbt()))
    assert sum(isinstance(event, Cloned) for event in together.timeline) > 20
    assert together.state.metric.mean() > alone.metric.mean() + 0.05
    recorded = max(each.metrics["accuracy"].max() for each in shipped.settings.values())
    assert together.state.best <= recorded


def test_halving_saves_most_of_the_work_and_keeps_a_good_trial(shipped):
    scene = population(shipped)
    alone = simulate_trials(
        scene, RecordedLandscape(shipped), PopulationPolicy(FifoAllocation(), Unchanged())
    )
    halved = simulate_trials(scene, RecordedLandscape(shipped), PopulationPolicy(FifoAllocation(), Asha()))
    assert sum(isinstance(event, Stopped) for event in halved.timeline) >= 15
    assert halved.makespan_s < 0.5 * alone.makespan_s
    assert halved.state.best > alone.state.best - 0.03
