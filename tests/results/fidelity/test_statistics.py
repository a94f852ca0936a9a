"""Orders and errors, against what can be counted by hand or by brute force."""

from itertools import combinations
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.results.fidelity.compare import Versus, agreement, correlation


def by_brute_force(xs, ys):
    """Kendall's τ-b from its definition."""
    concordant = discordant = level_x = level_y = 0
    for (x1, y1), (x2, y2) in combinations(zip(xs, ys, strict=True), 2):
        product = (x1 - x2) * (y1 - y2)
        concordant += product > 0
        discordant += product < 0
        level_x += x1 == x2
        level_y += y1 == y2
    pairs = len(xs) * (len(xs) - 1) // 2
    scale = sqrt((pairs - level_x) * (pairs - level_y))
    return discordant == 0, (concordant - discordant) / scale if scale else None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_orders_agree_as_the_definition_says(points):
    xs, ys = zip(*points, strict=True)
    same, tau = by_brute_force(xs, ys)
    found = agreement(xs, ys)
    assert found.same is same
    assert found.tau == pytest.approx(tau)


def test_one_pair_of_three_that_changed_places():
    assert agreement([1, 2, 3], [1, 3, 2]) == (False, pytest.approx(1 / 3))
    assert agreement([1, 2, 3], [3, 2, 1]) == (False, -1.0)
    assert agreement([1, 1], [2, 3]) == (True, None)


def test_errors_have_the_sign_of_the_simulation():
    assert Versus(20.0, 21.0).error_percent == pytest.approx(5.0)
    assert Versus(20.0, 19.0).error_percent == pytest.approx(-5.0)
    assert Versus(0.0, 1.0).error_percent is None


def test_what_does_not_vary_is_correlated_with_nothing():
    assert correlation([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]) == pytest.approx(1.0)
    assert correlation([1.0, 2.0], [5.0, 5.0]) is None
    assert correlation([1.0], [5.0]) is None
