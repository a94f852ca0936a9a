"""ERA: long lists while there is much to do, shorter ones towards the end."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor

from rota.core.errors import ConfigError
from rota.core.population.events import Assign
from rota.core.population.view import PopulationView
from rota.policies.allocation.allotment import Split, original_shares, shares

ROUNDING = 1e-9
"""Without it, what is 243 comes out as 243.00000000000003 and is rounded up to 244."""
NOT_KNOWN = 9999
"""What the originals take for the intervals that are left, before the first report."""


@dataclass(frozen=True, slots=True)
class Era:
    """A slot gets the first trials of the queue, as many as its share × slope^stage."""

    stage: int = 100
    """Steps of the leading trial after which lists become shorter again."""
    slope: float = 0.9
    """How much shorter."""
    split: Split = "gpa"
    """How a population is shared out over slots."""
    fastest_first: bool = True
    """Of idle slots, so that a slow one gets the last trials only if nobody else is idle; else whoever has
    been idle for longest."""
    original: bool = False
    """As the originals: slots as they came, a stage that fits populations of 50 trials only, and a node's
    whole share for each of its slots."""

    def __post_init__(self) -> None:
        if self.stage < 1 or not 0.0 < self.slope <= 1.0:
            raise ConfigError(f"stage is {self.stage}, slope {self.slope}; give 1 or more, and up to 1")

    def hand_out(self, view: PopulationView) -> Iterator[Assign]:
        if not view.idle or not view.waiting:
            return
        share = original_shares(view, self.split) if self.original else shares(view, self.split)
        factor = self.slope ** self.reached(view)
        for slot in self._order(view):
            if not view.waiting:
                return
            if share[slot]:
                yield Assign(slot, view.first(self._length(share[slot] * factor)))

    def reached(self, view: PopulationView) -> int:
        """The stage that the population is at."""
        if self.original:
            return max(0, floor((view.terms.steps - intervals_left(view)) / self.stage))
        return view.leader // self.stage

    def _length(self, trials: float) -> int:
        return ceil(trials) if self.original else max(1, ceil(trials - ROUNDING))

    def _order(self, view: PopulationView) -> list[int]:
        if self.original or not self.fastest_first:
            return list(view.idle)
        return sorted(view.idle, key=lambda slot: -view.scores[slot])


def intervals_left(view: PopulationView) -> int:
    """What the originals take for it: as if all trials stood where the leading one stands."""
    if not view.leader:
        return NOT_KNOWN
    return int((view.terms.steps - view.leader) / view.terms.interval * len(view.status))
