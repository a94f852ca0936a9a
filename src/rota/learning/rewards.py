"""What the sequences of a tree are worth. NaN, what was never trained, is worth nothing and never drawn."""

import math

import numpy as np

from rota.core.arrays import Floats
from rota.learning.config import Method
from rota.learning.problem import Problem
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
