"""HRFS: fast slots train trials that are behind; slow slots train half an interval of those ahead."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, inf, isnan, log, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from rota.core.compiled import kernel
from rota.core.errors import ConfigError
from rota.core.population.events import Assign, Interval, Retire
from rota.core.population.view import PopulationView, TrialStatus
from rota.policies.allocation import era

WAITING, FINISHED = int(TrialStatus.WAITING), int(TrialStatus.FINISHED)
RECENT = 8
"""Number of reports from which stops are predicted; older ones, perhaps of another donor, say little."""


@dataclass(frozen=True, slots=True)
class Hrfs:
    """A slot is slow if the others would catch up with the leading trial while it trains one interval.

    A slow slot rests if the others would complete everything meanwhile, or once the target is reached.
    """

    tiers: int = 2
    """Fast and slow, or more. A slow slot of tier k is up to 2^(k+1) times as slow as the fastest, trains an
    interval divided by 2^k and, the higher its tier, a trial from further back in the queue."""
    caution: float = 0.0
    """Standard deviations by which a slot is assumed to be slower than its mean."""
    again: float = 0.0
    """Number of its intervals after which a resting slot is measured again; 0 for never."""
    predict: bool = False
    """Trust given or predicted speeds of slots that were never measured; else each is tried first."""
    near: bool = True
    """Prefer, among equally advanced trials, one whose checkpoint is near."""
    predict_stops: bool = False
    """Predict from their curves which trials will stop early, in what is left to do."""
    fastest_first: bool = True
    """Serve the fastest idle slot first; else the one that has been idle for longest."""
    original: bool = False
    """As the original: slots are measured once, and retired for good, even the last one."""

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
            interval = self._interval(view, slot)
            if interval is not None:
                yield Assign(slot, [interval])
        if view.waiting and len(view.idle) == np.count_nonzero(view.usable):  # all rest: one has to work
            yield Assign(self._order(view)[0], view.first(1))

    def _order(self, view: PopulationView) -> list[int]:
        if len(view.idle) == 1 or not self.fastest_first:
            return list(view.idle)
        step_s = view.step_times.step_s[:, view.kind[view.waiting[0]]]
        return sorted(view.idle, key=lambda slot: step_s[slot])

    def _interval(self, view: PopulationView, slot: int) -> Interval | None:
        """Return a whole interval of a trial behind, a shorter one of a trial ahead, or None to rest."""
        kind = int(view.kind[view.waiting[0]])
        times, terms = view.step_times, view.terms
        ability = meanwhile(
            slot, kind, times.step_s, times.spread, float(self.caution), view.up, view.retired,
            self._known(view),
        )  # fmt: skip
        behind, left = standing(view.steps, view.status, view.leader, terms.interval, terms.steps)
        if 0 <= ability <= behind:
            return view.interval(self._nearest(view, slot, 0))
        if self._rests(view, slot, ability, left, times.step_s[slot, kind]):
            return None
        tier = self._tier(view, slot, kind)
        trial = self._nearest(view, slot, round(tier / (self.tiers - 1) * (len(view.waiting) - 1)))
        return _shortened(view, trial, tier)

    def _rests(self, view: PopulationView, slot: int, ability: int, left: float, step_s: float) -> bool:
        """Return whether a slow slot is no longer useful; one that was never measured may be."""
        if self.again and view.now_s - view.ends_s[slot] >= self.again * view.terms.interval * step_s:
            return False
        if self.predict_stops:
            left = predicted_intervals_left(view)
        return bool(view.best >= view.terms.target or ability > left)

    def _tier(self, view: PopulationView, slot: int, kind: int) -> int:
        """Return the tier of a slow slot; the last one if it was never measured."""
        if self.tiers == 2 or self._known(view)[slot] == inf:
            return self.tiers - 1
        step_s = view.step_times.step_s[:, kind]
        fastest_s = step_s[view.usable & (self._known(view) < inf)].min()
        return min(self.tiers - 1, max(1, int(log2(step_s[slot] / fastest_s))))

    def _known(self, view: PopulationView) -> NDArray[np.float64]:
        """Return a finite number for each slot whose step time is trusted."""
        return np.zeros(len(view.trial_s)) if self.predict else view.trial_s

    def _nearest(self, view: PopulationView, slot: int, at: int) -> int:
        """Return the trial at a queue position, or an equally advanced one with a cheaper transfer."""
        trial = view.waiting[at]
        if not self.near or view.costs.moves_are_free:
            return trial
        same = [other for other in view.waiting if view.steps[other] == view.steps[trial]]
        return min(same, key=lambda other: (view.move_s(other, slot), other != trial))


def _shortened(view: PopulationView, trial: int, tier: int) -> Interval:
    steps = max(1, view.terms.interval // 2**tier)
    return Interval(trial, min(steps, view.remaining(trial)))


@kernel
def meanwhile(slot, kind, step_s, spread, caution, up, retired, trial_s):  # type: ignore[no-untyped-def]
    """Return the whole intervals that other slots do in the time of one on this slot; -1 if not measured.

    With caution, the slot is assumed to be that many standard deviations slower than its mean. Slots that
    were never measured, are down or retired do nothing meanwhile.
    """
    if trial_s[slot] == inf:
        return -1
    mine_s = step_s[slot, kind] * (1.0 + caution * sqrt(spread[slot, kind]))
    total = 0
    for other in range(len(up)):
        if other != slot and up[other] and not retired[other] and trial_s[other] < inf:
            total += int(mine_s / step_s[other, kind])
    return total


@kernel
def standing(steps, status, leader, interval, budget):  # type: ignore[no-untyped-def]
    """Return the intervals that waiting trials are behind the leader, and those that all trials have left."""
    behind = left = 0
    for trial in range(len(steps)):
        if status[trial] == WAITING:
            behind += -((steps[trial] - leader) // interval)
        if status[trial] < FINISHED:
            left += -((steps[trial] - budget) // interval)
    return behind, left


def predicted_steps_left(view: PopulationView, trial: int) -> float:
    """Return the steps until a trial reaches the target or uses up its budget, whichever comes first.

    A line is fitted to the trial's recent metrics over the logarithm of its steps, by least squares:
    metric = a + b·ln(steps). The target is predicted at exp((target − a) / b). With fewer than two reports,
    or no rise, the whole budget is assumed to be needed.
    """
    done, budget = int(view.steps[trial]), view.terms.steps
    curve = [(log(steps), metric) for steps, metric in view.history[trial][-RECENT:] if not isnan(metric)]
    if len(curve) < 2:
        return budget - done
    offset, slope = _line(curve)
    if slope <= 0.0 or view.terms.target >= offset + slope * log(budget):
        return budget - done
    return max(0.0, exp((view.terms.target - offset) / slope) - done)


def predicted_intervals_left(view: PopulationView) -> float:
    """Return the predicted number of intervals of all unfinished trials, at least one of each."""
    unfinished = np.flatnonzero(view.status < FINISHED)
    each = (predicted_steps_left(view, int(trial)) for trial in unfinished)
    return sum(max(1.0, steps / view.terms.interval) for steps in each)


def _line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Return offset and slope of the least-squares line."""
    x, y = np.array(points).T
    spread = ((x - x.mean()) ** 2).sum()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / spread if spread > 0.0 else 0.0
    return float(y.mean() - slope * x.mean()), float(slope)


def originally(view: PopulationView) -> Iterator[Assign | Retire]:
    """Yield at most one assignment, as the original does; slots that it passes over are retired."""
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
    """Return the intervals that trials are behind the leader: waiting ones, and those that finished early."""
    steps = view.steps[view.status != TrialStatus.ASSIGNED]
    return int(-((steps - view.leader) // view.terms.interval).sum())


def original_abilities(view: PopulationView) -> Mapping[int, int]:
    """Return the original's TCA of each measured slot, from its first assignment.

    It is roughly what `meanwhile` computes exactly: the intervals that others do while the slot does one.
    """
    return _in_order(tuple((slot, float(view.first_s[slot])) for slot in view.measured))


@lru_cache(maxsize=256)
def _in_order(firsts: Sequence[tuple[int, float]]) -> Mapping[int, int]:
    """Return TCAs in the order of reports; a slot is compared with the fastest so far, and never again.

    The sum is accumulated where the slot's own value is stored, which is visited on the way, so a part of it
    may be counted too. The same times in another order give other values.
    """
    found: dict[int, int] = {}
    fastest_s = inf
    for slot, first_s in firsts:
        fastest_s = min(fastest_s, first_s)
        slowness = ceil(first_s / fastest_s)
        total = 0
        for other in sorted({*found, slot}):
            ability = total if other == slot else found[other]
            total += slowness // ability if ability else 0
        found[slot] = slowness + total
    return found
