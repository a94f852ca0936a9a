"""Who won, in words."""

import pytest

from rota.report.verdict import Standings, longer, others, span, tally


def test_the_next_and_the_last_are_named():
    assert (
        others(Standings(["fifo", "srtf", "srsf"], [46.0, 10.0, 10.1]))
        == "srsf takes 1.0% longer, fifo 4.6 times as long"
    )


def test_who_is_level_does_as_well():
    assert others(Standings(["a", "b", "c"], [10.0, 10.04, 12.0])) == "b does as well, c takes 20% longer"
    four = Standings(["a", "b", "c", "d", "e"], [1.0] * 5)
    assert others(four) == "b, c and 2 more do as well"


def test_nobody_else_is_nothing_to_say():
    assert others(Standings(["a"], [1.0])) == ""
    assert others(Standings(["a", "b"], [0.0, 1.0])) == ""  # nothing can be divided by


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(1.012, "1.2% longer"), (1.5, "50% longer"), (2.0, "2.0 times as long"), (22.4, "22 times as long")],
)
def test_how_much_longer(ratio, said):
    assert longer(ratio) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.944, "0.944 s"), (5.5, "5.50 s"), (8208, "2.28 h"), (90, "90.0 s"), (1e8, "1,157 days")],
)
def test_a_span_has_three_digits(seconds, said):
    assert span(seconds) == said


def test_wins_are_counted():
    assert tally(["learned", "finish", "learned"]) == "learned is best in 2 of 3 comparisons, finish in 1."
    assert tally(["learned", "finish"]) == ""
