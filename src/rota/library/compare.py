"""Schedulers compared: the same jobs under each of them, with several seeds where something is random."""

import inspect
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.core.cluster import Cluster
from rota.core.costs import CostModel
from rota.core.durations import EXACT_DURATIONS, Durations, Knows, durations_of
from rota.core.errors import ConfigError, InputError, unknown
from rota.core.failures import Failures
from rota.core.intervals import mean_interval
from rota.core.placement import Types
from rota.library.inputs import NamedPolicy, named_policy, seeds_of, table_of
from rota.library.processes import Workers, call_all, check_workers, progress_bar
from rota.library.run import Run, html_of
from rota.library.simulate import (
    CostName,
    as_run,
    check_failures,
    check_inputs,
    check_types,
    cost_model,
    digest,
)
from rota.results.folder import RunFolder
from rota.results.metrics import Metrics, MetricsRow
from rota.results.metrics import table as text_table
from rota.results.run import read_run
from rota.simulator.jobs import Simulation, simulate, warm_up
from rota.workload.jobs import Workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

METRICS = tuple(field.name for field in fields(Metrics))
MOST_POINTS = 10_000
"""Largest number of runs of a grid: all are kept in memory."""
Key = tuple[Any, ...]
"""A scheduler, or a seed, and a value of each parameter of the grid."""


class Comparison:
    """Runs of several schedulers: a row for each, at each point of a grid, with each seed.

    `rota.compare` makes it.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        seeds: Sequence[int | None],
        note: str,
        points: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.runs = tuple(runs)
        """In the order of the rows."""
        self.seeds = tuple(seeds)
        """The seed of each run; None where nothing is random."""
        self.note = note
        """What was random, and what was not."""
        self.points = tuple(points) or ({},) * len(self.runs)
        """The point of the grid of each run: parameter → value."""

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, scheduler: str) -> Run:
        """Return the run of a scheduler; with several points or seeds, the first one."""
        for run in self.runs:
            if run.scheduler == scheduler:
                return run
        raise InputError(unknown("scheduler", str(scheduler), self._names))

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(run.scheduler for run in self.runs))

    def to_frame(self) -> "pd.DataFrame":
        """Return a row per run: scheduler, parameters of the grid, seed and every metric."""
        import pandas as pd

        rows = [
            {"scheduler": run.scheduler, **point, "seed": seed, **run.row()}
            for run, point, seed in self._rows
        ]
        return pd.DataFrame(rows).astype({"seed": "Int64"})

    def summary(self) -> "pd.DataFrame":
        """Return a row per scheduler: the mean of every metric, and the ends of its 95 % interval.

        With a grid there is a row per scheduler and point. Columns are (metric, `mean`), (metric, `low`),
        (metric, `high`). The interval is that of the mean over seeds, by Student's t. Of a single run there
        is no interval: its ends are NaN. `runs` says how many there are.
        """
        values: dict[Key, dict[str, list[float]]] = {}
        for run, point, _ in self._rows:
            of = values.setdefault((run.scheduler, *point.values()), {metric: [] for metric in METRICS})
            for metric, found in of.items():
                found.append(float(getattr(run.metrics, metric)))
        return self._interval_frame(values)

    def against(self, baseline: str) -> "pd.DataFrame":
        """Return how far each other scheduler is from a baseline on the same jobs, as `summary` has it.

        The differences are paired: run by run with the same seed, scheduler − baseline. An interval that
        contains 0 says that there is no difference.
        """
        base: dict[Key, dict[int | None, Run]] = {}
        for run, point, seed in self._rows:
            if run.scheduler == self[baseline].scheduler:
                base.setdefault((*point.values(),), {})[seed] = run
        values: dict[Key, dict[str, list[float]]] = {}
        for run, point, seed in self._rows:
            if run.scheduler != baseline:
                key = (*point.values(),)
                others = base[key]
                same = (
                    [others[seed]] if seed in others else list(others.values())
                )  # one of them is not random
                of = values.setdefault((run.scheduler, *key), {metric: [] for metric in METRICS})
                for metric, found in of.items():
                    now = getattr(run.metrics, metric)
                    found += [float(now - getattr(other.metrics, metric)) for other in same]
        return self._interval_frame(values)

    def _interval_frame(self, values: Mapping[Key, Mapping[str, Sequence[float]]]) -> "pd.DataFrame":
        """Return a row per scheduler and point: count of runs, and `mean`, `low`, `high` of each metric."""
        import pandas as pd

        rows: list[dict[tuple[str, str], float]] = []
        for metrics in values.values():
            row: dict[tuple[str, str], float] = {("runs", ""): len(next(iter(metrics.values())))}
            for metric, found in metrics.items():
                ends = mean_interval(found)
                row |= dict(zip(((metric, "mean"), (metric, "low"), (metric, "high")), ends, strict=True))
            rows.append(row)
        names = ["scheduler", *self.points[0]]
        index = pd.MultiIndex.from_tuples(list(values), names=names)
        frame = pd.DataFrame(rows, index=index if len(names) > 1 else index.get_level_values(0))
        frame.columns = pd.MultiIndex.from_tuples(frame.columns)
        return frame

    def plot(self, name: str, file: str | os.PathLike[str] | None = None) -> "Figure":
        """Draw a figure of the runs of the first point and seed: `jct`, `comparison`, `load` or `gantt`."""
        from rota.library.pages import draw

        first = [
            run.record
            for run, point, seed in self._rows
            if point == self.points[0] and seed in (None, self._first_seed)
        ]
        return draw(first, name, file)

    def report(self, file: str | os.PathLike[str], *, title: str = "") -> Path:
        """Write a page in HTML that shows all runs, and return where it is."""
        from rota.library.pages import write_report

        return write_report([run.record for run in self.runs], Path(file), title)

    @property
    def _rows(self) -> list[tuple[Run, Mapping[str, Any], int | None]]:
        return list(zip(self.runs, self.points, self.seeds, strict=True))

    @property
    def _first_seed(self) -> int | None:
        return next((seed for seed in self.seeds if seed is not None), None)

    def __str__(self) -> str:
        return f"{text_table(self._lines)}\n{self.note}"

    @property
    def _lines(self) -> list[MetricsRow]:
        return [
            run.line._replace(name=" ".join([run.scheduler, *_labels(point, seed)]))
            for run, point, seed in self._rows
        ]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_of(self.note, text_table(self._lines))


def compare(
    jobs: Workload | Callable[..., Workload],
    cluster: Cluster | Callable[..., Cluster],
    schedulers: Iterable[Any],
    *,
    seeds: int | Iterable[int] = 5,
    grid: Mapping[str, Sequence[Any]] | None = None,
    workers: Workers = 1,
    out: str | os.PathLike[str] | None = None,
    cost: CostName | CostModel = "restart",
    checkpoint_every_s: float = 0.0,
    types: Types = "fastest",
    failures: Failures | None = None,
    durations: Durations | Knows = EXACT_DURATIONS,
    progress: bool | None = None,
) -> Comparison:
    """Simulate the same jobs under several schedulers, side by side.

    Schedulers, `cost`, `types`, `failures` and `durations` are given as for `rota.simulate`. What is random
    is run with each of the `seeds` (a number of them, or which): `jobs` if it is a function that makes a
    workload from a seed, schedulers that have an option `seed`, and failures that are drawn. Where nothing is
    random there is one run of a scheduler, and `note` says so. All of it is done at each point of a `grid`, a
    dictionary of parameters and their values: `jobs` is then a function of a seed and of those parameters
    that it names, `cluster` may be a function of some of them. `workers` processes share the work, or with
    `"ray"` (`"ray:ADDRESS"`) the CPUs of a Ray cluster. With `out` each run is saved to a folder of its own
    in that folder as soon as it is done; called again, for example after a crash, `compare` reuses those that
    were made from the same inputs. A bar shows how far it is on a terminal and in a notebook; `progress`
    turns it on or off.

    >>> import rota
    >>> cluster = rota.Cluster.uniform(nodes=2, gpus=8)
    >>> found = rota.compare(rota.synthetic_trace(jobs=40, gpus=16), cluster, ["fifo", "srtf"])
    >>> found.to_frame()["scheduler"].tolist(), found.note
    (['fifo', 'srtf'], 'nothing is random: one run of each scheduler')
    >>> drawn = rota.compare(
    ...     lambda seed: rota.synthetic_trace(jobs=40, gpus=16, seed=seed), cluster, ["fifo", "srtf"], seeds=3
    ... )
    >>> summary = drawn.summary()
    >>> summary.loc["srtf", ("runs", "")], len(drawn)
    (np.int64(3), 6)
    >>> low, mean, high = (summary.loc["srtf", ("avg_jct_s", end)] for end in ("low", "mean", "high"))
    >>> bool(low < mean < high)
    True
    """
    model = cost_model(cost, checkpoint_every_s)
    check_types(types)
    check_failures(failures)
    known = durations_of(durations)
    check_workers(workers)
    named, drawn = _labelled(schedulers), seeds_of(seeds)
    plan = [
        task for point in _points(grid, jobs, cluster) for task in _planned(point, named, drawn, failures)
    ]
    classes = {type(task.named.policy) for task in plan}
    runs = {} if out is None else _found(plan, Path(out), model, types, known)
    left = [number for number in range(len(plan)) if number not in runs]
    calls = [
        (task.jobs, task.at.cluster, task.named.policy, model, types, task.failures, known)
        for task in map(plan.__getitem__, left)
    ]
    with progress_bar(len(plan), "run", progress, initial=len(runs)) as bar:
        for place, done in call_all(_simulated, calls, workers, classes):
            task = plan[left[place]]
            at = task.named, task.jobs, task.at.cluster
            made = as_run(*at, model, types, task.failures, done, known)
            runs[left[place]] = made.at_point(task.parameters)
            if out is not None:
                made.at_point(task.parameters).write(Path(out) / task.folder)
            bar.update()
    return Comparison(
        [runs[number] for number in range(len(plan))],
        [task.seed for task in plan],
        _note(jobs, failures, plan),
        [task.at.values for task in plan],
    )


def _labels(point: Mapping[str, Any], seed: int | None) -> list[str]:
    """Return what tells a run of a scheduler from the others: `load=0.8`, `seed 1`."""
    found = [f"{name}={value}" for name, value in point.items()]
    return found if seed is None else [*found, f"seed {seed}"]


class _Point(NamedTuple):
    """A point of the grid, and what is simulated there."""

    values: dict[str, Any]
    jobs: Workload | Callable[[int], Workload]
    cluster: Cluster


@dataclass(frozen=True, slots=True)
class _Task:
    """A run to be made."""

    at: _Point
    named: NamedPolicy
    seed: int | None
    jobs: Workload
    failures: Failures | None

    @property
    def folder(self) -> str:
        """The name of its folder: `srtf_load=0.8_seed=1`, with - for what file systems may refuse."""
        said = [self.named.name, *(f"{name}={value}" for name, value in self.parameters.items())]
        return re.sub(r"[^\w.,=()-]+", "-", " ".join(said).replace(" ", "_"))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that tell it from other runs of its scheduler."""
        plain = {
            name: value if isinstance(value, int | float | str) else str(value)
            for name, value in self.at.values.items()
        }
        return plain if self.seed is None else {**plain, "seed": self.seed}


def _found(
    plan: Sequence[_Task], out: Path, cost: CostModel, types: Types, durations: Durations
) -> dict[int, Run]:
    """Return the runs that are in their folders, by number. Raises an error if other runs are there."""
    counts = Counter(task.folder for task in plan)
    if twice := next((name for name, count in counts.items() if count > 1), None):
        raise ConfigError(f"out: two runs would be in {out / twice}; give other names, or no `out`")
    found = {}
    for number, task in enumerate(plan):
        folder = RunFolder(out / task.folder)
        if folder.complete(_digest(task, cost, types, durations)):
            found[number] = Run(read_run(folder.path), folder.config.read_text("utf-8"))
        elif folder.head.exists():
            what = "holds another run, made from other inputs or by another version of rota"
            raise InputError(f"{folder.path}: {what}; give another `out`, or delete it")
    return found


def _digest(task: _Task, cost: CostModel, types: Types, durations: Durations) -> str:
    policy = task.named.policy
    return digest(task.jobs, task.at.cluster, policy, cost, types, task.failures, durations)


def _simulated(
    jobs: Workload,
    cluster: Cluster,
    policy: Any,
    cost: CostModel,
    types: Types,
    failures: Failures | None,
    durations: Durations,
) -> Simulation:
    warm_up(policy, cost)
    return simulate(jobs, cluster, policy, cost, types=types, failures=failures, durations=durations)


def _labelled(schedulers: Iterable[Any]) -> list[NamedPolicy]:
    """Return each policy with a unique name; where a class is given twice, with its options in the name."""
    if isinstance(schedulers, str) or not isinstance(schedulers, Iterable):
        what = f"the text {schedulers!r}" if isinstance(schedulers, str) else f"a {type(schedulers).__name__}"
        raise ConfigError(f"schedulers is {what}; give a list")
    named = [named_policy(given) for given in schedulers]
    if not named:
        raise ConfigError("schedulers is empty; name at least one")
    names = [each.name for each in named]
    for at, (name, policy) in enumerate(named):
        if names.count(name) > 1:
            named[at] = NamedPolicy(f"{name}({_options(policy)})", policy)
    final = [each.name for each in named]
    for name in final:
        if final.count(name) > 1:
            raise ConfigError(f"{name} is there twice; give one of the classes another name, or a `name`")
    return named


def _options(policy: Any) -> str:
    """Return all options: `patience=2.0`."""
    if not is_dataclass(policy):
        return ""
    return ",".join(f"{field.name}={getattr(policy, field.name)}" for field in fields(policy))


def _points(grid: Mapping[str, Sequence[Any]] | None, jobs: Any, cluster: Any) -> Iterator[_Point]:
    """Return the points of a grid, the last parameter varying fastest; of none, one without a parameter."""
    axes = {name: _axis(name, values) for name, values in table_of("grid", grid).items()}
    taken = {name: _names_of(given) for name, given in (("jobs", jobs), ("cluster", cluster))}
    for name, values in axes.items():
        if not values:
            raise ConfigError(f"grid: {name} has no values; give at least one")
        if not any(name in names for names in taken.values()):
            raise ConfigError(
                f"grid: neither jobs nor cluster take {name}; write jobs=lambda seed, {name}: …, or drop it"
            )
    if math.prod(map(len, axes.values())) > MOST_POINTS:
        raise ConfigError(f"grid: more than {MOST_POINTS:,} points; leave some values out")
    for chosen in product(*axes.values()):
        point = dict(zip(axes, chosen, strict=True))
        of_jobs = {name: value for name, value in point.items() if name in taken["jobs"]}
        of_cluster = {name: value for name, value in point.items() if name in taken["cluster"]}
        made = cluster
        if callable(cluster):
            _check_call("cluster", cluster, (), of_cluster)
            made = cluster(**of_cluster)
        if callable(jobs):
            _check_call("jobs", jobs, (0,), of_jobs)
        yield _Point(point, partial(jobs, **of_jobs) if callable(jobs) else jobs, made)


def _axis(name: str, values: Any) -> list[Any]:
    """Return the values of a parameter."""
    if name == "seed":
        raise ConfigError("grid: seed is no parameter; give seeds=[1, 2]")
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ConfigError(f"grid: {name} is {values!r}; give a list of its values")
    return list(values)


def _names_of(given: Any) -> Container[str]:
    """Return the parameters that a function takes by name; none if it is not a function."""
    parameters = inspect.signature(given).parameters if callable(given) else {}
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    return _Anything() if takes_all else parameters


class _Anything:
    """An object that has every attribute."""

    def __contains__(self, name: object) -> bool:
        return True


def _check_call(what: str, function: Callable[..., Any], given: tuple[int, ...], named: Any) -> None:
    """Raise an error that says how a function is called, if it cannot be called so."""
    try:
        inspect.signature(function).bind(*given, **named)
    except TypeError:
        words = ", ".join([*(["seed"] * len(given)), *named])
        raise ConfigError(f"{what}: is called with ({words}); write lambda {words}: …") from None


def _planned(
    at: _Point, named: list[NamedPolicy], seeds: list[int], failures: Failures | None
) -> list[_Task]:
    """Return what to run at a point: scheduler by scheduler, seed by seed."""
    jobs = at.jobs
    fixed = None if callable(jobs) else jobs
    if fixed is not None:
        check_inputs(fixed, at.cluster)
    drawn = {seed: jobs(seed) for seed in seeds} if callable(jobs) else {}
    for each in drawn.values():
        check_inputs(each, at.cluster)
    plan: list[_Task] = []
    for name, policy in named:
        fails = failures is not None and failures.is_random
        if fixed is not None and not _is_random(policy) and not fails:
            plan.append(_Task(at, NamedPolicy(name, policy), None, fixed, failures))
            continue
        for seed in seeds:
            seeded = replace(policy, seed=seed) if _is_random(policy) else policy  # type: ignore[type-var]
            fallible = replace(failures, seed=seed) if failures else None
            plan.append(_Task(at, NamedPolicy(name, seeded), seed, drawn.get(seed, fixed), fallible))  # type: ignore[arg-type]
    return plan


def _is_random(policy: Any) -> bool:
    return is_dataclass(policy) and any(field.name == "seed" for field in fields(policy))


def _note(jobs: Any, failures: Failures | None, plan: list[_Task]) -> str:
    random = list(dict.fromkeys(task.named.name for task in plan if task.seed is not None))
    seeds = len({task.seed for task in plan if task.seed is not None})
    if not random:
        return "nothing is random: one run of each scheduler"
    if callable(jobs):
        return f"jobs are drawn from {seeds} seeds"
    if failures is not None and failures.is_random:
        return f"failures are drawn from {seeds} seeds"
    return f"random with {seeds} seeds: {', '.join(random)}; one run of each of the others"
