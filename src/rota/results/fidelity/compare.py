"""Compare two timelines: pairs of jobs or trials, durations, and statistics of their errors."""

import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

import numpy as np

from rota.core.errors import InputError
from rota.core.grouped import grouped
from rota.results.fidelity.aligned import AlignedTimeline, TimedInterval, jobs_timeline, population_timeline
from rota.results.folder import PopulationFolder, RunFolder, complete_run, run_folders
from rota.results.metrics import at_rank
from rota.results.population.run import PopulationRecord, read_population
from rota.results.run import RunRecord, read_run


class Versus(NamedTuple):
    """The same quantity in the real run and in the simulation."""

    real: float
    simulated: float

    @property
    def error_percent(self) -> float | None:
        """The prediction error: above 0 if the simulation says too much; None if the real value is 0."""
        return 100.0 * (self.simulated / self.real - 1.0) if self.real > 0.0 else None


class Agreement(NamedTuple):
    """The agreement of two orders."""

    same: bool
    """Whether no two have changed places; ties may be in either order."""
    tau: float | None
    """Kendall's τ-b: 1 for the same order, −1 for the opposite; None if all are tied."""


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Return Pearson's correlation; None if one side does not vary."""
    if len(xs) < 2 or min(xs) == max(xs) or min(ys) == max(ys):
        return None
    return float(np.corrcoef(xs, ys)[0, 1])


def agreement(xs: Sequence[float], ys: Sequence[float]) -> Agreement:
    """Return the agreement of the orders of two columns."""
    discordant = _inversions(y for _, y in sorted(zip(xs, ys, strict=True)))
    level_x, level_y, level_both = _level(xs), _level(ys), _level(list(zip(xs, ys, strict=True)))
    pairs = len(xs) * (len(xs) - 1) // 2
    concordant = pairs - level_x - level_y + level_both - discordant
    scale = math.sqrt((pairs - level_x) * (pairs - level_y))
    return Agreement(discordant == 0, (concordant - discordant) / scale if scale else None)


def _inversions(values: Iterable[float]) -> int:
    """Return the number of pairs in which the later one is smaller."""
    before: list[float] = []
    found = 0
    for value in values:
        found += len(before) - bisect_right(before, value)
        insort(before, value)
    return found


def _level(values: Sequence[Hashable]) -> int:
    return sum(count * (count - 1) // 2 for count in Counter(values).values())


AnyRun = RunRecord | PopulationRecord


@dataclass(frozen=True, slots=True)
class RunPair:
    """A real run and a simulated one of the same work."""

    name: str
    """Scheduler or allocation; more where that is ambiguous."""
    seed: int | None
    """Seed of both runs; None for a trace."""
    real: AnyRun
    simulated: AnyRun

    @property
    def title(self) -> str:
        """The name, with the seed if there is one."""
        return self.name if self.seed is None else f"{self.name}, seed {self.seed}"

    def timelines(self) -> tuple[AlignedTimeline, AlignedTimeline]:
        """Return the timelines of both."""
        return _timeline(self.real, self.seed), _timeline(self.simulated, self.seed)


def paired(real: Path, simulated: Path) -> tuple[list[RunPair], list[str]]:
    """Return pairs of the runs below two folders, and notes about runs without a partner."""
    here, there = runs_in(real), runs_in(simulated)
    _check_kinds(real, here, simulated, there)
    keys = _keys(real, here, simulated, there)
    both = [name for name in keys[0] if name in keys[1]]
    if not both:
        names = " and ".join(
            f"{path} has {', '.join(each)}" for path, each in zip((real, simulated), keys, strict=True)
        )
        raise InputError(f"no two runs have the same name: {names}; name the two runs themselves")
    notes = [
        f"{name}: only in {path}, left out"
        for path, each in zip((real, simulated), keys, strict=True)
        for name in each
        if name not in both
    ]
    pairs = [pair for name in both for pair in _seed_by_seed(name, keys[0][name], keys[1][name])]
    return pairs, notes


def runs_in(path: Path) -> list[AnyRun]:
    """Return all runs of a folder, of either kind; each must be complete."""
    folders = list(run_folders(path))
    if not folders:
        raise InputError(f"{path}: no run is there; give what rota run or rota simulate wrote with --out")
    return [_read(folder) for folder in folders]


def _read(folder: RunFolder) -> AnyRun:
    found = complete_run(folder.path)
    if found is None:
        how = "let it go on to its end (rota run --resume), or make it again"
        raise InputError(f"{folder.path}: not a complete run; {how}")
    return (read_population if isinstance(found, PopulationFolder) else read_run)(found.path)


def _check_kinds(real: Path, here: list[AnyRun], simulated: Path, there: list[AnyRun]) -> None:
    kinds = {
        path: {"a population" if isinstance(run, PopulationRecord) else "jobs of a trace" for run in runs}
        for path, runs in ((real, here), (simulated, there))
    }
    for path, found in kinds.items():
        if len(found) > 1:
            raise InputError(f"{path}: has runs of a population and of jobs; name the run that is meant")
    (ours,), (theirs,) = (found for found in (kinds[real], kinds[simulated]))
    if ours != theirs:
        raise InputError(
            f"{real} has {ours}, {simulated} has {theirs}; they cannot be compared: give two of the same kind"
        )


def _keys(
    real: Path, here: list[AnyRun], simulated: Path, there: list[AnyRun]
) -> tuple[Mapping[str, AnyRun], Mapping[str, AnyRun]]:
    """Return the runs of both folders by scheduler or allocation, or else by folder."""
    if len(here) == len(there) == 1:
        name = policy_of(here[0])
        if name != policy_of(there[0]):
            name = f"{name} / {policy_of(there[0])}"
        return {name: here[0]}, {name: there[0]}
    for by in (_by_policy, _by_folder):
        found = by(real, here), by(simulated, there)
        if len(found[0]) == len(here) and len(found[1]) == len(there):
            return found
    raise AssertionError("folders have different names")


def _by_policy(_: Path, runs: list[AnyRun]) -> dict[str, AnyRun]:
    return {policy_of(run): run for run in runs}


def _by_folder(path: Path, runs: list[AnyRun]) -> dict[str, AnyRun]:
    return {run.folder.path.relative_to(path).as_posix(): run for run in runs}


def policy_of(run: AnyRun) -> str:
    """Return the name of the scheduler or the allocation of a run."""
    return run.summary.allocation if isinstance(run, PopulationRecord) else run.scheduler


def _seed_by_seed(name: str, real: AnyRun, simulated: AnyRun) -> Iterator[RunPair]:
    if not (isinstance(real, PopulationRecord) and isinstance(simulated, PopulationRecord)):
        yield RunPair(name, None, real, simulated)
        return
    ours, theirs = ([each.seed for each in run.summary.repetitions] for run in (real, simulated))
    both = [seed for seed in ours if seed in theirs]
    if not both:
        raise InputError(
            f"{name}: the real run has the seeds {_listed(ours)}, the simulated one {_listed(theirs)}; make "
            "one of them with a seed of the other"
        )
    yield from (RunPair(name, seed, real, simulated) for seed in both)


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds))


def _timeline(run: AnyRun, seed: int | None) -> AlignedTimeline:
    if isinstance(run, PopulationRecord):
        assert seed is not None
        return population_timeline(run, seed)
    return jobs_timeline(run)


@dataclass(frozen=True, slots=True)
class Completion:
    """Completion times of trials or jobs."""

    mean: Versus
    p50: Versus
    p99: Versus
    """The one at position ⌊0.99 n⌋ of the sorted ones, from 0; nothing is interpolated."""
    off_percent: float | None
    """Mean absolute error of single ones, in percent of the mean real one."""
    correlation: float | None


@dataclass(frozen=True, slots=True)
class DurationError:
    """The error of the durations of intervals that both timelines have."""

    mean: Versus
    """Mean durations, by the weights of the real intervals."""
    off_percent: float | None
    """Median absolute error of single ones, in percent."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals, aligned by trial or job and by their number in its life."""

    unit: str
    aligned: int
    only_real: int
    """Real intervals without a counterpart: of other steps, or more than the simulation has."""
    only_simulated: int
    whole: DurationError | None
    computing: DurationError | None
    """Error without dispatch and transfer; None where that is not known."""
    same_slot: float | None
    """Share of intervals that ran on the same slots in both."""


@dataclass(frozen=True, slots=True)
class TimelineComparison:
    """The comparison of a simulated timeline with a real one."""

    what: str
    """`trials` or `jobs`."""
    count: int
    makespan: Versus
    jct: Completion
    intervals: Intervals
    starts: Agreement
    """Agreement of the orders of first starts."""
    ends: Agreement
    diverged: Versus | None
    """When a slot first got another interval than in the other timeline; None if never."""
    outcome: "PopulationOutcomes | None" = None
    """What came of a population; None for jobs, and if nothing was measured."""

    @property
    def makespan_at_real_step_time(self) -> Versus | None:
        """The makespan if the simulation had known the real step times; None where they are not known.

        This separates the simulator's error from drift of the machine since it was recorded.
        """
        computing = self.intervals.computing
        if computing is None or not computing.mean.simulated > 0.0:
            return None
        factor = computing.mean.real / computing.mean.simulated
        return Versus(self.makespan.real, self.makespan.simulated * factor)


@dataclass(frozen=True, slots=True)
class PopulationOutcomes:
    """What came of a population in the real run and in the simulation."""

    accuracy: Versus
    """Best of the last metrics of trials, at the deadline if there is one."""
    has_deadline: bool
    changes: Versus
    """Number of changes of networks."""
    changed_after: Versus | None
    """Mean number of steps after which networks were changed; None if none was in one of the runs."""


def outcomes(real: AlignedTimeline, simulated: AlignedTimeline) -> PopulationOutcomes | None:
    """Compare what came of a population; None if nothing was measured."""
    if real.accuracy is None or simulated.accuracy is None:
        return None
    here, there = ([steps for _, steps in timeline.changes] for timeline in (real, simulated))
    return PopulationOutcomes(
        Versus(real.accuracy, simulated.accuracy),
        real.has_deadline,
        Versus(len(here), len(there)),
        Versus(fmean(here), fmean(there)) if here and there else None,
    )


def compare(real: AlignedTimeline, simulated: AlignedTimeline) -> TimelineComparison:
    """Compare two timelines of the same trials or jobs."""
    _check(real, simulated)
    names = [name for name in real.lives if name in simulated.lives]
    here, there = ([timeline.lives[name] for name in names] for timeline in (real, simulated))
    return TimelineComparison(
        what=real.what,
        count=len(names),
        makespan=Versus(real.makespan_s, simulated.makespan_s),
        jct=completion([life.jct_s for life in here], [life.jct_s for life in there]),
        intervals=_intervals(real, simulated),
        starts=agreement([life.first_start_s for life in here], [life.first_start_s for life in there]),
        ends=agreement([life.end_s for life in here], [life.end_s for life in there]),
        diverged=first_divergence(real, simulated),
        outcome=outcomes(real, simulated),
    )


def _check(real: AlignedTimeline, simulated: AlignedTimeline) -> None:
    one = real.what.removesuffix("s")
    if real.what != simulated.what:
        raise InputError(
            f"{real.what} cannot be compared with {simulated.what}; give two runs of a population, "
            "or two of a trace"
        )
    for timeline, other, where in ((real, simulated, "simulated"), (simulated, real, "real")):
        missing = [name for name in timeline.lives if name not in other.lives]
        if missing and not (real.has_deadline and simulated.has_deadline):
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise InputError(
                f"{one} {missing[0]}{more} is missing in the {where} run; compare two of the same {real.what}"
            )
    if not real.lives.keys() & simulated.lives.keys():
        raise InputError(f"there are no {real.what} to compare; let the run go on until one has reported")


def completion(real_s: Sequence[float], simulated_s: Sequence[float]) -> Completion:
    """Compare completion times, given in the same order."""
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


IntervalPair = tuple[TimedInterval, TimedInterval]


def _intervals(real: AlignedTimeline, simulated: AlignedTimeline) -> Intervals:
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
        whole=_duration_error([(here.weight, here.whole_s, there.whole_s) for here, there in pairs]),
        computing=_duration_error(computing),
        same_slot=fmean(here.slots == there.slots for here, there in placed) if placed else None,
    )


def aligned(real: AlignedTimeline, simulated: AlignedTimeline) -> list[IntervalPair]:
    """Return pairs of intervals of the same trial or job with the same number and amount."""
    return [
        (here, there)
        for name, life in real.lives.items()
        if name in simulated.lives
        for here, there in zip(life.intervals, simulated.lives[name].intervals, strict=False)
        if here.amount == there.amount
    ]


def first_divergence(real: AlignedTimeline, simulated: AlignedTimeline) -> Versus | None:
    """Return when a slot first got another interval than in the other timeline; None if never."""
    here, there = _by_slot(real), _by_slot(simulated)
    last_s = (real.makespan_s, simulated.makespan_s)
    moments = (_first_other(here.get(slot, []), there.get(slot, []), last_s) for slot in {*here, *there})
    return min((moment for moment in moments if moment is not None), default=None)


Begun = tuple[float, str, float]
"""Start of an interval, its trial or job, and its amount."""


def _by_slot(timeline: AlignedTimeline) -> dict[int, list[Begun]]:
    found = grouped(
        (slot, (interval.began_s, name, interval.amount))
        for name, life in timeline.lives.items()
        for interval in life.intervals
        for slot in interval.slots
    )
    return {slot: sorted(each) for slot, each in found.items()}


def _first_other(real: list[Begun], simulated: list[Begun], last_s: tuple[float, float]) -> Versus | None:
    for here, there in zip_longest(real, simulated):
        if here is None or there is None or here[1:] != there[1:]:
            return Versus(here[0] if here else last_s[0], there[0] if there else last_s[1])
    return None


def _count(timeline: AlignedTimeline) -> int:
    return sum(len(life.intervals) for life in timeline.lives.values())


def _duration_error(times_s: Sequence[tuple[float, float, float]]) -> DurationError | None:
    if not times_s:
        return None
    weights, here_s, there_s = zip(*times_s, strict=True)
    off = [abs(there / here - 1.0) for here, there in zip(here_s, there_s, strict=True) if here > 0.0]
    mean = Versus(fmean(here_s, weights), fmean(there_s, weights))
    return DurationError(mean, 100.0 * median(off) if off else None)
