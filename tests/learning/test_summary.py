"""What agents do where they have not learned, beside what could be done there."""

import json
import math

import pytest

from rota.learning.evaluate import LeftOutSummary, ceilings, summary
from rota.learning.outcome import Baselines, Evaluation, EvaluationOutcome, EvaluationRow
from rota.learning.problem import Problem, problem_of
from rota.recordings.describe import Noise

SMALL = {"actions": ("deepen 0", "nothing"), "decisions": 2}
ACTIONS = SMALL["actions"]


@pytest.fixture
def small(make_tree):
    """Gives a function that makes a tree of the accuracies of 0-0, 0-1, 1-0 and 1-1."""

    def make(*accuracies: float, **changes):
        return make_tree(lambda made: accuracies[2 * made[0] + made[1]], **{**SMALL, **changes})

    return make


@pytest.fixture
def problem(small):
    def make(*accuracies: float, **changes) -> Problem:
        return problem_of(small(*accuracies, **changes))

    return make


def row(
    headroom: float,
    fixed: float | None = 0.4,
    *,
    scenario: str = "early",
    seed: int = 0,
    rank: int = 1,
    data: str = "",
) -> EvaluationRow:
    """In a scenario whose mean is 0.3 and whose best is 0.5."""
    agent = EvaluationOutcome(
        scenario, "ConvNet2", seed, (0, 0), ("deepen 0",) * 2, ACTIONS, 0.4, rank, 4, headroom, (), data
    )
    return EvaluationRow(
        agent, Baselines(0.2, 0.3, fixed, None if fixed is None else (0, 1), 0.5, 0.3), False
    )


def test_a_ceiling_by_hand(problem):
    """Around their means, the first is (−3, −1, 1, 3) and the second (−1, −3, 3, 1): r = 12 / 20."""
    one, other = problem(0.1, 0.3, 0.5, 0.7), problem(0.3, 0.1, 0.7, 0.5, seed=1)
    assert ceilings([one, other]) == {"convnet2/early": pytest.approx(math.sqrt(0.6))}


def test_two_recordings_that_agree_set_no_limit_and_two_that_contradict_each_other_leave_nothing(problem):
    one = problem(0.1, 0.2, 0.3, 0.4)
    assert ceilings([one, problem(0.5, 0.6, 0.7, 0.8, seed=1)]) == {"convnet2/early": pytest.approx(1.0)}
    assert ceilings([one, problem(0.4, 0.3, 0.2, 0.1, seed=1)]) == {"convnet2/early": 0.0}


def test_of_three_seeds_every_two_count_alike_in_any_order(problem):
    """Correlations of 1, 0.6 and 0.6."""
    trees = [
        problem(0.1, 0.3, 0.5, 0.7),
        problem(0.2, 0.4, 0.6, 0.8, seed=1),
        problem(0.3, 0.1, 0.7, 0.5, seed=2),
    ]
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        found = ceilings([trees[at] for at in order])
        assert found == {"convnet2/early": pytest.approx(math.sqrt(2.2 / 3))}


def test_without_a_second_seed_no_ceiling_is_known(problem):
    one = problem(0.1, 0.2, 0.3, 0.4)
    assert ceilings([one, problem(0.1, 0.2, 0.3, 0.4, scenario="late", seed=1)]) == {}
    assert ceilings([one, problem(0.1, 0.2, 0.3, 0.4)]) == {}


@pytest.mark.parametrize(
    "changes", [{"decisions": 3}, {"actions": ("deepen 1", "nothing")}, {"data": "digits"}, {"start_s": 90.0}]
)
def test_trees_of_other_sequences_are_not_compared(problem, changes):
    one, other = problem(0.1, 0.2, 0.3, 0.4), problem(0.1, 0.2, 0.3, 0.4, seed=1, **changes)
    assert ceilings([one, other]) == {}


def test_where_all_sequences_are_equal_nothing_can_be_done(problem):
    found = ceilings([problem(0.1, 0.2, 0.3, 0.4), problem(0.3, 0.3, 0.3, 0.3, seed=1)])
    assert found == {"convnet2/early": 0.0}


def test_means_over_all_rows():
    """A fixed 0.4 is half-way from 0.3 to 0.5; 0.3 has a headroom of 0."""
    found = LeftOutSummary((row(1.0), row(0.5, fixed=0.3)), {}, {})
    assert found.headroom == 0.75
    assert found.fixed == pytest.approx(0.25)
    assert found.never == pytest.approx(-0.5)


def test_where_a_row_has_no_fixed_sequence_there_is_no_mean_of_them():
    found = LeftOutSummary((row(1.0), row(0.5, fixed=None)), {}, {})
    assert found.fixed is None
    values = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert (values["headroom"], values["headroom_fixed"]) == (0.75, None)


def test_as_plain_values_it_has_everything():
    found = LeftOutSummary((row(1.0),), {"convnet2/early": 0.8}, {"ConvNet2": Noise(0.02, 0.01)}).to_json()
    assert found["scenarios"] == [row(1.0).to_json()]
    assert found["ceilings"] == {"convnet2/early": 0.8}
    assert found["where_bounded"] == {"headroom": 1.0, "ceiling": 0.8}
    assert LeftOutSummary((row(1.0),), {}, {}).to_json()["where_bounded"] is None
    assert found["noise"] == {"ConvNet2": {"whole": 0.02, "apart": 0.01}}


def test_the_text_by_hand():
    """Two agents in the first scenario, 0.8 ± 0.2; the ceiling is found however the model is written."""
    rows = (row(1.0), row(-0.5, None, scenario="late", seed=1, rank=4), row(0.6, rank=2))
    found = LeftOutSummary(rows, {"convnet2/early": 0.9}, {"ConvNet2": Noise(0.02, 0.01)})
    assert found.text().splitlines() == [
        "model      left out         headroom  ± seeds   fixed   never  ceiling  rank",
        "ConvNet2   early                0.80     0.20    0.50   -0.50     0.90  1 2",
        "ConvNet2   late (1)            -0.50     0.00       –   -0.50        –  4",
        "mean                            0.37                –   -0.50",
        "where there are two recordings: headroom 0.80, ceiling about 0.90",
        "another seed changes an accuracy of ConvNet2 by ±1.0% within its tree",
    ]


def test_the_same_model_on_other_data_has_a_line_and_a_ceiling_of_its_own(problem):
    problems = [
        problem(0.1, 0.2, 0.3, 0.4, data=data, seed=seed) for data in ("cifar10", "digits") for seed in (0, 1)
    ]
    found = ceilings(problems[:3])
    assert found == {"convnet2-cifar10/early": pytest.approx(1.0)}
    lines = LeftOutSummary((row(1.0, data="digits"), row(0.5, data="cifar10")), found, {}).text().splitlines()
    assert lines[1:5] == [
        "ConvNet2-digits  early                1.00     0.00    0.50   -0.50        –  1",
        "ConvNet2-cifar10 early                0.50     0.00    0.50   -0.50     1.00  1",
        "mean                                  0.75             0.50   -0.50",
        "where there are two recordings: headroom 0.50, ceiling about 1.00",
    ]


def test_a_summary_knows_the_noise_of_the_recordings(small):
    """All differ by 0.1 and two of four by 0.1 more: ±0.05 around their mean, of two runs."""
    trees = [
        small(0.1, 0.2, 0.3, 0.4),
        small(0.2, 0.3, 0.5, 0.6, seed=1),
        small(0.1, 0.2, 0.3, 0.4, model="convnet3"),
    ]
    evaluations = [Evaluation("a", {}, (row(1.0),)), Evaluation("b", {}, (row(0.0), row(0.5)))]
    found = summary(evaluations, trees)
    assert found.headroom == 0.5
    assert len(found.rows) == 3
    assert list(found.ceilings) == ["convnet2/early"]
    assert list(found.noise) == ["convnet2"]
    assert found.noise["convnet2"].apart == pytest.approx(0.05 / math.sqrt(2))
