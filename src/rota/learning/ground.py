"""What the environment makes of a recorded tree, worked out once: what is seen in it, what it is worth."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.sight import Sight
from rota.learning import features
from rota.learning.evaluate import outcome
from rota.learning.problem import Problem
from rota.learning.rewards import deviations
from rota.recordings.tree import Prefix

LIMIT = 100.0
"""Larger numbers are cut off; those of a network with a thousand layers would be."""

Observation = NDArray[np.float32]
Reward = Literal["accuracy", "standard"]


@dataclass(frozen=True, slots=True)
class Ground:
    """What an episode in a tree can come to, worked out once."""

    problem: Problem
    name: str
    """Beside the others: `convnet2-digits/early` if some are of other data."""
    seen: Mapping[Prefix, Observation]
    """By what was done before."""
    rewards: Mapping[Prefix, float]
    """Of whole sequences."""

    @classmethod
    def of(cls, problem: Problem, name: str, width: int, reward: Reward) -> "Ground":
        """In an environment with so many actions."""
        values = deviations(problem.accuracies) if reward == "standard" else problem.accuracies
        return cls(
            problem,
            name,
            {sight.made: observed(sight, width) for sight in problem.sights},
            dict(zip(problem.sequences, values.tolist(), strict=True)),
        )

    @property
    def label(self) -> str:
        """`convnet2/early seed 1`."""
        return f"{self.name} seed {self.problem.tree.seed}"

    @property
    def names(self) -> tuple[str, ...]:
        """What it may be called; others may be, too."""
        return self.problem.name, self.problem.label, self.name, self.label

    @property
    def actions(self) -> int:
        """How many there are."""
        return len(self.problem.tree.actions)

    @property
    def nothing(self) -> int:
        """The action that changes nothing."""
        return self.problem.tree.never[0]

    def told(self, sequence: Prefix) -> dict[str, Any]:
        """What there is to say about a sequence."""
        found = outcome(self.problem, sequence)
        return {name: getattr(found, name) for name in ("sequence", "accuracy", "rank", "headroom")}


def observed(sight: Sight, width: int) -> Observation:
    """A sight as one row of numbers, with room for so many actions."""
    actions = np.zeros((width, features.ACTION))
    actions[: len(sight.actions)] = features.actions(sight)
    row: Floats = np.concatenate([features.time(sight.left), features.network(sight), actions.ravel()])
    row = np.clip(row, -LIMIT, LIMIT)
    return row.astype(np.float32)


def size(width: int) -> int:
    """How many numbers that are."""
    return features.TIME + features.NETWORK + width * features.ACTION
