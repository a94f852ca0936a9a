"""Reinforcement learning on CartPole: A2C and DQN, with their replay memory and target network."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.envs.classic_control import CartPoleEnv
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import mse_loss, smooth_l1_loss

from rota.core.errors import ConfigError, unknown
from rota.training.data.images import chance
from rota.training.task import Batch, Task, evaluating
from rota.training.tasks import GAMES, check_batch

OBSERVATION: tuple[int, ...] = (4,)
ACTIONS = 2
LIMIT = 500
"""Steps after which an episode of CartPole-v1 ends."""
EPISODES = 8
"""Number of episodes that evaluate a network."""
SPLITS = ("train", "validation", "test")


class GameStep(NamedTuple):
    """The outcome of one step in every game; the reward of each step is 1."""

    observations: Tensor
    """Observations after the step, before a new episode starts."""
    fell: Tensor
    """Whether the episode ended because the pole fell or the cart left; its value is then 0."""
    over: Tensor
    """Whether the episode ended, also by the limit."""


class CartPoles:
    """Games that start a new episode when one is over.

    Each episode has its own seed, so a physical state and two counts describe a game.
    """

    def __init__(self, games: int, seed: tuple[int, ...]) -> None:
        self._games = [CartPoleEnv() for _ in range(games)]
        self._seed = seed
        self._episodes = [0] * games
        self._steps = [0] * games
        for index in range(games):
            self._start(index, 0)

    @property
    def observations(self) -> Tensor:
        """The current observations, one row per game."""
        return self._states().float()

    def step(self, actions: list[int]) -> GameStep:
        """Act in every game."""
        seen, fell = [], []
        for game, action in zip(self._games, actions, strict=True):
            observation, _, terminated, _, _ = game.step(action)  # type: ignore[no-untyped-call]
            seen.append(observation)
            fell.append(terminated)
        self._steps = [steps + 1 for steps in self._steps]
        over = [end or steps >= LIMIT for end, steps in zip(fell, self._steps, strict=True)]
        for index in np.flatnonzero(over).tolist():
            self._start(index, self._episodes[index] + 1)
        return GameStep(torch.from_numpy(np.stack(seen)), torch.tensor(fell), torch.tensor(over))

    def state_dict(self) -> dict[str, Any]:
        return {"states": self._states(), "episodes": list(self._episodes), "steps": list(self._steps)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for index, game in enumerate(self._games):
            self._start(index, state["episodes"][index])
            game.state = state["states"][index].cpu().numpy().copy()
        self._steps = list(state["steps"])

    def _start(self, index: int, episode: int) -> None:
        seed = np.random.SeedSequence((*self._seed, index, episode)).generate_state(1)
        self._games[index].reset(seed=int(seed[0]))
        self._episodes[index], self._steps[index] = episode, 0

    def _states(self) -> Tensor:
        states: NDArray[np.float64] = np.stack([np.asarray(game.state) for game in self._games])
        return torch.from_numpy(states)


def mean_return(act: Callable[[Tensor], list[int]], seed: int, split: str) -> float:
    """Return the mean return of `act` over a few episodes; each split has its own fixed ones."""
    if split not in SPLITS:
        raise ConfigError(unknown("split", split, SPLITS))
    games = CartPoles(EPISODES, (seed, 1 + SPLITS.index(split)))
    returns = torch.zeros(EPISODES)
    playing = torch.ones(EPISODES, dtype=torch.bool)
    while playing.any():
        returns += playing
        playing &= ~games.step(act(games.observations)).over
    return returns.mean().item()


FIELDS = {"before": torch.float32, "action": torch.int64, "after": torch.float32, "fell": torch.bool}


class ReplayMemory:
    """The latest transitions, as columns on the CPU; the newest replace the oldest."""

    def __init__(self, capacity: int, observation: tuple[int, ...]) -> None:
        shapes = {"before": observation, "action": (), "after": observation, "fell": ()}
        self._columns = {
            name: torch.zeros(capacity, *shapes[name], dtype=kind) for name, kind in FIELDS.items()
        }
        self._capacity = capacity
        self._added = 0

    def __len__(self) -> int:
        return min(self._added, self._capacity)

    def add(self, **transitions: Tensor) -> None:
        """Add rows of every field, at most as many as the capacity."""
        rows = len(transitions["action"])
        places = (self._added + torch.arange(rows)) % self._capacity
        for name, column in self._columns.items():
            column[places] = transitions[name]
        self._added += rows

    def rows(self, indices: Tensor, device: torch.device) -> dict[str, Tensor]:
        """Return the fields of some transitions, on a device."""
        return {name: column[indices].to(device) for name, column in self._columns.items()}

    def state_dict(self) -> dict[str, Any]:
        columns = {name: column[: len(self)].clone() for name, column in self._columns.items()}
        return {"added": self._added, "columns": columns}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._added = state["added"]
        for name, column in self._columns.items():
            column[: len(self)] = state["columns"][name]


class Target:
    """A target network, renewed after so many examples, and at once when the network's structure changes."""

    def __init__(self, held: int) -> None:
        self._held = held
        self._period = -1
        self._weights: dict[str, Tensor] = {}
        self._copy: nn.Module | None = None

    def of(self, network: nn.Module, position: int) -> nn.Module:
        """Return the target network at this position."""
        now = network.state_dict()
        if position // self._held != self._period or not _alike(now, self._weights):
            self._period = position // self._held
            self._weights = {name: weight.detach().clone() for name, weight in now.items()}
            self._copy = None
        if self._copy is None:
            self._copy = deepcopy(network).eval()
            self._copy.load_state_dict(self._weights)
        return self._copy

    def state_dict(self) -> dict[str, Any]:
        weights = {name: weight.clone() for name, weight in self._weights.items()}
        return {"period": self._period, "weights": weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._period, self._weights, self._copy = state["period"], state["weights"], None


def _alike(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    if one.keys() != other.keys():
        return False
    return all(weight.shape == other[name].shape for name, weight in one.items())


DISCOUNT = 0.99
REWARD = 1 - DISCOUNT
EXAMPLES = 4096
"""Number of examples that count as one pass."""


class Played(NamedTuple):
    """Actions, their returns, and their advantages."""

    actions: Tensor
    returns: Tensor
    advantages: Tensor


class CartPoleTask(Task):
    """A task of playing CartPole: what a network does is its data."""

    inputs, outputs, metric, examples = OBSERVATION, ACTIONS, "return", EXAMPLES

    def __init__(self, *, device: torch.device, seed: int = 0) -> None:
        self._device = device
        self._seed = seed
        self._games = CartPoles(GAMES, (seed, 0))

    def evaluate(self, network: nn.Module, split: str = "validation") -> dict[str, float]:
        """Return the mean return of always taking the best action."""
        with evaluating(network):
            return {self.metric: mean_return(lambda seen: self._best(network, seen), self._seed, split)}

    def state_dict(self) -> dict[str, Any]:
        return {"games": self._games.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._games.load_state_dict(state["games"])

    def _best(self, network: nn.Module, seen: Tensor) -> list[int]:
        """Return the action of the highest value, or the likeliest one, in each game."""
        found = network(seen.to(self._device))
        best: list[int] = (found[0] if isinstance(found, tuple) else found).argmax(1).tolist()
        return best


class A2C(CartPoleTask):
    """Advantage actor-critic: a batch is what the network did just now, in a few games side by side."""

    trace = 0.95
    """λ of the generalised advantage estimate."""
    value_weight = 0.5
    entropy_weight = 0.01

    def batch(self, network: nn.Module, position: int, size: int) -> Batch:
        """Play `size` steps altogether."""
        check_batch("a2c", size)
        drawn_from = chance(self._seed, position).random((size // GAMES, GAMES))
        with evaluating(network):
            steps = [self._play(network, torch.from_numpy(row)) for row in drawn_from]
            before, actions, after, fell, over = (torch.cat(column) for column in zip(*steps, strict=True))
            values = network(before.to(self._device))[1].cpu()
            following = network(after.to(self._device))[1].cpu()
        shape = (-1, GAMES)
        rows = (column.view(shape) for column in (values, following, fell, over))
        gained = advantages(*rows, trace=self.trace).flatten()
        played = Played(*(column.to(self._device) for column in (actions, values + gained, gained)))
        return Batch(before.to(self._device), played)

    def loss(self, outputs: Any, batch: Batch) -> Tensor:
        """Return the sum of policy loss, value loss and negative entropy."""
        logits, values = outputs
        played: Played = batch.targets
        logs = logits.log_softmax(1)
        taken = logs.gather(1, played.actions[:, None]).squeeze(1)
        # The floor: once the pole stays up, what is left is noise, and is not to be blown up.
        spread = played.advantages.std(correction=0).clamp(min=0.2)
        policy = -(taken * (played.advantages - played.advantages.mean()) / spread).mean()
        entropy = -(logs.exp() * logs).sum(1).mean()
        value = mse_loss(values, played.returns)
        total: Tensor = policy + self.value_weight * value - self.entropy_weight * entropy
        return total

    def _play(self, network: nn.Module, chance: Tensor) -> tuple[Tensor, ...]:
        before = self._games.observations
        actions = drawn(network(before.to(self._device))[0].cpu(), chance)
        return before, actions, *self._games.step(actions.tolist())


class DQN(CartPoleTask):
    """Double Q-learning: a batch is drawn from a replay memory, after playing a little more.

    Values come from a target network, for the action that the network itself prefers.
    """

    capacity = 20_000
    warm_up = 64
    """Rounds of all games with random actions at first."""
    reuse = 64
    """Number of examples taken per round of all games."""
    exploring = 20_000
    """Number of examples over which the share of random actions falls from 1 to `explored`."""
    explored = 0.05
    held = 2_048
    """Number of examples after which the target network is renewed."""

    def __init__(self, *, device: torch.device, seed: int = 0) -> None:
        super().__init__(device=device, seed=seed)
        self._replay = ReplayMemory(self.capacity, OBSERVATION)
        self._target = Target(self.held)

    def batch(self, network: nn.Module, position: int, size: int) -> Batch:
        """Play the rounds that are due, then draw `size` transitions."""
        random = chance(self._seed, position)
        target = self._target.of(network, position)
        with evaluating(network):
            self._play(network, position, size, random)
            indices = torch.from_numpy(random.integers(len(self._replay), size=size))
            rows = self._replay.rows(indices, self._device)
            chosen = network(rows["after"]).argmax(1, keepdim=True)
            following = target(rows["after"]).gather(1, chosen).squeeze(1)
        values = REWARD + DISCOUNT * following * ~rows["fell"]
        return Batch(rows["before"], (rows["action"], values))

    def loss(self, outputs: Any, batch: Batch) -> Tensor:
        """Return the distance of the actions' values from their targets."""
        actions, values = batch.targets
        return smooth_l1_loss(outputs.gather(1, actions[:, None]).squeeze(1), values)

    def state_dict(self) -> dict[str, Any]:
        more = {"replay": self._replay.state_dict(), "target": self._target.state_dict()}
        return super().state_dict() | more

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._replay.load_state_dict(state["replay"])
        self._target.load_state_dict(state["target"])

    def _play(self, network: nn.Module, position: int, size: int, random: np.random.Generator) -> None:
        rounds = (position + size) // self.reuse - position // self.reuse
        randomness = 1 - (1 - self.explored) * min(1.0, position / self.exploring)
        if not len(self._replay):
            rounds, randomness = self.warm_up, 1.0
        for _ in range(rounds):
            before = self._games.observations
            anything = random.integers(ACTIONS, size=GAMES)
            explores = random.random(GAMES) < randomness
            actions = np.where(explores, anything, self._best(network, before))
            moved = self._games.step(actions.tolist())
            after, fell = moved.observations, moved.fell
            self._replay.add(before=before, action=torch.from_numpy(actions), after=after, fell=fell)


def drawn(logits: Tensor, chance: Tensor) -> Tensor:
    """Return an action per row of logits, by one number from [0, 1) each; also for NaN."""
    reached = logits.double().softmax(1).cumsum(1) <= chance[:, None]
    return reached.sum(1).clamp(max=logits.shape[1] - 1)


def advantages(values: Tensor, following: Tensor, fell: Tensor, over: Tensor, *, trace: float) -> Tensor:
    """Return the generalised advantage estimate of each step (rows) in each game (columns).

    `values` were estimated before a step and `following` after it. The value after a fall is 0. An episode
    that ended by the limit would have gone on, but the next episode does not count for it.
    """
    surprises = REWARD + DISCOUNT * following * ~fell - values
    gained = torch.empty_like(surprises)
    carried = torch.zeros_like(surprises[0])
    for step in reversed(range(len(surprises))):
        carried = surprises[step] + DISCOUNT * trace * carried * ~over[step]
        gained[step] = carried
    return gained
