"""First come, first served: the next trial to the slot that has been idle for longest."""

from collections.abc import Iterator
from dataclasses import dataclass

from rota.core.population.events import Assign
from rota.core.population.view import PopulationView


@dataclass(frozen=True, slots=True)
class FifoAllocation:
    """One interval of one trial at a time, on any slot."""

    def hand_out(self, view: PopulationView) -> Iterator[Assign]:
        while view.idle and view.waiting:
            yield Assign(view.idle[0], view.first(1))
