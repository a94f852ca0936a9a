"""Episodes in simulation in which an agent draws decisions, and the gradients that it learns from."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rota.core.arrays import Singles
from rota.learning.placement.cases import STEP_S, CaseDistribution, PlacementCase
from rota.learning.placement.kernels import episode
from rota.policies.allocation.learned import ADVISED, FEATURES, LATE, Weights
from rota.simulator.noise import normals

EAGER, TRUST = 20.0, 1.5
"""Initial weights of two features. If all would be done 1 % later with an assignment, its log probability is
lower by a hundredth of the first; that of the one that a rule advises is higher by the second."""


class Scorer(nn.Module):
    """Three layers and a linear shortcut, applied to each candidate."""

    def __init__(self, hidden: int, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=()):
            torch.default_generator.manual_seed(seed)
            self.a = nn.Linear(FEATURES, hidden)
            self.b = nn.Linear(hidden, hidden)
            self.c = nn.Linear(hidden, 1)
            self.past = nn.Linear(FEATURES, 1, bias=False)
        with torch.no_grad():  # it begins by wanting to be done soon
            self.past.weight.zero_()
            self.past.weight[0, LATE] = -EAGER
            self.past.weight[0, ADVISED] = TRUST

    def forward(self, features: Tensor, allowed: Tensor) -> Tensor:
        """Return the log probability of each candidate at each decision."""
        scores = torch.full(allowed.shape, -torch.inf)
        seen = features[allowed]
        hidden = torch.relu(self.b(torch.relu(self.a(seen))))
        scores[allowed] = (self.c(hidden) + self.past(seen)).squeeze(-1)
        return scores.log_softmax(-1)

    @property
    def weights(self) -> Weights:
        """A copy of the present weights."""
        a, b, c = self.a, self.b, self.c
        values = (a.weight.T, a.bias, b.weight.T, b.bias, c.weight, c.bias, self.past.weight)
        return Weights(*(np.ascontiguousarray(each.detach().numpy()).copy() for each in values))


PARTS = 160
"""Number of intervals of a trial with noise of their own; later ones repeat it."""
MOST = 5.0
"""Largest gain or loss of an episode that counts, in percent."""


class PlacementEpisode(NamedTuple):
    """The drawn decisions of an episode, and its time ÷ lower bound."""

    features: Singles
    allowed: NDArray[np.bool_]
    chosen: NDArray[np.int64]
    decisions: int
    """Number of all decisions, drawn or not."""
    ratio: float


def play(case: PlacementCase, weights: Weights, seed: int = 0, share: float = 0.0) -> PlacementEpisode:
    """Simulate one episode in which a share of the decisions is drawn; the others are the best by score."""
    scene, trials = case.scene, len(case.scene.hypers)
    features, allowed, chosen, decisions, makespan_s, first_s = episode(
        np.array([slot.speed for slot in scene.cluster.slots]), (scene.terms.steps, scene.terms.interval),
        scene.costs.dispatch_s, STEP_S, scene.noise.noise, normals(scene.noise, trials, PARTS),
        np.array(case.good_at or (np.inf,) * trials), bool(case.good_at), weights, seed, share,
    )  # fmt: skip
    ratio = (first_s if case.good_at else makespan_s) / case.bound_s
    return PlacementEpisode(features, allowed, chosen, decisions, ratio)


@dataclass(frozen=True, slots=True)
class EvaluationCase:
    """A case, to evaluate the present parameters on."""

    cases: CaseDistribution
    hidden: int
    parameters: tuple[Singles, ...]
    """Parameters of the network."""
    seed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EpisodeGroup(EvaluationCase):
    """A case to learn from: several episodes with the same noise."""

    episodes: int
    drawn: float
    """Mean number of drawn decisions of an episode."""
    entropy: float


class Lesson(NamedTuple):
    """The gradient of a group of episodes: sums over the drawn decisions."""

    gradient: tuple[Singles, ...]
    entropy: float
    drawn: int
    decisions: int
    ratio: float
    """Time ÷ lower bound of the episode without drawn decisions."""


def learn_from(group: EpisodeGroup) -> Lesson:
    """Simulate a group of episodes, and return their gradient."""
    torch.set_num_threads(1)
    network = _network(group.hidden, group.parameters)
    random = np.random.default_rng(group.seed)
    case = group.cases.draw(random)
    best, episodes = simulated_group(case, network.weights, group, random)
    entropy = _backward(network, episodes, worth(best, episodes), group.entropy)
    gradient = tuple(each.grad.numpy() for each in network.parameters() if each.grad is not None)
    drawn = sum(len(episode.chosen) for episode in episodes)
    decisions = best.decisions + sum(episode.decisions for episode in episodes)
    return Lesson(gradient, entropy, drawn, decisions, best.ratio)


def simulated_group(
    case: PlacementCase, weights: Weights, group: EpisodeGroup, random: np.random.Generator
) -> tuple[PlacementEpisode, list[PlacementEpisode]]:
    """Return an episode without drawn decisions, and others in which a few are drawn."""
    best = play(case, weights)
    seeds = random.integers(2**32, size=group.episodes).tolist()
    return best, [play(case, weights, seed, group.drawn / best.decisions) for seed in seeds]


def tried(trial: EvaluationCase) -> float:
    """Return the time ÷ lower bound of a case if no decision is drawn."""
    network = _network(trial.hidden, trial.parameters)
    return play(trial.cases.draw(np.random.default_rng(trial.seed)), network.weights).ratio


def worth(best: PlacementEpisode, episodes: list[PlacementEpisode]) -> Singles:
    """Return the advantage of each drawn decision: how much sooner its episode ended than the others.

    It is in percent of the time of the episode without drawn decisions.
    """
    gained = np.clip([100.0 * (1.0 - each.ratio / best.ratio) for each in episodes], -MOST, MOST)
    others = (gained.sum() - gained) / (len(episodes) - 1)
    counts = [len(episode.chosen) for episode in episodes]
    return np.repeat(gained - others, counts).astype(np.float32)


def _network(hidden: int, parameters: tuple[Singles, ...]) -> Scorer:
    network = Scorer(hidden, seed=0)
    with torch.no_grad():
        for own, given in zip(network.parameters(), parameters, strict=True):
            own.copy_(torch.from_numpy(given))
    return network


def _backward(network: Scorer, episodes: list[PlacementEpisode], values: Singles, weight: float) -> float:
    """Add up the gradients over decisions; returns the sum of their entropies."""
    features = torch.from_numpy(np.concatenate([episode.features for episode in episodes]))
    allowed = torch.from_numpy(np.concatenate([episode.allowed for episode in episodes]))
    chosen = torch.from_numpy(np.concatenate([episode.chosen for episode in episodes]))
    logs = network(features, allowed)
    made = logs.gather(1, chosen.unsqueeze(1)).squeeze(1)
    entropy = -(logs.exp() * logs.masked_fill(~allowed, 0.0)).sum()
    loss = -(torch.from_numpy(values) * made).sum() - weight * entropy
    loss.backward()
    return float(entropy.item())
