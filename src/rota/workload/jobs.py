"""Workloads: the jobs of a trace as columns, sorted by submit time; missing columns are drawn."""

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from rota.core import columns as c
from rota.core.arrays import Floats, distinct
from rota.core.cluster import Cluster
from rota.core.errors import ConfigError, InputError, TraceError
from rota.core.failures import RecordedFailures
from rota.core.limits import at_least
from rota.core.sizes import GangSizes
from rota.workload.history import JobHistory
from rota.workload.profiles import MODELS, profiled_s, startups_s
from rota.workload.sizes import Sizes, check_sizes, sizes_around, smallest_gangs

if TYPE_CHECKING:
    from pandas import DataFrame


Numbers = Sequence[float] | Floats

_NUMBERS = ("submit_s", "gpus", "iterations", "iteration_s", "duration_s", "startup_s", "priority")
SHOWN = 10  # jobs in a notebook

UNNAMED = "unnamed"
"""Model of jobs whose trace names none."""

_LIMITS = (
    # column, lowest value, whether that value itself is already too low
    ("submit_s", 0.0, False),
    ("gpus", 0.0, True),
    ("duration_s", 0.0, False),
    ("iteration_s", 0.0, True),
    ("stages_s", 0.0, False),
    ("iterations", 0.0, True),
    ("priority", 0.0, False),
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Workload:
    """Training jobs, one per position of every column, by submit time.

    `rota.read_trace` and `rota.synthetic_trace` make workloads; the methods return subsets and variants.

    >>> import rota
    >>> jobs = rota.synthetic_trace(jobs=100, gpus=64, seed=1)
    >>> jobs.head(10)
    Workload('synthetic-1', 10 jobs)
    >>> len(jobs.between(0, 3600)) < len(jobs.scale_load(2.0).between(0, 3600))
    True
    >>> jobs.to_frame().loc["0", ["submit_s", "gpus"]].tolist()
    [0.0, 4.0]
    """

    name: str
    ids: tuple[str, ...]
    submit_s: Floats
    gpus: Floats
    """Gang size; below 1 it is a fraction of one GPU."""
    iterations: Floats
    iteration_s: Floats
    """Seconds per iteration, alone on the reference device."""
    duration_s: Floats
    """What the trace says the job took; a solo run takes iterations × iteration_s."""
    stages_s: Floats
    """Three rows: seconds of loading, computing and synchronising in an iteration; all 0 if not known."""
    startup_s: Floats
    """Seconds that each start takes."""
    priority: NDArray[np.int64]
    """0 guaranteed, 1 opportunistic."""
    model: NDArray[np.int64]
    models: tuple[str, ...]
    """Names of the numbers in `model`, in order of first appearance."""
    group: NDArray[np.int64]
    groups: tuple[str, ...]
    """Names of the numbers in `group`: who submitted a job, or else its model, as far as the trace says."""
    kinds: tuple[tuple[str, ...], ...] = ()
    """Device kinds that each job may run on, empty for any; no entry at all if all may run anywhere."""
    speeds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Device kind → model → measured speed, if the trace has measurements."""
    sizes: tuple[Sizes, ...] = ()
    """Gang sizes that each job may have, its own among them, with the seconds per iteration; none for a job
    that is rigid; no entry at all if all are."""
    failed_after_s: tuple[tuple[float, ...], ...] = ()
    """Seconds on its slots after which each failed attempt of a job failed, but for its last attempt; no
    entry at all if the trace does not say."""
    failed: tuple[bool, ...] = ()
    """Whether each job had failed when it ended; no entry at all if the trace does not say."""
    history: JobHistory | None = None
    """Jobs that had ended before these came."""
    notes: tuple[str, ...] = ()
    """Assumptions about what the trace does not contain."""

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Workload({self.name!r}, {counted(len(self))})"

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        table = self.head(min(len(self), SHOWN)).to_frame().to_html(border=0)
        return f"<p>{html.escape(self.name)}: {counted(len(self))}</p>{table}<ul>{notes}</ul>"

    @property
    def solo_s(self) -> Floats:
        """The seconds that each job takes alone."""
        return self.iterations * self.iteration_s

    @property
    def has_stages(self) -> NDArray[np.bool_]:
        """Whether the stages of each job are known; a job without them never shares GPUs."""
        return np.asarray(self.stages_s.any(axis=0), np.bool_)

    @property
    def says_only_duration(self) -> NDArray[np.bool_]:
        """Whether only the duration of each job is known: iterations then count as 1 s each."""
        found = ~self.has_stages & (self.iteration_s == 1.0) & (self.iterations == self.duration_s)
        return np.asarray(found, np.bool_)

    @property
    def gpu_s(self) -> float:
        """The total GPU time of all jobs, in seconds."""
        return float(np.sum(self.solo_s * self.gpus))

    def head(self, jobs: int) -> "Workload":
        """Return the first `jobs` jobs; raise InputError if that is below 1."""
        if jobs < 1:
            raise InputError(f"{self.name}: cannot keep the first {jobs} jobs; ask for at least 1")
        return self if jobs >= len(self) else self.take(np.arange(jobs))

    def between(self, start_s: float, end_s: float) -> "Workload":
        """Return the jobs submitted in [start_s, end_s), in seconds after the first; raise if none."""
        since_s = self.submit_s - self.submit_s[0]
        rows = np.flatnonzero((since_s >= start_s) & (since_s < end_s))
        if not len(rows):
            raise InputError(
                f"{self.name}: no job is submitted from {start_s:g} to {end_s:g} s after the first one; "
                f"the last one is after {since_s[-1]:g} s"
            )
        return self.take(rows)

    def window(self, first: int, jobs: int) -> "Workload":
        """Return so many consecutive jobs, from number `first` on, the first of them submitted at 0 s.

        Raises InputError if there are not that many.
        """
        if first < 0 or jobs < 1 or first + jobs > len(self):
            raise InputError(
                f"{self.name}: has {counted(len(self))}; cannot take {jobs} from number {first} on"
            )
        found = self.take(np.arange(first, first + jobs))
        return replace(found, submit_s=found.submit_s - found.submit_s[0])

    def scale_load(self, factor: float) -> "Workload":
        """Return the same jobs, submitted `factor` (> 0) times as fast: `2` doubles the load."""
        if not 0.0 < factor < np.inf:
            raise InputError(f"{self.name}: the load cannot be scaled by {factor}; give a number above 0")
        first_s = self.submit_s[0]
        return replace(self, submit_s=first_s + (self.submit_s - first_s) / factor)

    def to_frame(self) -> "DataFrame":
        """Return the jobs as a pandas DataFrame, one row per job, with the columns of rota's CSV format."""
        import pandas as pd

        load_s, compute_s, sync_s = self.stages_s
        columns = {
            "submit_s": self.submit_s,
            "gpus": self.gpus,
            "duration_s": self.duration_s,
            "model": pd.Categorical.from_codes(self.model, list(self.models)),
            "iterations": self.iterations,
            "iteration_s": self.iteration_s,
            "load_s": load_s,
            "compute_s": compute_s,
            "sync_s": sync_s,
            "startup_s": self.startup_s,
            "priority": self.priority,
            "group": pd.Categorical.from_codes(self.group, list(self.groups)),
        }
        return pd.DataFrame(columns, index=pd.Index(self.ids, name="id"))

    def scaled(self, factor: float) -> "Workload":
        """Return the same jobs with all times scaled; iteration times do not change."""
        iterations, history = self.iterations * factor, self.history
        return replace(
            self,
            history=history and replace(history, solo_s=history.solo_s * factor),
            submit_s=self.submit_s * factor,
            duration_s=self.duration_s * factor,
            iterations=np.where(self.says_only_duration, iterations, np.maximum(iterations, 1.0)),
            failed_after_s=tuple(tuple(factor * at_s for at_s in each) for each in self.failed_after_s),
        )

    def with_startup(self, startup_s: float) -> "Workload":
        """Return the same jobs with a start-up of so many seconds."""
        if not 0.0 <= startup_s < np.inf:
            raise InputError(f"startup_s is {startup_s:g}; it must be 0 or more")
        return replace(self, startup_s=np.full(len(self), float(startup_s)))

    def elastic(self, smallest: float = 0.5, largest: float = 2.0, serial: float = 0.1) -> "Workload":
        """Return the same jobs with gangs that may be smaller or larger, under policies that resize them.

        A job that asks for g GPUs may have g × 2^k of them, from `smallest` × g to `largest` × g.
        An iteration takes (serial + (1 − serial) × g ÷ GPUs) times as long as with g.

        >>> import rota
        >>> jobs = rota.synthetic_trace(jobs=50, gpus=16, seed=1).elastic()
        >>> cluster = rota.Cluster.uniform(nodes=2, gpus=8)
        >>> rigid, elastic = (rota.simulate(jobs, cluster, name).metrics for name in ("srtf", "elastic"))
        >>> elastic.resizes > rigid.resizes == 0, elastic.avg_jct_s < rigid.avg_jct_s
        (True, True)
        """
        found = sizes_around(self.gpus, self.iteration_s, (smallest, largest), serial)
        return replace(self, sizes=found if any(found) else ())

    def gang_sizes(self, cluster: Cluster) -> GangSizes | None:
        """Return the sizes of gangs, as an engine reads them; None if all jobs are rigid."""
        if not self.sizes:
            return None
        if cluster.slots_per_gpu > 1:
            raise ConfigError(
                "gangs of several sizes cannot be combined with slots_per_gpu: give one of them"
            )
        return GangSizes.of(self.sizes)

    def noted(self, note: str) -> "Workload":
        """Return the same jobs with one more note."""
        return replace(self, notes=(*self.notes, note))

    def take(self, rows: NDArray[np.int64]) -> "Workload":
        """Return these rows, with only the models that they name."""
        numbers, models = _numbered([self.models[number] for number in self.model[rows].tolist()])
        group, groups = _numbered([self.groups[number] for number in self.group[rows].tolist()])
        return replace(
            self,
            ids=tuple(self.ids[row] for row in rows.tolist()),
            stages_s=self.stages_s[:, rows],
            model=numbers,
            models=models,
            group=group,
            groups=groups,
            speeds={kind: {m: row[m] for m in models if m in row} for kind, row in self.speeds.items()},
            kinds=_picked(self.kinds, rows),
            sizes=_picked(self.sizes, rows),
            failed_after_s=_picked(self.failed_after_s, rows),
            failed=_picked(self.failed, rows),
            **{name: getattr(self, name)[rows] for name in _NUMBERS},
        )

    @property
    def recorded_failures(self) -> RecordedFailures:
        """What failed in the trace, as an engine reads it."""
        found = RecordedFailures.none(len(self))
        if self.failed:
            found.for_good[:] = self.failed
        if self.failed_after_s:
            counts = [len(each) for each in self.failed_after_s]
            after_s = np.array([at_s for each in self.failed_after_s for at_s in each], np.float64)
            found = replace(found, begin=np.concatenate(([0], np.cumsum(counts))), after_s=after_s)
        return found

    def table(self, cluster: Cluster, *, smallest: bool = False) -> Floats:
        """Return the jobs as the columns of `rota.core.columns`, for this cluster.

        With `smallest`, jobs ask for their smallest gang.
        """
        gpus, iteration_s = self.gpus, self.iteration_s
        if smallest:
            gpus, iteration_s = smallest_gangs(self.sizes, gpus, iteration_s)
        slots = np.ceil(gpus * cluster.slots_per_gpu - 1e-9)
        self._check_fit(slots, cluster)
        table = np.zeros((c.GIVEN, len(self)))
        table[c.REMAINING] = self.iterations
        table[c.ITERATION_S] = iteration_s
        table[c.STARTUP_S] = self.startup_s
        table[c.GPUS] = slots
        table[c.SUBMIT_S] = self.submit_s
        table[c.DURATION_S] = self.duration_s
        table[c.PRIORITY] = self.priority
        table[c.LOAD_S : c.SYNC_S + 1] = self.stages_s
        table[c.MODEL] = self.model
        table[c.PROFILE] = distinct(np.vstack([slots, self.iteration_s, self.stages_s]))
        table[c.GROUP] = distinct(np.vstack([self.group, slots]))
        table[c.KINDS] = self._kind_sets(cluster)
        table[c.ITERATIONS] = table[c.ESTIMATE] = self.iterations
        table[c.JOB] = np.arange(len(self))
        return table

    def _kind_sets(self, cluster: Cluster) -> Floats:
        if not self.kinds:
            return np.full(len(self), -1.0)
        bits = {kind: 1 << number for number, kind in enumerate(cluster.kinds)}
        return np.array([sum(bits.get(kind, 0) for kind in set(kinds)) or -1 for kinds in self.kinds], float)

    def _check_fit(self, slots: Floats, cluster: Cluster) -> None:
        """Raise if a job does not fit on the empty cluster's nodes that it may use."""
        for row in np.flatnonzero(slots > cluster.slots)[:1]:
            raise InputError(
                f"{self.name}: job {self.ids[row]} needs {self.gpus[row]:g} GPUs; the cluster has "
                f"{cluster.slots // cluster.slots_per_gpu}. Use a larger cluster or leave the job out"
            )
        room = {
            kind: sum(node.slots for node in cluster.nodes if node.kind == kind) for kind in cluster.kinds
        }
        for row, kinds in enumerate(self.kinds):
            if kinds and slots[row] > sum(room.get(kind, 0) for kind in set(kinds)):
                has = ", ".join(f"{size // cluster.slots_per_gpu} {kind}" for kind, size in room.items())
                needs = f"{self.gpus[row]:g} GPUs of kind {' or '.join(kinds)}"
                raise InputError(f"{self.name}: job {self.ids[row]} needs {needs}; the cluster has {has}")


def workload(
    name: str,
    ids: Sequence[str],
    submit_s: Numbers,
    gpus: Numbers,
    model: Sequence[str],
    *,
    duration_s: Numbers,
    iterations: Numbers | None = None,
    iteration_s: Numbers | None = None,
    stages_s: Sequence[Numbers] | Floats | None = None,
    startup_s: Numbers | None = None,
    priority: Sequence[int] | NDArray[np.int64] | None = None,
    group: Sequence[str] | None = None,
    kinds: Sequence[tuple[str, ...]] = (),
    speeds: Mapping[str, Mapping[str, float]] | None = None,
    sizes: Sequence[Sizes] = (),
    failed_after_s: Sequence[tuple[float, ...]] = (),
    failed: Sequence[bool] = (),
    notes: Sequence[str] = (),
) -> Workload:
    """Return a workload from plain sequences, sorted by submit time (ties keep their order).

    A missing iteration time, stage or start-up (no column, or NaN) is that of the model's profile; missing
    iterations are as many as fill the duration. A model without a profile is a mere name: its iterations
    share the duration, or take 1 s each if their number is missing, and have no stages. A job without a
    group is in that of its model.
    """
    if not len(ids):
        raise TraceError(f"{name}: no jobs in it")
    asked, seconds = np.array(gpus, float), np.array(duration_s, float)
    numbers, models = _numbered(model)
    of_group, groups = (numbers, models) if group is None else _numbered(group)
    profile_s = profiled_s(models, numbers, asked)
    with np.errstate(all="ignore"):  # what comes of it is checked below
        per_iteration = _filled(iteration_s, _filled(profile_s[0], _shared_s(seconds, iterations)))
        filling = seconds / per_iteration
    jobs = Workload(
        name=name,
        ids=tuple(ids),
        submit_s=np.array(submit_s, float),
        gpus=asked,
        iterations=_filled(iterations, filling),
        iteration_s=per_iteration,
        duration_s=seconds,
        stages_s=_filled(stages_s, np.nan_to_num(profile_s[1:])),
        startup_s=_filled(startup_s, startups_s(models, numbers, asked)),
        priority=np.zeros(len(ids), np.int64) if priority is None else np.array(priority, np.int64),
        model=numbers,
        models=models,
        group=of_group,
        groups=groups,
        kinds=tuple(kinds) if any(kinds) else (),
        speeds=speeds or {},
        sizes=tuple(sizes) if any(sizes) else (),
        failed_after_s=tuple(failed_after_s) if any(failed_after_s) else (),
        failed=tuple(failed) if any(failed) else (),
        notes=tuple(notes),
    )
    _check(jobs)
    _check_attempts(jobs)
    in_order = (np.diff(jobs.submit_s) >= 0.0).all() and not jobs.speeds
    return _noted(jobs) if in_order else _noted(jobs).take(np.argsort(jobs.submit_s, kind="stable"))


Entry = TypeVar("Entry")


def _picked(column: tuple[Entry, ...], rows: NDArray[np.int64]) -> tuple[Entry, ...]:
    """Return these rows of a column that may have no entry at all."""
    return tuple(column[row] for row in rows.tolist()) if column else ()


def counted(jobs: int) -> str:
    """Return a counted noun: `1 job`, `1,000 jobs`."""
    return f"{jobs:,} job{'' if jobs == 1 else 's'}"


def _numbered(model: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return each job's model as a number, and the names in order of first appearance."""
    models = {name: number for number, name in enumerate(dict.fromkeys(model))}
    return np.fromiter(map(models.__getitem__, model), np.int64, len(model)), tuple(models)


def _filled(given: Sequence[float] | Sequence[Numbers] | Floats | None, default: Floats) -> Floats:
    """Return the given values, and the default where they are missing."""
    if given is None:
        return default
    values = np.asarray(given, float)
    return np.where(np.isnan(values), default, values) if values.shape == default.shape else values


def _shared_s(duration_s: Floats, iterations: Numbers | None) -> Floats:
    """Return the duration divided by iterations; 1 s where their number is missing."""
    counts = _filled(iterations, duration_s)
    return duration_s / counts if counts.shape == duration_s.shape else np.ones_like(duration_s)


def _check(jobs: Workload) -> None:
    """Raise for the first job with an impossible value."""
    hashes = np.sort(np.fromiter(map(hash, jobs.ids), np.int64, len(jobs)))  # a set would take half a GB
    if (np.diff(hashes) == 0).any() and len(set(jobs.ids)) != len(jobs):
        twice = Counter(jobs.ids).most_common(1)[0][0]
        raise TraceError(f"{jobs.name}: job id {twice!r} appears more than once; ids must be unique")
    for text in chain(jobs.ids, jobs.models, jobs.groups):
        if not text or text != text.strip():
            raise TraceError(f"{jobs.name}: {text!r} is not a name: it is empty or has blanks around it")
    for name in ("group", "kinds", "sizes", "failed_after_s", "failed"):
        entries = len(getattr(jobs, name))
        if entries != len(jobs) and (entries or name == "group"):
            raise TraceError(f"{jobs.name}: {name} has {entries} entries for {len(jobs)} jobs")
    for name, low, open_below in _LIMITS:
        column = np.atleast_2d(getattr(jobs, name))
        if column.shape[1] != len(jobs):
            raise TraceError(f"{jobs.name}: {name} has {column.shape[1]} entries for {len(jobs)} jobs")
        right = np.isfinite(column) & ((column > low) if open_below else (column >= low))
        if not right.all():
            limit = f"a finite number {'above' if open_below else 'of at least'} {low:g}"
            job = jobs.ids[int(np.argmin(right.all(axis=0)))]
            raise TraceError(f"{jobs.name}: job {job!r}: {name} must be {limit}")


def _check_attempts(jobs: Workload) -> None:
    """Raise for the first job with an impossible attempt or gang size."""
    check_sizes(jobs.name, jobs.ids, jobs.gpus, jobs.iteration_s, jobs.sizes)
    for job, each in zip(jobs.ids, jobs.failed_after_s, strict=False):
        if not all(0.0 < at_s < np.inf for at_s in each):
            raise TraceError(f"{jobs.name}: job {job!r}: failed_after_s must be finite numbers above 0")


def _noted(jobs: Workload) -> Workload:
    """Return the same jobs, with notes on what schedulers cannot do with some of them."""
    alone = int(np.count_nonzero(~jobs.has_stages))
    if alone:
        jobs = jobs.noted(
            f"no stages known for {counted(alone)}: schedulers that share GPUs run them alone; "
            "draw_models (--draw-models) gives every job a model that has stages"
        )
    fractions = int(np.count_nonzero(jobs.gpus != np.ceil(jobs.gpus)))
    if fractions:
        jobs = jobs.noted(
            f"{fractions:,} of {len(jobs):,} jobs ask for a fraction of a GPU: "
            "each gets a whole one unless the cluster's slots_per_gpu is above 1"
        )
    return jobs


def draw_models(jobs: int, seed: int, models: Sequence[str] = MODELS) -> list[str]:
    """Return a model for each job without one."""
    return [models[i] for i in generator(seed).integers(len(models), size=jobs).tolist()]


def draw_priorities(jobs: int, seed: int) -> NDArray[np.int64]:
    """Return random priorities, 0 (guaranteed) or 1 (opportunistic) with equal probability."""
    return generator(seed, 1).integers(2, size=jobs)


def models_note(jobs: int, seed: int) -> str:
    """Return the note on jobs whose models were drawn."""
    measured = f"the {len(MODELS)} measured ones"
    return f"no model in the trace for {counted(jobs)}: drawn from {measured} with seed {seed}"


def priorities_note(jobs: int, seed: int) -> str:
    """Return the note on jobs whose priorities were drawn."""
    drawn = f"drawn, half of them opportunistic, with seed {seed}"
    return f"no priority in the trace for {counted(jobs)}: {drawn}"


def generator(seed: int, *stream: int) -> np.random.Generator:
    """Return a random generator for one stream of a seed."""
    at_least(0, seed=seed)
    return np.random.default_rng([seed, *stream] if stream else seed)
