"""What there is to see when it is decided how a network changes: the network, and the time it has left."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rota.core.change import Change
from rota.core.structure import Structure

BUDGET_S = 60.0
"""Of a resident that says nothing about it."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A training run at a decision, as an adaptation policy sees it."""

    structure: Structure
    """The network as it is now."""
    blocks: tuple[tuple[int, ...], ...]
    """The layers that each block consists of, as positions in the structure."""
    left_s: float
    """Until the budget is over."""
    budget_s: float
    """All the time there is, from the start of training."""
    actions: tuple[Change, ...]
    """What may be done."""
    made: tuple[int, ...] = ()
    """What was decided before in this run, also where it has been taken back, as positions in `actions`."""

    @property
    def left(self) -> float:
        """The time left, as a share of the budget."""
        return self.left_s / self.budget_s


class Adaptation(Protocol):
    """How should this network change now? Reads the sight, changes nothing."""

    def probabilities(self, sight: Sight) -> Sequence[float]:
        """How likely each of the sight's actions is to be the right one; they add up to 1.

        Whoever has to act takes the likeliest; whoever learns draws one.
        """


def likeliest(probabilities: Sequence[float]) -> int:
    """The position of the largest; the first of equals."""
    return max(range(len(probabilities)), key=probabilities.__getitem__)
