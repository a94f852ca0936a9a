"""Gymnasium's CartPole, several games side by side, which can be stopped and gone on with exactly."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.envs.classic_control import CartPoleEnv
from numpy.typing import NDArray
from torch import Tensor

from rota.core.errors import ConfigError, unknown

OBSERVATION: tuple[int, ...] = (4,)
ACTIONS = 2
LIMIT = 500
"""After so many steps an episode of CartPole-v1 is cut off."""
EPISODES = 8
"""So many are played to see how well a network does."""
SPLITS = ("train", "validation", "test")


class Moved(NamedTuple):
    """What one step in every game led to; each step is worth 1."""

    observations: Tensor
    """What is seen after the step, and before a new episode starts."""
    fell: Tensor
    """The episode is over because the pole fell or the cart left: there is nothing to gain after it."""
    over: Tensor
    """The episode is over, for this reason or because of the limit."""


class CartPoles:
    """Games in which a new episode starts when one is over.

    Each episode has its own seed, so a game is at any time described by its physical state and two counts.
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
        """What is seen now, one row per game."""
        return self._states().float()

    def step(self, actions: list[int]) -> Moved:
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
        return Moved(torch.from_numpy(np.stack(seen)), torch.tensor(fell), torch.tensor(over))

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
    """The mean return of `act` over a few episodes; each split has its own, always the same ones."""
    if split not in SPLITS:
        raise ConfigError(unknown("split", split, SPLITS))
    games = CartPoles(EPISODES, (seed, 1 + SPLITS.index(split)))
    returns = torch.zeros(EPISODES)
    playing = torch.ones(EPISODES, dtype=torch.bool)
    while playing.any():
        returns += playing
        playing &= ~games.step(act(games.observations)).over
    return returns.mean().item()
