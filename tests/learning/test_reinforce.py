"""An update of an agent, worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from rota.learning.agent import Agent
from rota.learning.config import ORIGINAL, Method
from rota.learning.problem import problem_of
from rota.learning.reinforce import EntropySchedule, Tables, update

ONE = {"decisions": 1, "actions": ("deepen 0", "nothing")}


class Scores(nn.Module):
    """A network whose weights are the scores themselves."""

    def __init__(self, *rows: tuple[float, ...]) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.tensor(rows))

    def encode(self, observations):
        return len(observations)

    def forward(self, seen):
        return self.scores


def once(network: nn.Module, trees, method: Method, *, entropy: float = 0.0, temperature: float = 1.0):
    """One update with plain gradient descent at a rate of 1; what it came to, and the gradient."""
    tables = Tables.of([problem_of(tree) for tree in trees], network, method)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
    schedule = EntropySchedule(lr=1.0, entropy=entropy, temperature=temperature)
    made = update(network, tables, optimizer, method, schedule, torch.Generator().manual_seed(0))
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
    rows = sum(len(problem.observations) for problem in problems)
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


def test_pooling_shares_among_those_that_do_the_same_in_another_order(make_tree):
    """0-1 and 1-0 have 0.4 and 0.8: their mean is 0.6, and half of the way there are 0.5 and 0.7."""
    accuracies = {(0, 0): 0.0, (0, 1): 0.4, (1, 0): 0.8, (1, 1): 0.2}
    tree = make_tree(accuracies.__getitem__, decisions=2, actions=ONE["actions"])
    pooled = np.array([0.0, 0.5, 0.7, 0.2])
    tables = Tables.of([problem_of(tree)], Scores(*[(0.0, 0.0)] * 3), Method(pool=0.5))
    assert tables.rewards[0].numpy() == pytest.approx((pooled - pooled.mean()) / pooled.std(), abs=1e-6)
    assert tables.accuracies[0].tolist() == list(accuracies.values())  # what is told is what was recorded


@pytest.mark.parametrize(("network", "options"), [("structural", {}), ("original", {"actions": 4})])
def test_jitter_moves_each_scenario_as_a_whole(make_tree, network, options):
    problems = [problem_of(make_tree()), problem_of(make_tree(start_s=300.0))]
    tables = Tables.of(problems, Agent.new(network, options, 0).network, Method())
    generator = torch.Generator().manual_seed(0)
    assert tables.moved(0.0, generator) is tables.seen
    moved = tables.moved(0.1, generator)
    moves = moved.left - tables.seen.left
    assert moves[:21] == pytest.approx(moves[0])
    assert moves[21:] == pytest.approx(moves[21])
    assert 0 < abs(moves[0] - moves[21]) < 1
    expected = [
        replace(observation, left_s=observation.left_s + 400 * move)
        for observation, move in zip(observations(problems), moves, strict=True)
    ]
    again = Tables.of(
        [replace_observations(p, expected[21 * at :][:21]) for at, p in enumerate(problems)],
        Agent.new(network, options, 0).network,
        Method(),
    )
    assert torch.allclose(moved.time, again.seen.time, atol=1e-5)


def observations(problems):
    return [observation for problem in problems for observation in problem.observations]


def replace_observations(problem, observations):
    return replace(problem, observations=tuple(observations))


def test_what_was_never_trained_is_never_drawn(make_tree):
    tree = make_tree(decisions=1, actions=ONE["actions"])
    known = {made: points for made, points in tree.curves.items() if made != (1,)}
    problem = problem_of(replace(tree, curves=known), partial=True)
    assert np.isnan(problem.accuracies[1])
    assert problem.trained.sequences == ((0,),)
    network = Scores((0.0, 50.0))
    tables = Tables.of([problem], network, Method())
    made = update(
        network,
        tables,
        torch.optim.SGD(network.parameters(), lr=0.0),
        Method(),
        EntropySchedule(0.0, 0.0, 1.0),
        torch.Generator().manual_seed(0),
    )
    assert made.accuracy == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("update_", "lr", "temperature"),
    [
        (0, 1e-4, 10.0),
        (49, 1e-4, 10.0),
        (50, 1e-4, 9.0),
        (499, 1e-4, 10 * 0.9**9),
        (500, 0.99e-4, 10 * 0.9**10),
    ],
)
def test_the_originals_rate_falls_once_in_500_episodes_the_temperature_once_in_50(update_, lr, temperature):
    assert EntropySchedule.at(ORIGINAL, 3_300, 75_000, 1000.0).temperature == 1.0
    found = EntropySchedule.at(ORIGINAL, update_, 75_000, 10.0)
    assert found.lr == pytest.approx(lr, rel=1e-3)
    assert found.temperature == pytest.approx(temperature)
    assert found.entropy == 0.0


def test_ours_fall_to_nothing_at_the_end_the_entropy_before():
    method = Method(lr=0.01, entropy=0.6)
    assert EntropySchedule.at(method, 0, 100, 1.0) == EntropySchedule(0.01, 0.6, 1.0)
    assert EntropySchedule.at(method, 35, 100, 1.0).entropy == pytest.approx(0.3)
    assert EntropySchedule.at(method, 70, 100, 1.0).entropy == pytest.approx(0.0)
    assert EntropySchedule.at(method, 99, 100, 1.0).lr == pytest.approx(1e-4)


def test_a_perfect_accuracy_has_a_finite_reward(make_tree):
    tree = make_tree(lambda sequence: 1.0, **ONE)
    made, gradient = once(Scores((0.0, 0.0)), [tree], ORIGINAL)
    assert math.isfinite(made.reward)
    assert torch.isfinite(gradient).all()
