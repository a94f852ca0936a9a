"""An update of an agent, worked out by hand."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from rota.learning.config import Method
from rota.learning.problem import problem_of
from rota.learning.reinforce import Pressure, Tables, update

ORIGINAL = Method(
    network="original",
    reward="tan",
    baseline=False,
    entropy=0.0,
    episodes_per_update=1,
    lr=1e-4,
    lr_falls="steps",
)
ONE = {"decisions": 1, "actions": ("deepen 0", "nothing")}


class Scores(nn.Module):
    """A network whose weights are the scores themselves."""

    def __init__(self, *rows: tuple[float, ...]) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.tensor(rows))

    def encode(self, sights):
        return len(sights)

    def forward(self, seen):
        return self.scores


def once(network: nn.Module, trees, method: Method, *, entropy: float = 0.0, temperature: float = 1.0):
    """One update with plain gradient descent at a rate of 1; what it came to, and the gradient."""
    tables = Tables.of([problem_of(tree) for tree in trees], network, method)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
    pressure = Pressure(lr=1.0, entropy=entropy, temperature=temperature)
    made = update(network, tables, optimizer, method, pressure, torch.Generator().manual_seed(0))
    return made, network.scores.grad


def test_the_original_update_pushes_what_was_done_by_the_tangent_of_its_accuracy(make_tree):
    tree = make_tree(lambda sequence: 0.5, **ONE)  # tan(π/4) = 1, so any reward is 100
    made, gradient = once(Scores((0.0, math.log(3))), [tree], ORIGINAL)
    assert made.reward == pytest.approx(100.0)
    chances = np.array([0.25, 0.75])
    pushes = [-100 * (np.eye(2)[done] - chances) for done in (0, 1)]  # −R·∂log p
    assert any(np.allclose(gradient[0].numpy(), push) for push in pushes)
    done = int(np.allclose(gradient[0].numpy(), pushes[1]))
    assert made.objective == pytest.approx(-100 * math.log(chances[done]))


def test_the_objective_is_a_mean_over_the_decisions(make_tree):
    tree = make_tree(lambda sequence: 0.5, decisions=2, actions=ONE["actions"])
    made, _ = once(Scores(*[(0.0, 0.0)] * 3), [tree], ORIGINAL)
    assert made.objective == pytest.approx(100 * math.log(2))


def test_a_temperature_flattens_what_is_drawn_from(make_tree):
    tree = make_tree(lambda sequence: 0.5, **ONE)
    made, _ = once(Scores((0.0, 1000.0)), [tree], ORIGINAL, temperature=1e6)
    assert made.entropy == pytest.approx(math.log(2), abs=1e-6)


def test_with_a_baseline_nothing_is_learned_where_all_episodes_are_equal(make_tree):
    tree = make_tree(lambda sequence: 0.5, **ONE)
    made, gradient = once(Scores((0.0, 1.0)), [tree], Method())
    assert made.reward == 0.0
    assert torch.all(gradient == 0)


def test_what_is_better_than_the_other_episodes_becomes_likelier(make_tree):
    """Of n episodes, k are the good one: its score gains n/(n−1) · 2·k/n·(1−k/n), two deviations apart."""
    tree = make_tree(lambda sequence: 0.3 if sequence == (0,) else 0.1, **ONE)
    method = Method(episodes_per_update=8)
    made, gradient = once(Scores((0.0, 0.0)), [tree], method)
    share = (made.reward + 1) / 2  # rewards are +1 and −1
    assert 0 < share < 1
    expected = 8 / 7 * 2 * share * (1 - share)
    assert -gradient[0].numpy() == pytest.approx([expected, -expected], abs=1e-6)


def test_not_being_sure_is_worth_its_entropy(make_tree):
    tree = make_tree(lambda sequence: 0.5, **ONE)
    sure = Scores((0.0, 2.0))
    _, gradient = once(sure, [tree], Method(), entropy=0.5)
    chances = torch.softmax(torch.tensor([0.0, 2.0]), 0)
    entropy = -(chances * chances.log()).sum()
    expected = -0.5 * (-chances * (chances.log() + entropy))  # −β·∂H/∂score
    assert gradient[0].numpy() == pytest.approx(expected.numpy(), abs=1e-6)
    assert gradient[0][1] > 0  # descending makes the likely one less likely


def test_probabilities_of_all_sequences_add_up_whatever_the_trees_are_like(make_tree):
    trees = [make_tree(), make_tree(**ONE), make_tree(decisions=2, actions=("deepen 1", "nothing"))]
    problems = [problem_of(tree) for tree in trees]
    rows = sum(len(problem.sights) for problem in problems)
    network = Scores(*torch.randn(rows, 4, generator=torch.Generator().manual_seed(1)).tolist())
    network.scores.data[21:, 2:] = -torch.inf  # the other trees have two actions
    tables = Tables.of(problems, network, Method())
    logs = tables.log_probabilities(network.scores)
    assert logs.exp().sum(1).tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert tables.there.sum(1).tolist() == [64, 2, 4]


def test_episodes_are_drawn_as_often_as_they_are_likely(make_tree):
    tree = make_tree(lambda sequence: 1.0 if sequence == (0,) else 0.0, **ONE)
    made, _ = once(Scores((math.log(0.3), math.log(0.7))), [tree], Method(episodes_per_update=100_000))
    assert made.accuracy == pytest.approx(0.3, abs=0.006)  # four deviations


def test_trees_of_different_sizes_learn_side_by_side(make_tree):
    """Each scenario counts the same; the gradient of a tree is that of the tree alone, shared by two."""
    small = make_tree(lambda sequence: 0.5, **ONE)
    network = Scores(*[(0.0, 1.0)] * 2)
    _, both = once(network, [small, small], Method(), entropy=1.0)
    _, alone = once(Scores((0.0, 1.0)), [small], Method(), entropy=1.0)
    assert both.numpy() == pytest.approx(np.vstack([alone, alone]) / 2)


@pytest.mark.parametrize(
    ("update_", "lr", "temperature"),
    [(0, 1e-4, 10.0), (499, 1e-4, 10.0), (500, 0.99e-4, 9.0), (1000, 0.9801e-4, 8.1), (50_000, 3.66e-5, 1.0)],
)
def test_the_originals_rates_fall_once_in_500_episodes(update_, lr, temperature):
    found = Pressure.at(ORIGINAL, update_, 75_000, 10.0)
    assert found.lr == pytest.approx(lr, rel=1e-3)
    assert found.temperature == pytest.approx(temperature)
    assert found.entropy == 0.0


def test_ours_fall_to_nothing_at_the_end_the_entropy_before():
    method = Method(lr=0.01, entropy=0.6)
    assert Pressure.at(method, 0, 100, 1.0) == Pressure(0.01, 0.6, 1.0)
    assert Pressure.at(method, 35, 100, 1.0).entropy == pytest.approx(0.3)
    assert Pressure.at(method, 70, 100, 1.0).entropy == pytest.approx(0.0)
    assert Pressure.at(method, 99, 100, 1.0).lr == pytest.approx(1e-4)


def test_a_perfect_accuracy_has_a_finite_reward(make_tree):
    tree = make_tree(lambda sequence: 1.0, **ONE)
    made, gradient = once(Scores((0.0, 0.0)), [tree], ORIGINAL)
    assert math.isfinite(made.reward)
    assert torch.isfinite(gradient).all()
