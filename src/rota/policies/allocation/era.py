"""ERA: long assignments while there is much to do, shorter ones towards the end."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor

import numpy as np

from rota.core.compiled import kernel
from rota.core.errors import ConfigError
from rota.core.population.events import Assign
from rota.core.population.memory import PASS, PREPARE, SPEED, data_of, population_at, seconds_of
from rota.core.population.policies import CompiledAllocation, ProposingAllocation
from rota.core.population.proposals import as_idle, begin_turns, idle_slots, next_turn, propose_first
from rota.core.population.view import PopulationView
from rota.policies.allocation.allotment import Split, original_shares, shares

ROUNDING = 1e-9
"""Tolerance, without which 243 would be 243.00000000000003 and rounded up to 244."""
NOT_KNOWN = 9999
"""Intervals left in the original, before the first report."""


@dataclass(frozen=True, slots=True)
class Era(ProposingAllocation):
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

    @property
    def compiled(self) -> CompiledAllocation | None:
        return None if self.original else _form(self)

    def originally(self, view: PopulationView) -> Iterator[Assign]:
        if not view.idle or not view.waiting:
            return
        share = original_shares(view, self.split)
        factor = self.slope ** self.reached(view)
        for slot in list(view.idle):
            if not view.waiting:
                return
            if share[slot]:
                yield Assign(slot, view.first(ceil(share[slot] * factor)))

    def reached(self, view: PopulationView) -> int:
        """Return the current stage of the population."""
        if not self.original:
            return view.leader // self.stage
        return max(0, floor((view.terms.steps - intervals_left(view)) / self.stage))


@lru_cache(maxsize=64)
def _form(era: Era) -> CompiledAllocation:
    options = era.stage, era.slope, era.fastest_first
    return CompiledAllocation(propose, options, lambda view: shares(view, era.split))


@kernel
def propose(address):  # type: ignore[no-untyped-def]
    """Propose as many trials as the share of the next slot, less at each stage."""
    p = population_at(address)
    if p.prepared != p.slots_version:
        p.prepared = p.slots_version
        return PREPARE
    if p.turn < 0:
        keys = -seconds_of(p)[SPEED] if p.option2 else as_idle(p)
        begin_turns(p, keys, idle_slots(p))
    share, slot = data_of(p), next_turn(p)
    while slot >= 0 and share[slot] == 0.0:
        slot = next_turn(p)
    if slot < 0:
        return PASS
    factor = p.option1 ** float(p.leader // int(p.option0))
    return propose_first(p, slot, max(1, int(np.ceil(share[slot] * factor - ROUNDING))))


def intervals_left(view: PopulationView) -> int:
    """Return the original's estimate of the intervals left: as if all trials were level with the leader."""
    if not view.leader:
        return NOT_KNOWN
    return int((view.terms.steps - view.leader) / view.terms.interval * len(view.status))
