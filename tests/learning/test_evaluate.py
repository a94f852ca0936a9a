"""How good a policy is, by trees that can be worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.learning.evaluate import (
    DRAWS,
    all_sequences,
    best_fixed,
    evaluate,
    headroom,
    others,
    outcome,
    ranking,
    rows,
)
from rota.learning.problem import Problem, problem_of
from rota.policies.growth import Fixed, Never

SMALL = {"actions": ("deepen 0", "nothing"), "decisions": 2}


class ByTime:
    """Deepens block 0 while there is much time, then does nothing."""

    def probabilities(self, observation):
        return [0.7, 0.1, 0.1, 0.1] if observation.left > 0.6 else [0.1, 0.1, 0.1, 0.7]


class Undecided:
    """Every action is as likely as any other."""

    def probabilities(self, observation):
        return [1 / len(observation.actions)] * len(observation.actions)


@pytest.fixture
def problem(make_tree) -> Problem:
    return problem_of(make_tree())


@pytest.fixture
def small(make_tree):
    """Gives a function that makes a problem of the accuracies of 0-0, 0-1, 1-0 and 1-1."""

    def make(*accuracies: float, **changes) -> Problem:
        return problem_of(make_tree(lambda made: accuracies[2 * made[0] + made[1]], **{**SMALL, **changes}))

    return make


def test_headroom_by_hand():
    """The mean is 0.4, the best 0.6."""
    accuracies = np.array([0.2, 0.4, 0.4, 0.6])
    assert headroom(0.6, accuracies) == pytest.approx(1.0)
    assert headroom(0.4, accuracies) == pytest.approx(0.0)
    assert headroom(0.2, accuracies) == pytest.approx(-1.0)
    assert headroom(0.45, accuracies) == pytest.approx(0.25)


@given(st.floats(0, 1), st.integers(1, 300))
def test_where_all_are_equal_there_is_no_headroom(accuracy, count):
    """Although their mean may be a little less than they are."""
    assert headroom(accuracy, np.full(count, accuracy)) == 0.0


@given(st.lists(st.floats(0, 1).map(lambda x: round(x, 3)), min_size=2, max_size=30))
def test_the_best_has_all_the_headroom_and_none_has_more(accuracies):
    found = [headroom(each, np.array(accuracies)) for each in accuracies]
    assert max(found) == pytest.approx(1.0 if len(set(accuracies)) > 1 else 0.0)
    assert sum(found) / len(found) == pytest.approx(0.0, abs=1e-6)


def test_a_policy_does_what_it_thinks_likeliest(problem):
    """Decisions are due with ¾, ½ and ¼ of the time left. One zero: 0.3, better than the 27 without."""
    found = evaluate(ByTime(), problem)
    assert found.sequence == (0, 3, 3)
    assert found.changes == ("deepen 0", "nothing", "nothing")
    assert found.probabilities == ((0.7, 0.1, 0.1, 0.1), (0.1, 0.1, 0.1, 0.7), (0.1, 0.1, 0.1, 0.7))
    assert found.accuracy == pytest.approx(0.3)
    assert (found.scenario, found.model, found.seed) == ("early", "convnet2", 0)


def test_equal_sequences_share_the_best_of_their_ranks(problem):
    """One has three zeros, 9 have two, 27 one and 27 none; so they rank 1, 2, 11 and 38 of 64."""
    ranks = {sequence: outcome(problem, sequence).rank for sequence in problem.sequences}
    assert {sequence.count(0): rank for sequence, rank in ranks.items()} == {3: 1, 2: 2, 1: 11, 0: 38}
    assert all(rank == {3: 1, 2: 2, 1: 11, 0: 38}[sequence.count(0)] for sequence, rank in ranks.items())
    assert outcome(problem, (0, 0, 0)).of == 64


def test_of_equals_the_first_is_taken(problem):
    assert evaluate(Undecided(), problem).sequence == (0, 0, 0)


def test_a_policy_sees_what_it_has_done(problem):
    """The time alone does not tell; `Fixed` looks at how much has been done."""
    assert evaluate(Fixed((1, 0, 2)), problem).sequence == (1, 0, 2)
    assert evaluate(Never(), problem).sequence == problem.tree.never == (3, 3, 3)


def test_a_failed_training_is_last_and_has_the_headroom_of_nothing(small):
    """0, 0.4, 0.2, 0.6: the mean is 0.3."""
    found = outcome(small(math.nan, 0.4, 0.2, 0.6), (0, 0))
    assert (found.accuracy, found.rank, found.of) == (0.0, 4, 4)
    assert found.headroom == pytest.approx(-1.0)


def test_what_others_would_have_reached(small):
    problem = small(0.1, 0.2, 0.5, 0.4)
    found = others(problem, [problem])
    assert (found.never, found.oracle, found.fixed) == (0.4, 0.5, 0.5)
    assert found.fixed_sequence == (1, 0)
    assert found.mean == pytest.approx(0.3)


def test_the_random_baseline_is_the_mean_of_ten_that_were_drawn(problem):
    """The same ones each time."""
    drawn = np.random.default_rng(int(problem.digest, 16)).integers(64, size=10)
    assert DRAWS == 10
    assert others(problem, []).random == pytest.approx(sum(problem.accuracies[each] for each in drawn) / 10)
    assert others(problem, []) == others(problem, [])


def test_drawing_is_fair(make_tree):
    """The mean of 50 times ten is that of all, 0.275, give or take four deviations of 0.075 / √500."""
    found = [others(problem_of(make_tree(start_s=100.0 + at)), []).random for at in range(50)]
    assert len(set(found)) > 1  # others are drawn in another tree
    assert np.mean(found) == pytest.approx(0.275, abs=4 * 0.075 / math.sqrt(500))


def test_the_best_fixed_sequence_is_best_on_average_of_headroom(small):
    """Headrooms of the first are −1, −1, 1, 1, of the second −⅓, 1, −⅓, −⅓: 1-0 and 1-1 have ⅓ on average.

    By the accuracies themselves it would be 0-1, with 0.1 + 0.9.
    """
    one, other = small(0.1, 0.1, 0.2, 0.2), small(0.1, 0.9, 0.1, 0.1, scenario="late")
    assert best_fixed([one]) == (1, 0)
    assert best_fixed([other]) == (0, 1)
    assert best_fixed([one, other]) == (1, 0)


def test_without_any_tree_there_is_no_fixed_sequence(small):
    assert best_fixed([]) is None
    found = others(small(0.1, 0.2, 0.3, 0.4), [])
    assert (found.fixed, found.fixed_sequence) == (None, None)


def test_only_what_was_trained_everywhere_can_be_fixed(small):
    """1-1 is best in the first, but the second does not have it; 0-0 is next in both."""
    one, other = small(0.3, 0.2, 0.1, 0.4), small(0.4, 0.2, 0.1, 0.3, scenario="late")
    few = Problem(
        other.tree,
        other.observations,
        other.sequences[:3],
        other.states[:3],
        other.steps[:3],
        other.accuracies[:3],
    )
    assert best_fixed([one, few]) == best_fixed([few, one]) == (0, 0)


def test_where_no_sequence_was_trained_everywhere_none_is_fixed(make_tree, small):
    assert best_fixed([small(0.1, 0.2, 0.3, 0.4), problem_of(make_tree(**{**SMALL, "decisions": 1}))]) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"decisions": 1},
        {"decisions": 3},
        {"actions": ("deepen 1", "nothing")},
        {"actions": ("nothing", "deepen 0")},
    ],
)
def test_only_problems_with_the_same_sequences_say_which_is_best(make_tree, small, changes):
    """Three actions may be as many but not the same, and two decisions are not three."""
    problem = small(0.1, 0.2, 0.3, 0.4)
    other = problem_of(make_tree(**{**SMALL, **changes}))
    assert others(problem, [other]).fixed is None
    assert others(problem, [other, problem, other]).fixed_sequence == (1, 1)


def test_rows_say_what_was_seen_and_compare_with_what_was_learned_there(small):
    """The fixed sequence is the best where the agent has learned, also where it has not."""
    seen, unseen = small(0.1, 0.4, 0.2, 0.3), small(0.4, 0.1, 0.2, 0.3, scenario="late")
    found = rows(Never(), [seen, unseen], {seen.digest})
    assert [row.seen for row in found] == [True, False]
    assert [row.agent.sequence for row in found] == [(1, 1), (1, 1)]
    assert [row.others.fixed_sequence for row in found] == [(0, 1), (0, 1)]
    assert [row.others.fixed for row in found] == [0.4, 0.1]


def test_all_sequences_are_listed_with_their_ranks_and_equal_ones_share_them(small):
    problem = small(0.2, 0.5, 0.4, 0.5)
    (row,) = rows(Never(), [problem], frozenset())
    found = all_sequences(row, problem)
    assert [(each.rank, each.accuracy) for each in found] == [(1, 0.5), (1, 0.5), (3, 0.4), (4, 0.2)]
    assert [each.changes for each in found if each.chosen] == [("nothing", "nothing")]
    assert ranking(row, problem).splitlines()[2] == "→     1   50.00%  nothing, nothing"
