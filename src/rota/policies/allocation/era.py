"""ERA: long assignments while there is much to do, shorter ones towards the end."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor

from rota.core.errors import ConfigError
from rota.core.population.events import Assign
from rota.core.population.view import PopulationView
from rota.policies.allocation.allotment import Split, original_shares, shares

ROUNDING = 1e-9
"""Tolerance, without which 243 would be 243.00000000000003 and rounded up to 244."""
NOT_KNOWN = 9999
"""Intervals left in the original, before the first report."""


@dataclass(frozen=True, slots=True)
class Era:
    """A slot gets the first trials of the queue, as many as its share × slope^stage."""

    stage: int = 100
    """Steps of the leading trial after which assignments become shorter again."""
    slope: float = 0.9
    """Factor on the length of assignments at each stage."""
    split: Split = "gpa"
    """Division of the population over slots."""
    fastest_first: bool = True
    """Serve the fastest idle slot first, so that a slow one gets the last trials only if no other is idle;
    else the one that has been idle for longest."""
    original: bool = False
    """As the originals: slots in the order in which they became idle, a stage that fits populations of 50
    trials only, and a node's whole share for each of its slots."""

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
        """Return the current stage of the population."""
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
    """Return the original's estimate of the intervals left: as if all trials were level with the leader."""
    if not view.leader:
        return NOT_KNOWN
    return int((view.terms.steps - view.leader) / view.terms.interval * len(view.status))
