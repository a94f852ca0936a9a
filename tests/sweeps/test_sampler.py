"""Search spaces and what is drawn from them."""

import math

import numpy as np
import pytest

import rota.sweeps as ss
from rota.sweeps.sampler import Sampler, possible


def shares(seed: int, count: int) -> list[float]:
    """What NumPy's generator draws between 0 and 1."""
    return np.random.default_rng(seed).random(count).tolist()


def test_uniform_draws_from_numpys_generator_of_its_seed():
    draw = ss.Uniform(-1, 4, seed=7)
    assert [draw() for _ in range(3)] == pytest.approx([5 * share - 1 for share in shares(7, 3)])


def test_log_uniform_is_uniform_in_the_exponent():
    draw = ss.LogUniform(1e-5, 1e-1, seed=7)
    assert [draw() for _ in range(3)] == pytest.approx([10 ** (4 * share - 5) for share in shares(7, 3)])


def test_choices_are_as_they_were_given():
    names = ["sgd", "adam", "lion"]
    draw = ss.Choice(names, seed=7)
    positions = np.random.default_rng(7).integers(0, 3, 20)
    assert [draw() for _ in range(20)] == [names[position] for position in positions]
    assert type(ss.Choice([1, 2])()) is int
    assert ss.Choice([(1, 2)])() == (1, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ss.Choice([0.5, None]),
        lambda: ss.Choice([]),
        lambda: ss.LogUniform(0, 1),
        lambda: ss.LogUniform(2, 1),
        lambda: ss.LogUniform(1, 1),
        lambda: ss.Grid([]),
    ],
)
def test_a_space_that_makes_no_sense_is_refused(make):
    with pytest.raises(AssertionError, match="give"):
        make()


def test_a_grid_gives_its_list():
    assert ss.Grid(["relu", "tanh"])() == ["relu", "tanh"]


def test_grids_are_run_through_whatever_n_is_also_inside_tables():
    cfg = {"net": {"depth": ss.Grid([18, 50]), "act": "relu"}, "rate": ss.Grid([0.1, 0.2, 0.4])}
    found = [(each["net"]["depth"], each["net"]["act"], each["rate"]) for each in Sampler(cfg, n=2)]
    assert found == [(depth, "relu", rate) for depth in (18, 50) for rate in (0.1, 0.2, 0.4)]


def test_after_the_last_point_of_a_grid_comes_the_first():
    draw = Sampler({"act": ss.Grid(["relu", "tanh"])})
    assert [draw()["act"] for _ in range(3)] == ["relu", "tanh", "relu"]


def test_each_point_of_a_grid_has_its_own_draw():
    found = list(Sampler({"a": ss.Grid([1, 2]), "x": ss.Uniform(0, 1, seed=7)}))
    assert [each["x"] for each in found] == pytest.approx(shares(7, 2))


def test_without_a_grid_there_are_n():
    found = list(Sampler({"x": ss.Uniform(0, 1), "y": {"z": ss.Choice([7])}}, n=5))
    assert len(found) == 5
    assert all(0 <= each["x"] < 1 and each["y"] == {"z": 7} for each in found)
    assert len({each["x"] for each in found}) == 5


def test_what_a_configuration_may_come_to_have_is_known():
    cfg = {"a": ss.Choice([math.sin, math.cos]), "b": {"c": ss.Grid([1]), "d": "x"}, "e": ss.Uniform(0, 1)}
    assert possible(cfg) == [math.sin, math.cos, 1, "x"]
