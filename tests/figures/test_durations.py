"""Seconds as people say them."""

import pytest

from rota.figures.page import log_ticks, said, unit_for


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.25, "0.25 s"), (0, "0 s"), (48, "48 s"), (119, "119 s"), (150, "2.5 min"), (3600, "60 min"),
        (5400, "90 min"), (9000, "2.5 h"), (36_000, "10 h"), (216_000, "2.5 days"), (8_640_000, "100 days"),
        (864_000_000, "10,000 days"),
    ],
)  # fmt: skip
def test_a_duration_is_said_in_its_own_unit(seconds, text):
    assert said(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "unit"), [(100, "seconds"), (7000, "minutes"), (1e5, "hours"), (1e6, "days")]
)
def test_an_axis_has_the_largest_unit_of_which_it_has_more_than_two(seconds, unit):
    assert unit_for(seconds).name == unit


def test_a_logarithmic_axis_has_round_marks():
    assert list(log_ticks(5, 90_000).values()) == ["10 s", "1 min", "10 min", "1 h", "6 h", "1 day"]


def test_a_short_logarithmic_axis_has_marks_too():
    assert list(log_ticks(15, 70).values()) == ["20 s", "50 s"]
