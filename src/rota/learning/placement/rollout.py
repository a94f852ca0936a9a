"""Episodes in simulation in which an agent draws decisions, and the gradients that it learns from."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rota.core.arrays import Singles
from rota.core.population.engine import PopulationEngine
from rota.core.population.policies import CompiledAllocation
from rota.learning.placement.cases import GOOD, CaseDistribution, PlacementCase
from rota.policies.allocation.finish import CANDIDATES
from rota.policies.allocation.learned import ADVISED, FEATURES, LATE, Weights, form_of, seed_draws
from rota.simulator.population import engine_for

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


class DrawnDecisions:
    """The decisions of an episode that were drawn at random."""

    def __init__(self, room: int = 64) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}
        self._make(room)

    def _make(self, room: int) -> None:
        shapes = {"features": (CANDIDATES, FEATURES), "allowed": (CANDIDATES,), "chosen": ()}
        types = np.float32, np.bool_, np.int64
        for (name, shape), dtype in zip(shapes.items(), types, strict=True):
            new: NDArray[Any] = np.zeros((room, *shape), dtype)
            old = self._arrays.get(name)
            if old is not None:
                new[: len(old)] = old
            self._arrays[name] = new
        self._room = room

    def form(self, weights: Weights, share: float) -> CompiledAllocation:
        """Return an agent of which a share of the decisions is drawn, and kept here."""
        form = form_of(weights)
        numbers = {**form.numbers, "draw_room": self._room, "share": share}
        return replace(form, prepare=self._grow, arrays={**form.arrays, **self._arrays}, numbers=numbers)

    def _grow(self, engine: PopulationEngine) -> None:
        self._make(2 * self._room)
        engine.put(**self._arrays)
        engine.write(draw_room=self._room)

    def of(self, engine: PopulationEngine, ratio: float) -> PlacementEpisode:
        """Return the episode that an engine has simulated."""
        drawn = engine.numbers["drawn"].item()
        features, allowed, chosen = (self._arrays[name][:drawn] for name in ("features", "allowed", "chosen"))
        return PlacementEpisode(features, allowed, chosen, engine.numbers["asked"].item(), ratio)


def play(case: PlacementCase, weights: Weights, seed: int = 0, share: float = 0.0) -> PlacementEpisode:
    """Simulate one episode in which a share of the decisions is drawn; the others are the best by score."""
    engine, drawn = engine_for(case.scene, case.landscape()), DrawnDecisions()
    engine.write(reviews=False, keeps_timeline=False, enough=GOOD)
    engine.use(drawn.form(weights, share))
    seed_draws(seed)
    engine.advance()
    return drawn.of(engine, engine.now_s / case.bound_s)


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
