"""Runs at the points of a grid, of traces or of populations, for figures and reports."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from rota.core.grouped import grouped
from rota.figures.page import ALLOCATIONS, SCHEDULERS, allocation_colour, in_palette, scheduler_colour
from rota.results.metrics import Metrics
from rota.results.parameters import Labels, Parameters, in_order, is_seed, shown, value_of
from rota.results.population.repetition import Repetition
from rota.results.population.run import PopulationRecord
from rota.results.population.summary import at_points
from rota.results.run import RunHead

MetricKind = Literal["time", "number", "share"]

MOST_POINTS = 12
"""Largest number of points of a grid that are shown one by one; larger grids are only summed up."""


class OfGrid(Protocol):
    """A run with a folder and a point of a grid."""

    @property
    def folder(self) -> Any: ...
    @property
    def parameters(self) -> Parameters: ...


R = TypeVar("R", bound=OfGrid)


class GridMetric(NamedTuple):
    """A metric and its unit."""

    name: str
    kind: MetricKind


class GridRun(NamedTuple):
    """One policy at one point: its metrics in each repetition."""

    policy: str
    parameters: Parameters
    command: str
    repetitions: tuple[dict[str, float], ...]
    """Values by metric, for each repetition."""


@dataclass(frozen=True)
class ParameterGrid:
    """Runs at the points of one grid."""

    name: str
    """Name of its folder."""
    kind: Literal["scheduler", "allocation"]
    metrics: tuple[GridMetric, ...]
    """Metrics that were measured, the most important one first."""
    runs: tuple[GridRun, ...]

    @cached_property
    def labels(self) -> Labels:
        """The names and values of the parameters in texts."""
        return Labels(run.parameters for run in self.runs)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Parameters that vary, except seeds."""
        return tuple(key for key in self.labels.keys if not is_seed(key))

    @cached_property
    def seeds(self) -> tuple[str, ...]:
        """Seeds that vary."""
        return tuple(key for key in self.labels.keys if is_seed(key))

    @cached_property
    def policies(self) -> list[str]:
        """All policies, in the order of the colours."""
        palette = SCHEDULERS if self.kind == "scheduler" else ALLOCATIONS
        return in_palette((run.policy for run in self.runs), palette)

    @cached_property
    def points(self) -> int:
        """The number of points."""
        return len({shown(run.parameters) for run in self.runs})

    @cached_property
    def repetitions(self) -> int:
        """The largest number of values of a mean."""
        seeds = {tuple(value_of(run.parameters, key) for key in self.seeds) for run in self.runs}
        return len(seeds) * max(len(run.repetitions) for run in self.runs)

    @cached_property
    def missing(self) -> int:
        """The number of runs that a complete grid would have in addition."""
        sizes = [len({value_of(run.parameters, key) for run in self.runs}) for key in self.labels.keys]
        return math.prod(sizes) * len(self.policies) - len(self.runs)

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """The commands that made the runs, each once."""
        return tuple(dict.fromkeys(run.command for run in self.runs))

    def colour(self, policy: str) -> str:
        """Return the colour of a policy."""
        return scheduler_colour(policy) if self.kind == "scheduler" else allocation_colour(policy)


TRACE_METRICS: dict[GridMetric, Callable[[Metrics], float]] = {
    GridMetric("average JCT", "time"): lambda found: found.avg_jct_s,
    GridMetric("99th percentile JCT", "time"): lambda found: found.p99_jct_s,
    GridMetric("makespan", "time"): lambda found: found.makespan_s,
}
POPULATION_METRICS: dict[GridMetric, Callable[[Repetition], float | None]] = {
    GridMetric("makespan", "time"): lambda found: found.makespan_s,
    GridMetric("makespan ÷ lower bound", "number"): lambda found: found.makespan_s / found.lower_bound_s,
    GridMetric("best accuracy", "share"): lambda found: found.best_accuracy,
}


def by_grid(runs: Iterable[R]) -> list[list[R]]:
    """Return the runs of each grid, point by point: runs with the same parent folder and parameters."""
    found = grouped(
        ((run.folder.path.absolute().parent.parent, *sorted(run.parameters)), run)
        for run in runs
        if run.parameters
    )
    return [
        sorted(members, key=lambda run: in_order(run.parameters, run.parameters))
        for members in found.values()
    ]


def large(runs: Iterable[R]) -> list[R]:
    """Return the runs of grids that have too many points to be shown one by one."""
    grids = by_grid(runs)
    return [run for members in grids if point_count(members) > MOST_POINTS for run in members]


def point_count(runs: Iterable[OfGrid]) -> int:
    """Return the number of different points."""
    return len({shown(run.parameters) for run in runs})


def trace_grid(runs: Sequence[RunHead]) -> ParameterGrid:
    """Return the grid of some runs of traces."""
    made = [
        GridRun(
            run.scheduler,
            run.parameters,
            run.command,
            ({metric.name: of(run.metrics) for metric, of in TRACE_METRICS.items()},),
        )
        for run in runs
    ]
    return ParameterGrid(_name(runs), "scheduler", tuple(TRACE_METRICS), tuple(made))


def population_grid(runs: Sequence[PopulationRecord]) -> ParameterGrid:
    """Return the grid of some populations, with a common lower bound at each point."""
    grounded = at_points([shown(run.parameters) for run in runs], [run.summary for run in runs])
    made = [
        GridRun(summary.allocation, run.parameters, run.command, tuple(map(_measured, summary.repetitions)))
        for run, summary in zip(runs, grounded, strict=True)
    ]
    known = {name for run in made for each in run.repetitions for name in each}
    metrics = tuple(metric for metric in POPULATION_METRICS if metric.name in known)
    return ParameterGrid(_name(runs), "allocation", metrics, tuple(made))


def _measured(repetition: Repetition) -> dict[str, float]:
    values = {metric.name: of(repetition) for metric, of in POPULATION_METRICS.items()}
    return {name: value for name, value in values.items() if value is not None}


def _name(runs: Sequence[OfGrid]) -> str:
    path: Path = runs[0].folder.path
    return path.absolute().parent.parent.name or "grid"
