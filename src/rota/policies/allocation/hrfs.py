"""HRFS: fast slots pull those along who are behind, slow slots do half an interval for those ahead."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, log2

import numpy as np
from numpy.typing import NDArray

from rota.core.errors import ConfigError
from rota.core.population.events import Assign, Interval, Retire
from rota.core.population.view import PopulationView, TrialStatus
from rota.policies.allocation import era, foresight
from rota.policies.allocation.abilities import original_abilities
from rota.policies.allocation.kernels import meanwhile, standing


@dataclass(frozen=True, slots=True)
class Hrfs:
    """A slot is slow if the others would catch up with the leading trial while it does one interval.

    A slow slot rests if the others would even do all that is left meanwhile, or once the target is reached.
    """

    tiers: int = 2
    """Fast and slow; or more. A slow slot of tier k is up to 2^(k+1) times as slow as the fastest, has an
    interval divided by 2^k and, the higher its tier, a trial from further back in the queue."""
    caution: float = 0.0
    """Standard deviations by which a slot is taken to be slower than it is on average."""
    again: float = 0.0
    """A slot that has rested for so many of its intervals is measured again; 0 for never."""
    predict: bool = False
    """Believe what is said or predicted of slots that were never measured; else each is tried first."""
    near: bool = True
    """Of trials that are equally far, take one whose checkpoint is near."""
    predict_stops: bool = False
    """Expect trials to stop early, as their curves say, in what is left to do."""
    fastest_first: bool = True
    """Of idle slots; else whoever has been idle for longest."""
    original: bool = False
    """As the original: slots are measured once, and given up for good, even the last one."""

    def __post_init__(self) -> None:
        if self.tiers < 2 or self.caution < 0.0 or self.again < 0.0:
            raise ConfigError(
                f"tiers is {self.tiers}, caution {self.caution}, again {self.again}; "
                "give 2 or more, and 0 or more"
            )

    def hand_out(self, view: PopulationView) -> Iterator[Assign | Retire]:
        if self.original:
            for _ in range(view.freed):
                yield from originally(view)
        elif view.idle and view.waiting:
            yield from self._to_all(view)

    def _to_all(self, view: PopulationView) -> Iterator[Assign]:
        for slot in self._order(view):
            if not view.waiting:
                return
            part = self._part(view, slot)
            if part is not None:
                yield Assign(slot, [part])
        if view.waiting and len(view.idle) == np.count_nonzero(view.usable):  # all rest: somebody has to work
            yield Assign(self._order(view)[0], view.first(1))

    def _order(self, view: PopulationView) -> list[int]:
        if len(view.idle) == 1 or not self.fastest_first:
            return list(view.idle)
        step_s = view.paces.step_s[:, view.kind[view.waiting[0]]]
        return sorted(view.idle, key=lambda slot: step_s[slot])

    def _part(self, view: PopulationView, slot: int) -> Interval | None:
        """What a slot gets: an interval of who is behind, a part of one of who is ahead, or nothing."""
        kind = int(view.kind[view.waiting[0]])
        paces, terms = view.paces, view.terms
        ability = meanwhile(
            slot,
            kind,
            paces.step_s,
            paces.spread,
            float(self.caution),
            view.up,
            view.retired,
            self._known(view),
        )
        behind, left = standing(view.steps, view.status, view.leader, terms.interval, terms.steps)
        if 0 <= ability <= behind:
            return view.part(self._nearest(view, slot, 0))
        if self._rests(view, slot, ability, left, paces.step_s[slot, kind]):
            return None
        tier = self._tier(view, slot, kind)
        trial = self._nearest(view, slot, round(tier / (self.tiers - 1) * (len(view.waiting) - 1)))
        return _shortened(view, trial, tier)

    def _rests(self, view: PopulationView, slot: int, ability: int, left: float, step_s: float) -> bool:
        """Whether a slow slot is of no use any more. What was never measured is of unknown use."""
        if self.again and view.now_s - view.ends_s[slot] >= self.again * view.terms.interval * step_s:
            return False
        if self.predict_stops:
            left = foresight.intervals_left(view)
        return bool(view.best >= view.terms.target or ability > left)

    def _tier(self, view: PopulationView, slot: int, kind: int) -> int:
        """Of a slow slot. One that was never measured is in the last, to be on the safe side."""
        if self.tiers == 2 or self._known(view)[slot] == inf:
            return self.tiers - 1
        step_s = view.paces.step_s[:, kind]
        fastest_s = step_s[view.usable & (self._known(view) < inf)].min()
        return min(self.tiers - 1, max(1, int(log2(step_s[slot] / fastest_s))))

    def _known(self, view: PopulationView) -> NDArray[np.float64]:
        """Slot → finite if its pace counts."""
        return np.zeros(len(view.trial_s)) if self.predict else view.trial_s

    def _nearest(self, view: PopulationView, slot: int, at: int) -> int:
        """The trial there in the queue, or another that is as far and takes less to move."""
        trial = view.waiting[at]
        if not self.near or view.costs.moves_are_free:
            return trial
        same = [other for other in view.waiting if view.steps[other] == view.steps[trial]]
        return min(same, key=lambda other: (view.move_s(other, slot), other != trial))


def originally(view: PopulationView) -> Iterator[Assign | Retire]:
    """One part at most; slots on the way to it may be given up."""
    abilities = original_abilities(view)
    behind, left = original_lag(view), era.intervals_left(view)
    for slot in list(view.idle) if view.waiting else ():
        ability = abilities.get(slot, 0)
        if 0 < ability <= behind:
            yield Assign(slot, view.first(1))
            return
        if ability <= left and not view.best >= view.terms.target:
            yield Assign(slot, [_shortened(view, view.waiting[-1], 1)])
            return
        yield Retire(slot)


def original_lag(view: PopulationView) -> int:
    """Intervals that trials are behind the leading one: who waits, and who was good enough early."""
    steps = view.steps[view.status != TrialStatus.HANDED]
    return int(-((steps - view.leader) // view.terms.interval).sum())


def _shortened(view: PopulationView, trial: int, tier: int) -> Interval:
    steps = max(1, view.terms.interval // 2**tier)
    return Interval(trial, min(steps, view.remaining(trial)))
