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
from rota.core.grouped import grouped
from rota.learning.config import Method
from rota.learning.problem import Places, Problem


def rewards_of(problem: Problem, method: Method) -> Floats:
    """Return the reward of each sequence."""
    accuracies = pooled(problem, method.pool) if method.pool else problem.accuracies
    return tangent(accuracies) if method.reward == "tan" else deviations(accuracies)


def tangent(accuracies: Floats) -> Floats:
    """Return the original's reward, 100·tan(accuracy·π/2), which values the last percent most."""
    rewards: Floats = np.nan_to_num(100 * np.tan(np.minimum(accuracies, 1 - 1e-6) * math.pi / 2))
    return rewards


def deviations(accuracies: Floats) -> Floats:
    """Return accuracies in standard deviations from their mean, so that all trees weigh the same."""
    known = accuracies[~np.isnan(accuracies)]
    if len(known) == 0 or np.ptp(known) == 0:  # the deviation of equal numbers may be a rounding error
        return np.zeros(len(accuracies))
    rewards: Floats = np.nan_to_num((accuracies - known.mean()) / known.std())
    return rewards


def pooled(problem: Problem, share: float) -> Floats:
    """Return accuracies moved towards the mean of all sequences with the same changes in any order."""
    known = np.flatnonzero(~np.isnan(problem.accuracies)).tolist()
    groups = grouped((tuple(sorted(problem.sequences[at])), at) for at in known)
    found = problem.accuracies.copy()
    for rows in groups.values():
        found[rows] += share * (found[rows].mean() - found[rows])
    return found


ENTROPY_UNTIL = 0.7
"""Share of a stage after which the entropy bonus is 0."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Several problems as padded tensors: a row per problem, a column per sequence."""

    seen: Any
    """All observations, encoded by the network."""
    owners: Places
    """Problem of each row of scores."""
    states: Tensor
    """Row of scores, by problem, sequence and decision."""
    steps: Tensor
    """Action, by problem, sequence and decision."""
    counts: Tensor
    """1, or 0 after the last decision, by problem, sequence and decision."""
    there: Tensor
    """Whether the sequence exists, by problem and sequence."""
    trained: Tensor
    """Whether the accuracy is known, by problem and sequence."""
    accuracies: Tensor
    rewards: Tensor

    @classmethod
    def of(cls, problems: Sequence[Problem], network: Any, method: Method) -> "Tables":
        """Return the tables of problems for an agent with this network."""
        first = np.cumsum([0, *(len(problem.observations) for problem in problems)])
        states = [problem.states + at for problem, at in zip(problems, first, strict=False)]
        rewards = [rewards_of(problem, method) for problem in problems]
        return cls(
            network.encode([observation for problem in problems for observation in problem.observations]),
            np.repeat(np.arange(len(problems)), [len(problem.observations) for problem in problems]),
            torch.from_numpy(_filled(states)),
            torch.from_numpy(_filled([problem.steps for problem in problems])),
            torch.from_numpy(_filled([np.ones(problem.steps.shape) for problem in problems])).float(),
            torch.from_numpy(_filled([np.ones(len(problem.sequences), bool) for problem in problems])),
            torch.from_numpy(_filled([~np.isnan(problem.accuracies) for problem in problems])),
            torch.from_numpy(_filled([np.nan_to_num(problem.accuracies) for problem in problems])),
            torch.from_numpy(_filled(rewards)).float(),
        )

    def moved(self, jitter: float, generator: torch.Generator) -> Any:
        """Return the encoded observations, each problem shifted in time at random."""
        if not jitter:
            return self.seen
        moves = jitter * torch.randn(len(self.rewards), generator=generator).numpy()
        return self.seen.at(self.seen.left + moves[self.owners])

    def log_probabilities(self, scores: Tensor) -> Tensor:
        """Return the log probability of each sequence; minus infinity where there is none."""
        steps = scores.log_softmax(-1)[self.states, self.steps]
        return (steps * self.counts).sum(-1).masked_fill(~self.there, -torch.inf)


class UpdateStatistics(NamedTuple):
    """Statistics of an update: means over all its episodes."""

    objective: float
    reward: float
    accuracy: float
    entropy: float


@dataclass(frozen=True, slots=True)
class EntropySchedule:
    """Learning rate, entropy weight and temperature of one update."""

    lr: float
    entropy: float
    temperature: float

    @classmethod
    def at(cls, method: Method, update: int, updates: int, temperature: float) -> "EntropySchedule":
        """Return the values for an update of a stage with `updates` updates and this initial temperature."""
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
    schedule: EntropySchedule,
    generator: torch.Generator,
) -> UpdateStatistics:
    """Draw episodes and make one update of a network."""
    for group in optimizer.param_groups:
        group["lr"] = schedule.lr
    scores = network(tables.moved(method.jitter, generator)) / schedule.temperature
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
    loss = objective - schedule.entropy * entropy / decisions.mean()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    reached = tables.accuracies.gather(1, drawn).mean()
    return UpdateStatistics(objective.item(), rewards.mean().item(), reached.item(), entropy.item())


def _advantages(rewards: Tensor, method: Method) -> Tensor:
    """Return rewards minus the mean of the *other* episodes, so that an episode does not weaken itself."""
    if not method.baseline:
        return rewards
    count = rewards.shape[1]
    return (rewards - rewards.mean(1, keepdim=True)) * (count / (count - 1))


def _filled(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return arrays as one, padded with zeros."""
    shape = [max(array.shape[axis] for array in arrays) for axis in range(arrays[0].ndim)]
    whole = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for row, array in zip(whole, arrays, strict=True):
        row[tuple(slice(size) for size in array.shape)] = array
    return whole
