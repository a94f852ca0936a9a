"""How far a simulated timeline is off a real one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean, median

import numpy as np

from rota.core.errors import InputError
from rota.results.fidelity.statistics import Agreement, Versus, agreement, correlation
from rota.results.fidelity.told import Interval, Told
from rota.results.metrics import at_rank


@dataclass(frozen=True, slots=True)
class Completion:
    """Completion times of trials or jobs."""

    mean: Versus
    p50: Versus
    p99: Versus
    """At position ⌊0.99 n⌋ of the sorted ones, counted from 0; nothing is interpolated."""
    off_percent: float | None
    """How far single ones are off, on average, as a share of the mean real one."""
    correlation: float | None


@dataclass(frozen=True, slots=True)
class Spell:
    """The time of intervals that both timelines have."""

    mean: Versus
    """By the weights of the real ones."""
    off_percent: float | None
    """How far single ones are off: the median share, whichever the sign."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals, aligned by the trial or job that they are of and their number in its life."""

    unit: str
    aligned: int
    only_real: int
    """That have none to compare with: other steps, or more of them than the other timeline has."""
    only_simulated: int
    whole: Spell | None
    computing: Spell | None
    """Without what had to be moved first; None where that is not known."""
    same_slot: float | None
    """The share that ran on the same slots in both."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One timeline against another."""

    what: str
    """`trials` or `jobs`."""
    count: int
    makespan: Versus
    jct: Completion
    intervals: Intervals
    starts: Agreement
    """Of the orders of first starts."""
    ends: Agreement
    parted: Versus | None
    """When a slot first got another interval than in the other timeline; None if that was never so."""

    @property
    def makespan_at_pace(self) -> Versus | None:
        """As if computing had been foretold to cost what it cost in the run: then a machine may be faster or
        slower than when it was recorded. None where that is not known."""
        computing = self.intervals.computing
        if computing is None or not computing.mean.simulated > 0.0:
            return None
        pace = computing.mean.real / computing.mean.simulated
        return Versus(self.makespan.real, self.makespan.simulated * pace)


def compare(real: Told, simulated: Told) -> Comparison:
    """Both must tell of the same trials or jobs."""
    _check(real, simulated)
    names = list(real.lives)
    here, there = ([told.lives[name] for name in names] for told in (real, simulated))
    return Comparison(
        what=real.what,
        count=len(names),
        makespan=Versus(real.makespan_s, simulated.makespan_s),
        jct=completion([life.jct_s for life in here], [life.jct_s for life in there]),
        intervals=_intervals(real, simulated),
        starts=agreement([life.first_start_s for life in here], [life.first_start_s for life in there]),
        ends=agreement([life.end_s for life in here], [life.end_s for life in there]),
        parted=parted(real, simulated),
    )


def _check(real: Told, simulated: Told) -> None:
    one = real.what.removesuffix("s")
    if real.what != simulated.what:
        raise InputError(
            f"{real.what} cannot be compared with {simulated.what}; give two runs of a population, "
            "or two of a trace"
        )
    for told, other, where in ((real, simulated, "simulated"), (simulated, real, "real")):
        missing = [name for name in told.lives if name not in other.lives]
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise InputError(
                f"{one} {missing[0]}{more} is missing in the {where} run; compare two of the same {real.what}"
            )
    if not real.lives:
        raise InputError(f"there are no {real.what} to compare; let the run go on until one has reported")


def completion(real_s: Sequence[float], simulated_s: Sequence[float]) -> Completion:
    """Of completion times, in the same order."""
    here, there = np.array(real_s), np.array(simulated_s)
    mean = Versus(float(here.mean()), float(there.mean()))
    off_s = float(np.abs(there - here).mean())
    return Completion(
        mean=mean,
        p50=Versus(float(np.median(here)), float(np.median(there))),
        p99=Versus(at_rank(here, 0.99), at_rank(there, 0.99)),
        off_percent=100.0 * off_s / mean.real if mean.real > 0.0 else None,
        correlation=correlation(real_s, simulated_s),
    )


Pair = tuple[Interval, Interval]


def _intervals(real: Told, simulated: Told) -> Intervals:
    pairs = aligned(real, simulated)
    computing = [
        (here.weight, here.computing_s, there.computing_s)
        for here, there in pairs
        if here.computing_s is not None and there.computing_s is not None
    ]
    placed = [(here, there) for here, there in pairs if here.slots and there.slots]
    return Intervals(
        unit=real.unit,
        aligned=len(pairs),
        only_real=_count(real) - len(pairs),
        only_simulated=_count(simulated) - len(pairs),
        whole=_spell([(here.weight, here.whole_s, there.whole_s) for here, there in pairs]),
        computing=_spell(computing),
        same_slot=fmean(here.slots == there.slots for here, there in placed) if placed else None,
    )


def aligned(real: Told, simulated: Told) -> list[Pair]:
    """Intervals with the same number in the life of the same trial or job, if they are of the same amount."""
    return [
        (here, there)
        for name, life in real.lives.items()
        for here, there in zip(life.intervals, simulated.lives[name].intervals, strict=False)
        if here.amount == there.amount
    ]


def parted(real: Told, simulated: Told) -> Versus | None:
    """When a slot first got another interval than in the other timeline, or one where it has none."""
    here, there = _by_slot(real), _by_slot(simulated)
    last_s = (real.makespan_s, simulated.makespan_s)
    moments = (_first_other(here.get(slot, []), there.get(slot, []), last_s) for slot in {*here, *there})
    return min((moment for moment in moments if moment is not None), default=None)


Begun = tuple[float, str, float]
"""When an interval began, of whom it is, and its amount."""


def _by_slot(told: Told) -> dict[int, list[Begun]]:
    """Slot → its intervals, in order."""
    found: dict[int, list[Begun]] = {}
    for name, life in told.lives.items():
        for interval in life.intervals:
            for slot in interval.slots:
                found.setdefault(slot, []).append((interval.began_s, name, interval.amount))
    return {slot: sorted(each) for slot, each in found.items()}


def _first_other(real: list[Begun], simulated: list[Begun], last_s: tuple[float, float]) -> Versus | None:
    for here, there in zip_longest(real, simulated):
        if here is None or there is None or here[1:] != there[1:]:
            return Versus(here[0] if here else last_s[0], there[0] if there else last_s[1])
    return None


def _count(told: Told) -> int:
    return sum(len(life.intervals) for life in told.lives.values())


def _spell(times_s: Sequence[tuple[float, float, float]]) -> Spell | None:
    if not times_s:
        return None
    weights, here_s, there_s = zip(*times_s, strict=True)
    off = [abs(there / here - 1.0) for here, there in zip(here_s, there_s, strict=True) if here > 0.0]
    mean = Versus(fmean(here_s, weights), fmean(there_s, weights))
    return Spell(mean, 100.0 * median(off) if off else None)
