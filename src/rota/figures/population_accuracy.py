"""The best accuracy that any trial has reached, against time, per allocation."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from rota.core.arrays import Floats
from rota.core.population.events import Event, Reported
from rota.figures.best import MOMENTS, bands, best_so_far
from rota.figures.colours import FAINT, allocation_colour
from rota.figures.durations import unit_for
from rota.figures.page import legend, new_page, plain
from rota.figures.population import PopulationGroup
from rota.figures.sheets import Options, Sheet
from rota.results.population.run import PopulationRun

BEYOND = 1.06
"""How far the axis goes, in makespans."""
EARLY = 0.04
"""The share of the axis in which all curves rise alike."""
TARGET: dict[str, Any] = {
    "xytext": (-4, 3), "textcoords": "offset points", "ha": "right", "size": 8, "color": FAINT,
}  # fmt: skip


class AccuracyCurve(NamedTuple):
    """One allocation: mean, worst and best over the repetitions; NaN before all have measured something.

    Metrics have the sign that trials reported them with.
    """

    allocation: str
    at_s: Floats
    mean: Floats
    least: Floats
    most: Floats
    final: float
    """Of whole repetitions, on average."""
    end_s: float
    """When all repetitions were done."""
    said: str
    """`final` for people."""


def accuracy_curve(run: PopulationRun, end_s: float) -> AccuracyCurve | None:
    """None if nothing was measured."""
    at_s = np.linspace(0.0, end_s, MOMENTS)
    risen = [best_so_far(reports(run.events(each.seed))) for each in run.summary.repetitions]
    if not all(len(best) for _, best in risen):
        return None
    summary = run.summary
    mean, least, most = (summary.sign * band for band in bands(risen, at_s))
    final, said = summary.sign * (summary.best_accuracy or math.nan), summary.shown(summary.best_accuracy)
    return AccuracyCurve(summary.allocation, at_s, mean, least, most, final, done_s(run), said)


def reports(events: Iterable[Event]) -> Iterator[tuple[float, float]]:
    """When trials reported, and how good they were then."""
    return ((event.at_s, event.metric) for event in events if isinstance(event, Reported))


def done_s(run: PopulationRun) -> float:
    """When the last repetition was done."""
    return max(repetition.makespan_s for repetition in run.summary.repetitions)


def sheets(groups: Sequence[PopulationGroup], options: Options) -> Iterator[Sheet]:
    for group in groups:
        end_s = BEYOND * max(map(done_s, group.runs))
        curves = [curve for run in group.runs if (curve := accuracy_curve(run, end_s))]
        if curves:
            yield Sheet(f"{group.name}/accuracy", draw_accuracy(curves, group, options))


def draw_accuracy(curves: Sequence[AccuracyCurve], group: PopulationGroup, options: Options) -> Figure:
    figure = new_page(
        f"Best {group.runs[0].summary.metric_name} of any trial, against time",
        f"{group.title}; means over repetitions, shaded from worst to best; dots: all are done",
        group.footer(options.command),
        width_in=9.0,
    )
    axes = figure.add_subplot()
    unit, unit_s = unit_for(float(curves[0].at_s[-1]))
    for curve in curves:
        _draw_curve(axes, curve, unit_s)
    summary = group.runs[0].summary
    if summary.target is not None:
        target = summary.sign * summary.target
        axes.axhline(target, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.annotate("target", (1.0, target), xycoords=axes.get_yaxis_transform(), **TARGET)
    axes.set(xlim=(0, curves[0].at_s[-1] / unit_s))
    axes.set(xlabel=f"time ({unit})", ylabel=f"best {summary.metric_name} so far")
    if summary.in_percent:
        axes.set(ylim=(_lowest(curves), None))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    plain(axes, grid="xy")
    legend(axes, title="in the end")
    return figure


def _lowest(curves: Sequence[AccuracyCurve]) -> float:
    """Where the axis begins: the first rise, which is steep and alike for all, is left out."""
    early = round(EARLY * MOMENTS)
    return min(float(np.nanmin(curve.mean[early:])) for curve in curves)


def _draw_curve(axes: Axes, curve: AccuracyCurve, unit_s: float) -> None:
    """Until it is done, with a dot there."""
    colour = allocation_colour(curve.allocation)
    over = min(int(np.searchsorted(curve.at_s, curve.end_s)), len(curve.at_s) - 1)
    at, (mean, least, most) = curve.at_s / unit_s, (curve.mean, curve.least, curve.most)
    until = slice(over + 1)
    axes.fill_between(at[until], least[until], most[until], step="post", color=colour, alpha=0.1, linewidth=0)
    label = f"{curve.allocation}: {curve.said}"
    axes.step(at[until], mean[until], where="post", color=colour, linewidth=1.7, label=label)
    axes.plot(at[over], mean[over], "o", color=colour, markersize=6, markeredgecolor="white", zorder=4)
