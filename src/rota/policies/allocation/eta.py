"""ETA: assignments as long as the slowest slot needs for one trial."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf
from typing import Literal, get_args

import numpy as np

from rota.core.compiled import kernel
from rota.core.population.events import Assign
from rota.core.population.memory import (
    IDLE,
    KIND,
    PASS,
    QUEUE,
    RETIRED,
    TRIAL_S,
    UP,
    flags_of,
    population_at,
    seconds_of,
    slots_of,
    step_s_of,
    trials_of,
)
from rota.core.population.policies import CompiledAllocation, ProposingAllocation
from rota.core.population.proposals import has_no_turn, propose_first
from rota.core.population.view import PopulationView
from rota.policies.allocation.allotment import Split, original_shares

SHORTEST_S = 1e-6
"""Shortest duration of a trial in the original."""

HAIR = 1e-9
"""Rounding error of smoothing around a whole number."""

Rounding = Literal["ceil", "round", "floor"]
ROUNDINGS = get_args(Rounding)


@dataclass(frozen=True, slots=True)
class Eta(ProposingAllocation):
    """A slot k times as fast as the slowest used one gets k trials at a time; an unused one gets one."""

    rounding: Rounding = "ceil"
    """Rounding of k. Rounded up, a slot hardly faster than the slowest gets two trials and takes twice as
    long: in total 0.6 % longer than with `round` if dispatch is free, but 2 to 9 % less if it costs 0.1 to
    0.5 s, on random clusters."""
    split: Split = "gpa"
    """Division of the population in the original, which gives nothing to slots without a share."""
    fastest_first: bool = True
    """Serve the fastest idle slot first, so that a slow one gets the last trials only if no other is idle;
    else the one that has been idle for longest."""
    original: bool = False
    """As the original: one assignment per slot that became idle, times of the last assignment, rounded up.
    But a slot without a share ends all rounds of an instant; there it ends one, and is last in the next."""

    @property
    def compiled(self) -> CompiledAllocation | None:
        return None if self.original else _form(self)

    def originally(self, view: PopulationView) -> Iterator[Assign]:
        """Yield at most one assignment per slot that became idle; a slot without a share ends the rounds."""
        share = original_shares(view, self.split)
        for _ in range(view.freed):
            slot = self._next(view, share)
            if slot is None or not view.waiting:
                return
            yield Assign(slot, view.first(self._original_length(view, slot)))

    def _next(self, view: PopulationView, share: list[int]) -> int | None:
        """Return the slot that has been idle for longest; SPA skips those without a share, GPA stops."""
        idle = [slot for slot in view.idle if share[slot] or self.split == "gpa"]
        return idle[0] if idle and share[idle[0]] else None

    def _original_length(self, view: PopulationView, slot: int) -> int:
        if view.trial_s[slot] == inf:
            return 1
        slowest_s = float(view.trial_s[view.trial_s < inf].max())
        return max(1, ceil(max(SHORTEST_S, slowest_s) / max(SHORTEST_S, float(view.trial_s[slot]))))


@lru_cache(maxsize=64)
def _form(eta: Eta) -> CompiledAllocation:
    return CompiledAllocation(propose, (ROUNDINGS.index(eta.rounding), eta.fastest_first))


@kernel
def propose(address):  # type: ignore[no-untyped-def]
    """Propose as many trials as the next slot does while the slowest does one."""
    p = population_at(address)
    if has_no_turn(p):
        return PASS
    trials, idle = trials_of(p), slots_of(p)[IDLE]
    step_s = step_s_of(p)[:, trials[KIND, trials[QUEUE, 0]]]
    slot = idle[0]
    if p.option1:
        for other in idle[: p.idle]:
            if step_s[other] < step_s[slot]:
                slot = other
    return propose_first(p, slot, length(p, slot, step_s))


@kernel
def length(p, slot, step_s):  # type: ignore[no-untyped-def]
    """Return the number of trials for a slot, by smoothed step times of the usable slots."""
    flags, trial_s = flags_of(p), seconds_of(p)[TRIAL_S]
    slowest_s, is_known = 0.0, False
    for other in range(p.n_slots):
        if flags[UP, other] and not flags[RETIRED, other] and trial_s[other] < inf:
            slowest_s = max(slowest_s, step_s[other])
            is_known |= other == slot
    if not is_known:
        return 1
    times = slowest_s / step_s[slot]
    whole = np.rint(times)
    if not abs(times - whole) < HAIR:
        whole = (np.ceil(times), np.rint(times), np.floor(times))[int(p.option0)]
    return max(1, int(whole))
