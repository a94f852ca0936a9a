"""Which trials are pruned: by a table, and as logs come, against the rule said slowly."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota.sweeps as ss
from rota.sweeps.asha import Rungs
from rota.sweeps.trial import DB_ITERATION, DB_METRIC, DB_TRIAL_ID

NAN = float("nan")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, [16, 4, 1]),
        ({"min_t": 3, "max_t": 24, "reduction_factor": 2}, [24, 12, 6, 3]),
        ({"min_t": 1, "max_t": 1000, "reduction_factor": 10}, [1000, 100, 10, 1]),
    ],
)
def test_rungs_are_powers_with_the_largest_first(options, found):
    assert ss.ASHA("loss", "min", **options)._rungs == found


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "least"},
        {"reduction_factor": 1},
        {"min_t": 0},
        {"min_t": 2, "max_t": 1},
        {"min_t": 2, "max_t": 2},
    ],
)
def test_an_option_out_of_range_is_an_assertion_error(options):
    with pytest.raises(AssertionError, match=r"give|above"):
        ss.ASHA(**({"metric": "loss", "mode": "min"} | options))


def table(rows: list[tuple[int, str, float]], metric: str = "loss") -> pd.DataFrame:
    return pd.DataFrame(rows, columns=[DB_ITERATION, DB_TRIAL_ID, f"{DB_METRIC}{metric}"])


RUNGS = {  # iteration, counted from one → what trials had lost by then, in the order in which they logged
    1: {"p": 0.5, "q": 0.1, "r": 0.3},
    3: {"p": 0.2, "s": 0.6, "t": NAN, "u": 0.4, "v": 0.8, "w": 0.9},
    9: {"p": 0.9, "s": 0.7},
}


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    ("factor", "pruned"),
    [
        # rungs 9, 3, 1. A third of the way from 0.7 to 0.9 is 0.77, along 0.2, 0.4, 0.6, 0.8, 0.9 it is
        # 0.47, along 0.1, 0.3, 0.5 it is 0.23. One may lose at two rungs.
        (3, ["p", "s", "t", "v", "w", "p", "r"]),
        # rungs 9 and 1: a ninth of the way from 0.7 to 0.9 is 0.72, along 0.1, 0.3, 0.5 it is 0.14
        (9, ["p", "p", "r"]),
        # nobody logged at 32, 16, 8, 4 and 2; half of the way along 0.1, 0.3, 0.5 is 0.3, which stays
        (2, ["p"]),
    ],
)
def test_the_best_share_of_each_rung_stays(factor, pruned, first):
    rows = table(
        [
            (iteration - 1 + first, name, value)
            for iteration, rung in RUNGS.items()
            for name, value in rung.items()
        ]
    )
    before = rows.copy()
    assert ss.ASHA("loss", "min", reduction_factor=factor).find_trials_to_prune(rows) == pruned
    pd.testing.assert_frame_equal(rows, before)


def test_more_is_better_if_said_so():
    rows = table([(1, "a", 1.0), (1, "b", 2.0)], "accuracy")
    assert ss.ASHA("accuracy", "max", reduction_factor=2).find_trials_to_prune(rows) == ["a"]


def test_an_empty_table_prunes_no_trial():
    assert ss.ASHA("loss", "min").find_trials_to_prune(table([])) == []


def percentile(values: list[float], share: float) -> float:
    """On the line between the two values next to the place, of all in order."""
    ordered = sorted(values)
    rank_variables = share * (len(ordered) - 1)
    below = math.floor(rank_variables)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank_variables - below) * (ordered[above] - ordered[below])


def slowly(rows: list[tuple[int, str, float]], factor: int, min_t: int, max_t: int, mode: str) -> list[str]:
    """The rule, said once more: whoever is worse than the best 1 ÷ factor of a rung, or no number."""
    shift = 1 if any(iteration == 0 for iteration, _, _ in rows) else 0
    pruned = []
    for power in reversed(range(20)):
        rung = min_t * factor**power
        if rung > max_t:
            continue
        there = [(trial, value) for iteration, trial, value in rows if iteration + shift == rung]
        known = [value for _, value in there if not math.isnan(value)]
        share = 1 / factor if mode == "min" else 1 - 1 / factor
        limit = float(np.percentile(known, 100 * share)) if known else NAN  # rounded as it always is
        assert not known or limit == pytest.approx(percentile(known, share), abs=1e-9)
        for trial, value in there:
            if math.isnan(value) or (value > limit if mode == "min" else value < limit):
                pruned.append(trial)
    return pruned


def curves(seed: int, trials: int, length: int, first: int, gaps: float) -> list[tuple[int, str, float]]:
    """Rows as they come from trials that run side by side; values are tenths, so that equal ones occur."""
    random = np.random.default_rng(seed)
    at = dict.fromkeys(range(trials), 0)
    rows = []
    while at:
        trial = int(random.choice(list(at)))
        value = NAN if random.random() < gaps else round(float(random.normal()), 1)
        rows.append((at[trial] + first, f"t{trial}", value))
        at[trial] += 1
        if at[trial] == length or random.random() < 0.03:
            del at[trial]
    return rows


CASES = (
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.sampled_from([0, 1]),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([(2, 1, 17), (3, 1, 9), (4, 1, 50), (4, 3, 20)]),
    st.sampled_from(["min", "max"]),
)


@given(*CASES)
def test_the_table_is_pruned_as_the_rule_says_on_random_curves(seed, trials, first, gaps, rule, mode):
    rows = curves(seed, trials, 18, first, gaps)
    factor, min_t, max_t = rule
    asha = ss.ASHA("loss", mode, factor, min_t, max_t)
    assert asha.find_trials_to_prune(table(rows)) == slowly(rows, factor, min_t, max_t, mode)


@given(*CASES)
def test_a_log_is_answered_as_the_table_up_to_it_would_be(seed, trials, first, gaps, rule, mode):
    rows = curves(seed, trials, 18, first, gaps)
    asha = ss.ASHA("loss", mode, *rule)
    rungs = Rungs(asha)
    for count, (iteration, trial, value) in enumerate(rows, 1):
        rungs.add(int(trial[1:]), iteration, value)
        assert rungs.prune(int(trial[1:])) == (trial in slowly(rows[:count], *rule, mode))


def test_a_trial_that_begins_anew_is_not_compared_with_its_past():
    rungs = Rungs(ss.ASHA("loss", "min", reduction_factor=2))
    for trial, value in enumerate([1.0, NAN, 3.0]):
        rungs.add(trial, 1, value)
    assert [rungs.prune(trial) for trial in range(3)] == [False, True, True]
    rungs.forget(0)
    rungs.forget(1)
    assert [rungs.prune(trial) for trial in range(3)] == [False, False, False]
