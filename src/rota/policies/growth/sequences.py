"""Growth policies that follow one fixed sequence of actions, or none."""

from collections.abc import Sequence
from dataclasses import dataclass

from rota.core.network import NOTHING, Observation


@dataclass(frozen=True)
class Never:
    """A policy that never changes a network: the baseline of all others."""

    def probabilities(self, observation: Observation) -> list[float]:
        return [float(change == NOTHING) for change in observation.actions]


@dataclass(frozen=True)
class Fixed:
    """A fixed sequence of positions in the actions; the last one repeats."""

    sequence: Sequence[int]

    def probabilities(self, observation: Observation) -> list[float]:
        step = self.sequence[min(len(observation.made), len(self.sequence) - 1)]
        return [float(action == step) for action in range(len(observation.actions))]
