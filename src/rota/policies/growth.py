"""Growth policies without an agent: never, and one fixed sequence."""

from collections.abc import Sequence
from dataclasses import dataclass

from rota.core.network import NOTHING, Observation


class Never:
    """Nothing, always: what any adaptation must beat."""

    def probabilities(self, sight: Observation) -> list[float]:
        return [float(change == NOTHING) for change in sight.actions]


@dataclass(frozen=True)
class Fixed:
    """The same sequence each time, as positions in the actions; the last action again where it is over."""

    sequence: Sequence[int]

    def probabilities(self, sight: Observation) -> list[float]:
        step = self.sequence[min(len(sight.made), len(self.sequence) - 1)]
        return [float(action == step) for action in range(len(sight.actions))]
