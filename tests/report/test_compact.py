"""Numbers that are made small come back as they were."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.report.timelines import PackedColumn, TickClock, number, packed, rounded, thinned, unpacked

WHOLE = st.lists(st.integers(0, 2**31 - 1), max_size=50)


def test_a_clock_has_ticks_of_a_power_of_ten_that_are_fine_enough():
    assert TickClock.over(0.0, 14.0).tick_s == pytest.approx(1e-6)  # 14 s in 14,000,000 ticks
    assert TickClock.over(0.0, 800_000.0).tick_s == pytest.approx(1e-2)


def test_ticks_count_from_the_beginning_and_never_below_it():
    assert TickClock(100.0, 0.1).ticks([100.0, 100.26, 99.0]).tolist() == [0, 3, 0]


def test_what_has_no_number_becomes_none():
    assert rounded([1.23456789, 2.0, math.nan, math.inf]) == [1.2346, 2, None, None]
    assert number(123456.7, 3) == 123000


def test_of_many_points_some_are_kept_with_both_ends():
    assert thinned(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert thinned(101, 5).tolist() == [0, 25, 50, 75, 100]
    assert thinned(0, 5).tolist() == []


@given(WHOLE, WHOLE, st.lists(st.floats(width=32, allow_nan=False), max_size=20))
def test_columns_come_back(values, others, floats):
    columns = {
        "plain": PackedColumn(np.array(values, np.int64)),
        "steps": PackedColumn(np.array(others, np.int64), sorted=True),
        "floats": PackedColumn(np.array(floats, np.float32)),
    }
    found = unpacked(packed(columns))
    assert found["plain"].tolist() == values
    assert found["steps"].tolist() == others
    assert found["floats"].tolist() == floats


def test_a_column_is_as_narrow_as_it_can_be():
    columns = {
        "byte": PackedColumn(np.array([255])),
        "two": PackedColumn(np.array([256])),
        "four": PackedColumn(np.array([65536])),
    }
    assert [head[1] for head in packed(columns)["columns"]] == ["u1", "u2", "u4"]


def test_sorted_columns_take_hardly_any_room():
    instants = np.arange(0, 5_000_000, 50)
    assert len(packed({"at": PackedColumn(instants, sorted=True)})["bytes"]) < 1000
    assert len(packed({"at": PackedColumn(instants)})["bytes"]) > 100_000
