"""REINFORCE on tables: rewards of sequences, and one update of an agent."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.learning.config import Method
from rota.learning.problem import Places, Problem
from rota.recordings.tree import Prefix


def rewards_of(problem: Problem, method: Method) -> Floats:
    """Of each sequence."""
    accuracies = pooled(problem, method.pool) if method.pool else problem.accuracies
    return tangent(accuracies) if method.reward == "tan" else deviations(accuracies)


def tangent(accuracies: Floats) -> Floats:
    """The original's: 100·tan(accuracy·π/2), which values the last percent most."""
    rewards: Floats = np.nan_to_num(100 * np.tan(np.minimum(accuracies, 1 - 1e-6) * math.pi / 2))
    return rewards


def deviations(accuracies: Floats) -> Floats:
    """From the mean, in standard deviations, so that no tree weighs more than another."""
    known = accuracies[~np.isnan(accuracies)]
    if len(known) == 0 or np.ptp(known) == 0:  # the deviation of equal numbers may be a rounding error
        return np.zeros(len(accuracies))
    rewards: Floats = np.nan_to_num((accuracies - known.mean()) / known.std())
    return rewards


def pooled(problem: Problem, share: float) -> Floats:
    """Accuracies, drawn towards the mean of the sequences with the same changes in any order."""
    groups: dict[Prefix, list[int]] = {}
    for at, sequence in enumerate(problem.sequences):
        if not np.isnan(problem.accuracies[at]):
            groups.setdefault(tuple(sorted(sequence)), []).append(at)
    found = problem.accuracies.copy()
    for rows in groups.values():
        found[rows] += share * (found[rows].mean() - found[rows])
    return found


ENTROPY_UNTIL = 0.7
"""The share of a stage after which not being sure is worth nothing any more."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Some problems in one: row per problem, column per sequence. Shorter ones are filled up."""

    seen: Any
    """What the network makes of all sights."""
    owners: Places
    """Row of the scores → problem."""
    states: Tensor
    """Problem, sequence, decision → row of the scores."""
    steps: Tensor
    """Problem, sequence, decision → action."""
    counts: Tensor
    """Problem, sequence, decision → 1, or 0 behind the last decision."""
    there: Tensor
    """Problem, sequence → whether there is one."""
    trained: Tensor
    """Problem, sequence → whether it is known what it leads to."""
    accuracies: Tensor
    rewards: Tensor

    @classmethod
    def of(cls, problems: Sequence[Problem], network: Any, method: Method) -> "Tables":
        """What an agent with this network learns from."""
        first = np.cumsum([0, *(len(problem.sights) for problem in problems)])
        states = [problem.states + at for problem, at in zip(problems, first, strict=False)]
        rewards = [rewards_of(problem, method) for problem in problems]
        return cls(
            network.encode([sight for problem in problems for sight in problem.sights]),
            np.repeat(np.arange(len(problems)), [len(problem.sights) for problem in problems]),
            torch.from_numpy(_filled(states)),
            torch.from_numpy(_filled([problem.steps for problem in problems])),
            torch.from_numpy(_filled([np.ones(problem.steps.shape) for problem in problems])).float(),
            torch.from_numpy(_filled([np.ones(len(problem.sequences), bool) for problem in problems])),
            torch.from_numpy(_filled([~np.isnan(problem.accuracies) for problem in problems])),
            torch.from_numpy(_filled([np.nan_to_num(problem.accuracies) for problem in problems])),
            torch.from_numpy(_filled(rewards)).float(),
        )

    def moved(self, jitter: float, generator: torch.Generator) -> Any:
        """What is seen when each problem is moved in time at random, all its decisions by the same."""
        if not jitter:
            return self.seen
        moves = jitter * torch.randn(len(self.rewards), generator=generator).numpy()
        return self.seen.at(self.seen.left + moves[self.owners])

    def log_probabilities(self, scores: Tensor) -> Tensor:
        """Problem, sequence → logarithm of its probability."""
        steps = scores.log_softmax(-1)[self.states, self.steps]
        return (steps * self.counts).sum(-1).masked_fill(~self.there, -torch.inf)


class UpdateStatistics(NamedTuple):
    """What an update came to; means over all episodes."""

    objective: float
    reward: float
    accuracy: float
    entropy: float


@dataclass(frozen=True, slots=True)
class EntropySchedule:
    """What changes from update to update."""

    lr: float
    entropy: float
    temperature: float

    @classmethod
    def at(cls, method: Method, update: int, updates: int, temperature: float) -> "EntropySchedule":
        """In an update of a stage of so many, which began with that temperature."""
        share = update / updates
        episodes = update * method.episodes_per_update
        decayed = method.lr_decay ** (episodes // method.decay_every)
        lr = method.lr * (1 - share if method.lr_falls == "linear" else decayed)
        cooled = method.temperature_decay ** (episodes // method.temperature_every)
        entropy = method.entropy * max(0.0, 1 - share / ENTROPY_UNTIL)
        return cls(lr, entropy, max(1.0, temperature * cooled))


def update(
    network: nn.Module,
    tables: Tables,
    optimizer: torch.optim.Optimizer,
    method: Method,
    pressure: EntropySchedule,
    generator: torch.Generator,
) -> UpdateStatistics:
    """Draw episodes and learn from them."""
    for group in optimizer.param_groups:
        group["lr"] = pressure.lr
    scores = network(tables.moved(method.jitter, generator)) / pressure.temperature
    logs = tables.log_probabilities(scores)
    chances = logs.exp()
    if not torch.isfinite(chances).all():
        raise InputError(f"the agent's scores are no longer numbers; learn with an lr below {method.lr:g}")
    drawn = torch.multinomial(
        chances.detach() * tables.trained, method.episodes_per_update, replacement=True, generator=generator
    )
    rewards = tables.rewards.gather(1, drawn)
    decisions = tables.counts.sum(-1).gather(1, drawn)
    per_step = logs.gather(1, drawn) / decisions
    objective = -(_advantages(rewards, method) * per_step).mean()
    entropy = -(chances * logs.masked_fill(~tables.there, 0.0)).sum(-1).mean()
    optimizer.zero_grad()
    loss = objective - pressure.entropy * entropy / decisions.mean()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    reached = tables.accuracies.gather(1, drawn).mean()
    return UpdateStatistics(objective.item(), rewards.mean().item(), reached.item(), entropy.item())


def _advantages(rewards: Tensor, method: Method) -> Tensor:
    """Reward above the mean of the *other* episodes, so that an episode does not weaken itself."""
    if not method.baseline:
        return rewards
    count = rewards.shape[1]
    return (rewards - rewards.mean(1, keepdim=True)) * (count / (count - 1))


def _filled(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """One array of all, with zeros where some are smaller than others."""
    shape = [max(array.shape[axis] for array in arrays) for axis in range(arrays[0].ndim)]
    whole = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for row, array in zip(whole, arrays, strict=True):
        row[tuple(slice(size) for size in array.shape)] = array
    return whole
