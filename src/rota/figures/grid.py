"""Metrics against the parameters of a grid: a line per policy, means over seeds with 95 % intervals."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter
from matplotlib.transforms import ScaledTranslation

from rota.core.intervals import mean_interval
from rota.figures.grid_runs import GridMetric, GridRun, ParameterGrid
from rota.figures.groups import DrawnFigure, Options
from rota.figures.page import INK, footer, log_durations, new_page, plain, unit_for
from rota.results.parameters import in_order, is_number, value_of

DECADE = 10.0
WIDE = 30.0
"""Ratio of times from which their axis is logarithmic."""
MOST_FACETS, ACROSS = 12, 4
"""Largest number of panels of combinations of parameters, and of those side by side."""
DODGE, APART_IN = 0.6, 0.025
"""Distance between policies: as a share of a category's room, and in inches at a number."""
MOST_TICKS, ROOM = 6, 26
"""Largest number of values with a mark each, and of characters that fit below a panel."""
MARKERS = "osD^vP*X<>"


class GridAxis(NamedTuple):
    """The positions of a parameter's values."""

    name: str
    values: tuple[str, ...]
    """Values in order, as text that is the same for equal values."""
    names: tuple[str, ...]
    """Labels of the values."""
    places: tuple[float, ...]
    numeric: bool
    """Whether positions are the values themselves; else they are categories 0, 1, …"""
    log: bool


class GridLine(NamedTuple):
    """A metric of one policy at the values of a parameter; NaN where there is none."""

    policy: str
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    """Ends of the 95 % interval of the mean over seeds; NaN for a single seed."""


class GridPanel(NamedTuple):
    """One metric against one parameter."""

    metric: GridMetric
    axis: GridAxis
    lines: tuple[GridLine, ...]
    title: str = ""


def panels(grid: ParameterGrid) -> list[GridPanel]:
    """Return each metric against each parameter, averaged over the other ones."""
    axes = [axis_of(grid, key) for key in grid.keys] or [_seeds_axis(grid)]
    keys = grid.keys or ("",)
    return [
        GridPanel(metric, axis, lines_of(grid, grid.runs, metric, key, axis))
        for metric in grid.metrics
        for key, axis in zip(keys, axes, strict=True)
    ]


def facets(grid: ParameterGrid) -> list[GridPanel]:
    """Return the first metric against the longest axis, a panel for each combination of the others.

    Empty if there is one parameter only, or too many combinations.
    """
    if len(grid.keys) < 2:
        return []
    axes = {key: axis_of(grid, key) for key in grid.keys}
    along = max(grid.keys, key=lambda key: (axes[key].numeric, len(axes[key].values)))
    others = [key for key in grid.keys if key != along]
    runs = sorted(grid.runs, key=lambda run: in_order(run.parameters, others))
    members = [list(found) for _, found in groupby(runs, lambda run: in_order(run.parameters, others))]
    if len(members) > MOST_FACETS:
        return []
    labels, metric = grid.labels, grid.metrics[0]
    return [
        GridPanel(
            metric,
            axes[along],
            lines_of(grid, found, metric, along, axes[along]),
            labels.text(found[0].parameters, others),
        )
        for found in members
    ]


def axis_of(grid: ParameterGrid, key: str) -> GridAxis:
    """Return the positions of a parameter's values: by size if they are numbers, else one by one."""
    points = {value_of(run.parameters, key): run.parameters for run in grid.runs}
    numeric = all(is_number(point.get(key)) for point in points.values())
    if numeric:
        points = dict(sorted(points.items(), key=lambda item: in_order(item[1], [key])))
    numbers = [float(point[key]) for point in points.values()] if numeric else []  # type: ignore[arg-type]
    return GridAxis(
        name=grid.labels.names[key],
        values=tuple(points),
        names=tuple(grid.labels.value(point, key) for point in points.values()),
        places=tuple(numbers or map(float, range(len(points)))),
        numeric=numeric,
        log=numeric and is_geometric(numbers),
    )


def _seeds_axis(grid: ParameterGrid) -> GridAxis:
    return GridAxis("", ("",), (f"{grid.repetitions} seeds",), (0.0,), numeric=False, log=False)


def is_geometric(values: Sequence[float]) -> bool:
    """Whether sorted numbers span a decade or more, and are more even on a logarithmic axis."""
    if len(values) < 2 or values[0] <= 0.0 or values[-1] < DECADE * values[0]:
        return False
    return _unevenness([math.log(value) for value in values]) <= _unevenness(values)


def _unevenness(values: Sequence[float]) -> float:
    gaps = [high - low for low, high in pairwise(values)]
    return max(gaps) / min(gaps) if min(gaps) > 0.0 else math.inf


def lines_of(
    grid: ParameterGrid, runs: Sequence[GridRun], metric: GridMetric, key: str, axis: GridAxis
) -> tuple[GridLine, ...]:
    """Return a line per policy: with each seed the mean over the other parameters, then that over seeds."""
    found: dict[tuple[str, str], dict[tuple[object, ...], list[float]]] = {}
    for run in runs:
        seeds = tuple(value_of(run.parameters, seed) for seed in grid.seeds)
        at = found.setdefault((run.policy, value_of(run.parameters, key) if key else ""), {})
        for number, values in enumerate(run.repetitions):
            if metric.name in values:
                at.setdefault((*seeds, number), []).append(values[metric.name])
    lines = []
    for policy in grid.policies:
        ends = [_interval(found.get((policy, value), {}).values()) for value in axis.values]
        lines.append(GridLine(policy, *map(tuple, zip(*ends, strict=True))))
    return tuple(lines)


def _interval(seeds: Iterable[Sequence[float]]) -> tuple[float, float, float]:
    means = [math.fsum(values) / len(values) for values in seeds]
    return mean_interval(means) if means else (math.nan, math.nan, math.nan)


def caption(grid: ParameterGrid, *, averaged: bool) -> str:
    """Return a description of the lines."""
    count = grid.repetitions
    seeds = f"mean over {count} seeds, with its 95 % interval" if count > 1 else "one seed each: no interval"
    others = "; averaged over the other parameters" if averaged and len(grid.keys) > 1 else ""
    lost = f"; {grid.missing:,} runs are missing" if grid.missing > 0 else ""
    return f"{grid.points:,} points; {seeds}{others}{lost}"


def sheets(grid: ParameterGrid, options: Options) -> Iterator[DrawnFigure]:
    """Draw metrics against parameters, and the first metric for each combination of the others."""
    foot = footer(options.command, grid.commands)
    yield DrawnFigure("grid", draw_grid(grid, foot))
    if found := facets(grid):
        yield DrawnFigure("grid-facets", draw_facets(grid, found, foot))


def draw_grid(grid: ParameterGrid, foot: Sequence[str]) -> Figure:
    """Draw a row per metric, a column per parameter."""
    across = max(len(grid.keys), 1)
    words = ", ".join(grid.labels.names[key] for key in grid.keys) or "seeds"
    return _page(grid, panels(grid), across, f"Metrics by {words}", caption(grid, averaged=True), foot)


def draw_facets(grid: ParameterGrid, found: Sequence[GridPanel], foot: Sequence[str]) -> Figure:
    """Draw a panel for each combination of the other parameters, all with the same axes."""
    metric, along = found[0].metric.name, found[0].axis.name
    title = f"{metric[:1].upper()}{metric[1:]} by {along}, for each value of the other parameters"
    across = min(ACROSS, len(found))
    return _page(grid, found, across, title, caption(grid, averaged=False), foot)


def _page(
    grid: ParameterGrid,
    found: Sequence[GridPanel],
    across: int,
    title: str,
    subject: str,
    foot: Sequence[str],
) -> Figure:
    """Draw panels side by side, those of a metric with the same vertical axis, and one legend."""
    down = math.ceil(len(found) / across)
    width_in = max(8.0, 2.2 + 2.7 * across)
    figure = new_page(title, subject, foot, width_in=width_in, height_in=max(2.6, 0.2 + 2.1 * down))
    places = figure.add_gridspec(down, across)
    first: dict[str, Axes] = {}
    for number, panel in enumerate(found):
        row, column = divmod(number, across)
        axes = figure.add_subplot(places[row, column], sharey=first.get(panel.metric.name))
        first.setdefault(panel.metric.name, axes)
        scale = _scale([each for each in found if each.metric == panel.metric])
        _draw_lines(axes, grid, panel, scale.unit)
        _mark_across(axes, panel.axis)
        _mark_up(axes, scale)
        axes.set_ylabel("" if column else scale.label, size=9)
        axes.tick_params(labelleft=not column)
        axes.set_xlabel("" if number + across < len(found) else panel.axis.name, size=9)
        axes.set_title(panel.title, size=9, color=INK, loc="left")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        loc="outside right upper",
        fontsize=9,
        frameon=False,
        title=grid.kind,
        alignment="left",
    )
    return figure


class _Scale(NamedTuple):
    """The vertical axis of a metric."""

    label: str
    unit: float
    """Divisor of all values."""
    low: float
    """Smallest mean."""
    bottom: float
    top: float
    """Ends of all intervals."""
    log: bool
    share: bool


def _scale(found: Sequence[GridPanel]) -> _Scale:
    """Return the vertical axis: times in a fitting unit, logarithmic if they are far apart."""
    metric, lines = found[0].metric, [line for panel in found for line in panel.lines]
    means = [value for line in lines for value in line.mean if math.isfinite(value)]
    low, middle = min(means), max(means)
    ends = [*means, *(value for line in lines for value in (*line.low, *line.high) if math.isfinite(value))]
    bottom, top = min(ends), max(ends)
    if metric.kind != "time":
        return _Scale(metric.name, 1.0, low, bottom, top, log=False, share=metric.kind == "share")
    if low > 0.0 and middle >= WIDE * low:
        return _Scale(metric.name, 1.0, low, bottom, top, log=True, share=False)
    unit = unit_for(top)
    low, bottom, top = (value / unit.seconds for value in (low, bottom, top))
    return _Scale(f"{metric.name} ({unit.name})", unit.seconds, low, bottom, top, log=False, share=False)


def _draw_lines(axes: Axes, grid: ParameterGrid, panel: GridPanel, unit: float) -> None:
    """Draw the lines; numbers are joined, categories have their points side by side."""
    axis, count = panel.axis, len(panel.lines)
    for number, line in enumerate(panel.lines):
        colour = grid.colour(line.policy)
        beside = (number + 0.5) / count - 0.5
        shift = ScaledTranslation(APART_IN * count * beside, 0.0, axes.figure.dpi_scale_trans)
        where = axes.transData + shift if axis.numeric else axes.transData
        x = [place + (0.0 if axis.numeric else DODGE * beside) for place in axis.places]
        mean, low, high = ([value / unit for value in part] for part in line[1:])
        axes.plot(
            x, mean, color=colour, linewidth=1.4 if axis.numeric else 0.0, markersize=4.0,
            marker=MARKERS[number % len(MARKERS)], label=line.policy, transform=where,
        )  # fmt: skip
        axes.vlines(x, low, high, color=colour, linewidth=1.2, alpha=0.7, transform=where)
    plain(axes, grid="y")


def _mark_across(axes: Axes, axis: GridAxis) -> None:
    if axis.log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    if not axis.numeric or len(axis.places) <= MOST_TICKS:
        turned = sum(map(len, axis.names)) > ROOM
        axes.set_xticks(axis.places, axis.names)
        if turned:
            axes.tick_params(axis="x", rotation=30)
    axes.set_xlim(*_limits(axis))


def _limits(axis: GridAxis) -> tuple[float, float]:
    low, high = axis.places[0], axis.places[-1]
    if not axis.numeric:
        return low - 0.5, high + 0.5
    if axis.log:
        factor = (high / low) ** 0.08
        return low / factor, high * factor
    room = 0.08 * (high - low) or 1.0
    return low - room, high + room


def _mark_up(axes: Axes, scale: _Scale) -> None:
    """Scale the vertical axis: from 0 on unless all values are far from it."""
    if scale.log:
        log_durations(axes, scale.low / 1.5, scale.top * 1.2, along="y")
        return
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    if scale.share:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if 0.0 <= scale.low < 0.5 * scale.top:
        axes.set_ylim(0.0, 1.06 * scale.top or 1.0)
    else:
        room = 0.06 * (scale.top - scale.bottom) or 0.1 * abs(scale.top) or 1.0
        axes.set_ylim(scale.bottom - room, scale.top + room)
