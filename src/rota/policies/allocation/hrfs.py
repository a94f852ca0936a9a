"""HRFS: fast slots train trials that are behind; slow slots train half an interval of those ahead."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, inf, isnan, log, log2, sqrt

import numpy as np

from rota.core.compiled import kernel
from rota.core.errors import ConfigError
from rota.core.population.changes import move_s
from rota.core.population.events import Assign, Interval, Retire
from rota.core.population.memory import (
    ENDS_S,
    KIND,
    OK,
    PASS,
    PREPARE,
    QUEUE,
    RETIRED,
    STATUS,
    STEPS,
    TRIAL_S,
    UP,
    by_kind,
    data_of,
    flags_of,
    population_at,
    seconds_of,
    step_s_of,
    trials_of,
)
from rota.core.population.policies import CompiledAllocation, ProposingAllocation
from rota.core.population.proposals import (
    as_idle,
    begin_turns,
    has_no_turn,
    idle_slots,
    next_turn,
    propose_first,
    propose_part,
)
from rota.core.population.view import PopulationView, TrialStatus
from rota.policies.allocation import era

WAITING, FINISHED = int(TrialStatus.WAITING), int(TrialStatus.FINISHED)
RECENT = 8
"""Number of reports from which stops are predicted; older ones, perhaps of another donor, say little."""


@dataclass(frozen=True, slots=True)
class Hrfs(ProposingAllocation):
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

    @property
    def compiled(self) -> CompiledAllocation | None:
        return None if self.original else _form(self)

    def originally(self, view: PopulationView) -> Iterator[Assign | Retire]:
        for _ in range(view.freed):
            yield from originally(view)


@lru_cache(maxsize=64)
def _form(hrfs: Hrfs) -> CompiledAllocation:
    options = (
        *(hrfs.tiers, hrfs.caution, hrfs.again, hrfs.predict, hrfs.near, hrfs.fastest_first),
        hrfs.predict_stops,
    )
    return CompiledAllocation(propose, options, lambda view: [predicted_intervals_left(view)])


@kernel
def propose(address):  # type: ignore[no-untyped-def]
    """Propose a whole or shorter interval for the next slot in turn that does not rest."""
    p = population_at(address)
    if p.option6 and p.prepared != p.instants:
        p.prepared = p.instants
        return PREPARE
    if has_no_turn(p):
        return PASS
    if p.turn < 0:
        begin_turns(p, keys(p), idle_slots(p))
    slot = next_turn(p)
    while slot >= 0:
        if propose_interval(p, slot):
            return OK
        slot = next_turn(p)
    flags = flags_of(p)
    if p.turn == p.turns and p.idle == (flags[UP] & ~flags[RETIRED]).sum():  # all rest: one has to work
        begin_turns(p, keys(p), idle_slots(p))
        slot = next_turn(p)
        p.turn = p.turns + 1
        return propose_first(p, slot, 1)
    return PASS


@kernel
def keys(p):  # type: ignore[no-untyped-def]
    """Return what slots are served by."""
    trials = trials_of(p)
    kind = trials[KIND, trials[QUEUE, 0]]
    return step_s_of(p)[:, kind].copy() if p.option5 else as_idle(p)


@kernel
def propose_interval(p, slot):  # type: ignore[no-untyped-def]
    """Propose a whole interval of a trial behind, or a shorter one of a trial ahead; return False to rest."""
    trials, seconds, flags, tiers = trials_of(p), seconds_of(p), flags_of(p), int(p.option0)
    kind, step_s = trials[KIND, trials[QUEUE, 0]], step_s_of(p)
    known = np.zeros(p.n_slots) if p.option3 else seconds[TRIAL_S]  # finite for trusted step times
    ability = meanwhile(slot, kind, step_s, by_kind(p, p.spread), p.option1, flags[UP], flags[RETIRED], known)
    behind, intervals_left = standing(trials[STEPS], trials[STATUS], p.leader, p.interval, p.budget)
    if 0 <= ability <= behind:
        propose_part(p, slot, nearest(p, slot, 0), p.interval)
        return True
    left = data_of(p)[0] if p.option6 else float(intervals_left)
    wait_s = p.option2 * p.interval * step_s[slot, kind]
    is_due = p.option2 > 0.0 and p.now_s - seconds[ENDS_S, slot] >= wait_s
    if not is_due and (p.best >= p.target or ability > left):
        return False
    tier = tiers - 1
    if tiers > 2 and known[slot] < inf:
        fastest_s = inf
        for other in range(p.n_slots):
            if flags[UP, other] and not flags[RETIRED, other] and known[other] < inf:
                fastest_s = min(fastest_s, step_s[other, kind])
        tier = min(tiers - 1, max(1, int(log2(step_s[slot, kind] / fastest_s))))
    at = nearest(p, slot, int(np.rint(tier / (tiers - 1) * (p.waiting - 1))))
    propose_part(p, slot, at, max(1, p.interval // 2**tier))
    return True


@kernel
def nearest(p, slot, at):  # type: ignore[no-untyped-def]
    """Return a queue position, or that of an equally advanced trial with a cheaper transfer."""
    if not p.option4 or p.moves_are_free:
        return at
    trials = trials_of(p)
    waiting, steps, found = trials[QUEUE], trials[STEPS], at
    least_s = move_s(p, waiting[at], slot)
    for other in range(p.waiting):
        if steps[waiting[other]] == steps[waiting[at]]:
            seconds = move_s(p, waiting[other], slot)
            if seconds < least_s:
                found, least_s = other, seconds
    return found


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
