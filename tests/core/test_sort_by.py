"""Sorting rows by key: stable, whichever of its two ways it takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.kernels import sort_by


def sorted_by(order, key):
    out = np.full_like(order, -1)
    sort_by(order, key, out)
    return out.tolist()


def expected(order, key):
    return order[np.argsort(key[order], kind="stable")].tolist()


@st.composite
def rows_and_keys(draw):
    """Some of the rows of a table, in any order, and a key for every row; often with ties."""
    capacity = draw(st.integers(1, 200))
    keys = draw(
        st.sampled_from(
            [
                st.floats(allow_nan=False),
                st.integers(-3, 3).map(float),
                st.sampled_from([0.0, -0.0, 1.0, np.inf, -np.inf]),
            ]
        )
    )
    key = np.array(draw(st.lists(keys, min_size=capacity, max_size=capacity)))
    rows = np.array(draw(st.permutations(range(capacity))), np.int32)
    return rows[: draw(st.integers(0, capacity))], key


@given(rows_and_keys())
def test_it_is_a_stable_argsort(drawn):
    order, key = drawn
    assert sorted_by(order, key) == expected(order, key)


@given(rows_and_keys())
def test_so_it_is_from_the_opposite_order(drawn):
    order, key = drawn
    backwards = np.array(expected(order, key)[::-1], np.int32)
    assert sorted_by(backwards, key) == expected(backwards, key)


# Insertion shifts as many rows as there are inversions, and gives up beyond 16 n + 64 of them: n rows in
# opposite order have n (n - 1) / 2, so of 36 rows (630 ≤ 640) it sorts all and of 37 (666 > 656) it does not.
@pytest.mark.parametrize("n", [2, 36, 37, 500])
@pytest.mark.parametrize("ties", [1, 3])
def test_far_from_sorted_rows_are_sorted_the_other_way(n, ties):
    order = np.arange(n, dtype=np.int32)
    key = -(order // ties).astype(float)
    assert sorted_by(order, key) == expected(order, key)


def test_a_sorted_head_and_a_tail_that_belongs_before_it():
    order = np.arange(1000, dtype=np.int32)
    key = np.where(order < 900, order + 1000.0, order % 7)
    assert sorted_by(order, key) == expected(order, key)


def test_the_order_given_is_left_alone():
    order = np.array([3, 1, 2], np.int32)
    sorted_by(order, np.array([0.0, 3.0, 2.0, 1.0]))
    assert order.tolist() == [3, 1, 2]
