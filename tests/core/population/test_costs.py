"""Costs of what is not training."""

from math import inf, nan

import pytest

from rota.core.errors import ConfigError
from rota.core.population.costs import AssignmentCosts


def test_a_move_takes_latency_and_size_over_bandwidth():
    costs = AssignmentCosts(latency_s=0.5, bandwidth_mb_s=100.0, cross_switch_mb_s=25.0)
    assert costs.move_s(50.0, across=False) == 1.0
    assert costs.move_s(50.0, across=True) == 2.5


def test_without_a_bandwidth_between_switches_it_is_that_between_nodes():
    assert AssignmentCosts(bandwidth_mb_s=10.0).move_s(50.0, across=True) == 5.0


def test_by_default_nothing_costs_anything():
    costs = AssignmentCosts()
    assert (costs.dispatch_s, costs.move_s(1e9, across=True), costs.moves_are_free) == (0.0, 0.0, True)


@pytest.mark.parametrize("some", [{"latency_s": 0.1}, {"bandwidth_mb_s": 10.0}, {"cross_switch_mb_s": 10.0}])
def test_moves_are_free_only_if_no_move_takes_any_time(some):
    assert not AssignmentCosts(**some).moves_are_free
    assert AssignmentCosts(**some).move_s(50.0, across=True) > 0.0


@pytest.mark.parametrize("name", ["dispatch_s", "latency_s"])
@pytest.mark.parametrize("value", [-1.0, inf, nan])
def test_a_cost_that_is_not_a_time_is_refused(name, value):
    with pytest.raises(ConfigError, match=f"{name} is {value:g}; it must be 0 to 1e+09".replace("+", r"\+")):
        AssignmentCosts(**{name: value})


@pytest.mark.parametrize(
    "wrong", [{"bandwidth_mb_s": 0.0}, {"bandwidth_mb_s": nan}, {"cross_switch_mb_s": -1.0}]
)
def test_a_bandwidth_that_is_not_above_0_is_refused(wrong):
    with pytest.raises(ConfigError, match="bandwidth_mb_s and cross_switch_mb_s must be above 0"):
        AssignmentCosts(**wrong)
