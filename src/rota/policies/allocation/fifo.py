"""First come, first served: the next trial to the slot that has been idle for longest."""

from collections.abc import Iterator
from dataclasses import dataclass

from rota.core.population.events import Hand
from rota.core.population.view import View


@dataclass(frozen=True, slots=True)
class Fifo:
    """An interval of one trial at a time, whatever the slot."""

    def hand_out(self, view: View) -> Iterator[Hand]:
        while view.idle and view.waiting:
            yield Hand(view.idle[0], view.first(1))
