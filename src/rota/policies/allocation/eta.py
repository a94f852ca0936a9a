"""ETA: assignments as long as the slowest slot needs for one trial."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, floor, inf
from typing import Literal

import numpy as np

from rota.core.population.events import Assign
from rota.core.population.view import PopulationView
from rota.policies.allocation.allotment import Split, original_shares

SHORTEST_S = 1e-6
"""Shortest duration of a trial in the original."""

HAIR = 1e-9
"""Rounding error of smoothing around a whole number."""

Rounding = Literal["ceil", "round", "floor"]
ROUND: dict[str, Callable[[float], int]] = {"ceil": ceil, "round": round, "floor": floor}


@dataclass(frozen=True, slots=True)
class Eta:
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

    def hand_out(self, view: PopulationView) -> Iterator[Assign]:
        if self.original:
            yield from self._originally(view)
            return
        while view.idle and view.waiting:
            step_s = view.step_times.step_s[:, view.kind[view.waiting[0]]]
            slot = min(view.idle, key=step_s.__getitem__) if self.fastest_first else view.idle[0]
            yield Assign(slot, view.first(self._length(view, slot, step_s)))

    def _length(self, view: PopulationView, slot: int, step_s: np.ndarray) -> int:
        """Return the number of trials for a slot, by smoothed step times of the usable slots."""
        known = view.usable & (view.trial_s < inf)
        if not known[slot]:
            return 1
        times = float(step_s[known].max() / step_s[slot])
        return max(1, round(times) if abs(times - round(times)) < HAIR else ROUND[self.rounding](times))

    def _originally(self, view: PopulationView) -> Iterator[Assign]:
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
