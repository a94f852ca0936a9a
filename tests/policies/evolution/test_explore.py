"""Spaces of hyper-parameters: what is drawn, perturbed and shifted stays within them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import ConfigError
from rota.policies.evolution.explore import USUAL, Explorer, Space

RATE = Space(1e-4, 1.0)
MOMENTUM = Space(1e-4, below=1.0)
LISTED = Space(values=(0.8, 0.9, 0.99))


def explored(space: Space, value: object, *, times: int = 1000, **options: object) -> list:
    explorer = Explorer({"it": space}, **{"resample": 0.25, "factors": (0.8, 1.2), **options})
    random = np.random.default_rng(0)
    return [explorer.explore({"it": value}, random)["it"] for _ in range(times)]


def test_a_number_of_a_range_is_multiplied_by_one_of_the_factors_or_drawn_afresh():
    found = Counter(round(value, 12) for value in explored(RATE, 0.5))
    assert found[0.4] == pytest.approx(375, abs=60)
    assert found[0.6] == pytest.approx(375, abs=60)
    afresh = [value for value in found if value not in (0.4, 0.6)]
    assert len(afresh) == pytest.approx(250, abs=60)
    assert np.mean(afresh) == pytest.approx(0.5, abs=0.06)


def test_a_factor_does_not_lead_out_of_a_range():
    assert set(explored(RATE, 0.95, resample=0.0)) == {0.95 * 0.8, 1.0}
    assert set(explored(RATE, 1.1e-4, resample=0.0)) == {1e-4, 1.1e-4 * 1.2}


def test_without_clamping_it_does_as_in_the_originals():
    assert set(explored(RATE, 0.95, resample=0.0, clamp=False)) == {0.95 * 0.8, 0.95 * 1.2}


def test_a_momentum_that_would_reach_1_goes_half_of_the_way_there():
    # 0.95 × 1.2 = 1.14; half of the way from 0.95 to 1 is 0.975
    assert sorted(set(explored(MOMENTUM, 0.95, resample=0.0))) == pytest.approx([0.76, 0.975])
    assert max(explored(MOMENTUM, np.nextafter(1.0, 0.0), resample=0.0)) < 1.0
    assert max(explored(MOMENTUM, 1.5, resample=0.0)) < 1.0


def test_a_listed_value_moves_to_its_neighbour_and_stays_at_the_ends():
    assert Counter(explored(LISTED, 0.9, resample=0.0)).keys() == {0.8, 0.99}
    at_the_end = Counter(explored(LISTED, 0.8, resample=0.0))
    assert at_the_end[0.8] == pytest.approx(500, abs=60)
    assert at_the_end[0.9] == 1000 - at_the_end[0.8]


def test_a_value_that_is_not_on_the_list_is_drawn_from_it():
    found = Counter(explored(LISTED, 0.5, resample=0.0))
    assert found.keys() == {0.8, 0.9, 0.99}
    assert min(found.values()) > 250


def test_words_are_shifted_like_numbers():
    optimisers = Space(names=("sgd", "adam", "rmsprop"))
    assert set(explored(optimisers, "adam", resample=0.0)) == {"sgd", "rmsprop"}


def test_what_was_a_whole_number_stays_one():
    batches = explored(Space(values=(16.0, 32.0, 64.0)), 32)
    assert set(batches) == {16, 32, 64}
    sizes = explored(Space(10, 100), 33)
    assert {26, 40} <= set(sizes)  # 26.4 and 39.6
    assert {type(value) for value in batches + sizes} == {int}


def test_a_logarithmic_range_is_drawn_from_evenly_in_its_logarithm():
    found = explored(Space(1e-4, 1.0, log=True), 0.1, resample=1.0)
    assert np.mean(np.array(found) < 1e-2) == pytest.approx(0.5, abs=0.05)


def test_the_donor_keeps_what_it_had():
    donor = {"lr": 0.5, "momentum": 0.9, "model": "resnet18"}
    copy = dict(donor)
    changed = Explorer(USUAL, 0.25, (0.8, 1.2)).explore(donor, np.random.default_rng(0))
    assert donor == copy
    assert changed["model"] == "resnet18"
    assert changed["lr"] != donor["lr"]


def test_a_space_of_a_hyper_parameter_that_trials_do_not_have_is_an_error():
    with pytest.raises(ConfigError, match=r"hyper-parameter in space: 'lrr'\. Did you mean 'lr'\?"):
        Explorer({"lrr": RATE}, 0.25, (0.8,)).explore({"lr": 0.1}, np.random.default_rng(0))


@given(
    low=st.floats(1e-6, 10.0),
    width=st.floats(1e-3, 10.0),
    value=st.floats(-20.0, 20.0),
    excluded=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_all_that_comes_out_of_a_range_is_in_it(low, width, value, excluded, seed):
    high = low + width
    space = Space(low, below=high) if excluded else Space(low, high)
    random = np.random.default_rng(seed)
    for _ in range(8):
        value = Explorer({"it": space}, 0.25, (0.5, 0.8, 1.2, 3.0)).explore({"it": value}, random)["it"]
        assert low <= value <= high
        assert value < high or not excluded


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "give low and high"),
        ({"low": 0.0}, "either high or below"),
        ({"low": 0.0, "high": 1.0, "below": 1.0}, "either high or below"),
        ({"low": 1.0, "high": 0.0}, "give less before more"),
        ({"low": 0.0, "high": 1.0, "log": True}, "above 0 for log"),
        ({"low": 0.0, "values": (1.0,)}, "give low and high"),
        ({"values": (1.0,), "names": ("a",)}, "give low and high"),
        ({"values": (1.0,), "below": 1.0}, "belong to a range"),
    ],
)
def test_a_space_that_makes_no_sense_says_what_to_give(options, says):
    with pytest.raises(ConfigError, match=says):
        Space(**options)
