"""The queue and the use of the cluster over time, per scheduler."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from rota.figures.colours import DASHES, scheduler_colour
from rota.figures.durations import unit_for
from rota.figures.groups import Group
from rota.figures.page import new_page, plain
from rota.figures.sheets import Options, Sheet
from rota.results.jobs import Floats
from rota.results.series import Series

BINS = 160


class LoadCurve(NamedTuple):
    """One run in equal intervals of time; NaN once it is over."""

    label: str
    scheduler: str
    twin: int
    edges_s: Floats
    """Since the first submit."""
    waiting: Floats
    """Mean number of waiting jobs in each interval."""
    utilisation: Floats
    """Busy share of the slots that were there in each interval."""


def load_curves(group: Group, bins: int = BINS) -> list[LoadCurve]:
    series = [contender.run.series() for contender in group.contenders]
    first_s = min(steps.at_s[0] for steps in series)
    last_s = max(steps.at_s[-1] for steps in series)
    edges_s = np.linspace(first_s, last_s, bins + 1)
    curves = []
    for (label, twin, run), steps in zip(group.contenders, series, strict=True):
        waiting, utilisation = load_of(steps, edges_s)
        curves.append(LoadCurve(label, run.scheduler, twin, edges_s - first_s, waiting, utilisation))
    return curves


def load_of(steps: Series, edges_s: Floats) -> tuple[Floats, Floats]:
    """The queue length and the utilisation in each interval; exact means, NaN where the run is over."""
    over = edges_s[:-1] >= steps.at_s[-1]
    waiting = np.where(over, np.nan, steps.means(steps.waiting, edges_s))
    available = steps.means(steps.available, edges_s)
    there = available > 0.0
    utilisation = np.full(len(over), np.nan)
    utilisation[there] = steps.means(steps.busy, edges_s)[there] / available[there]
    return waiting, utilisation


def sheets(group: Group, options: Options) -> Iterator[Sheet]:
    yield Sheet("load", draw_load(load_curves(group), group.title, options.footer(group)))


def draw_load(curves: Sequence[LoadCurve], subject: str, footer: Sequence[str]) -> Figure:
    figure = new_page("Queue and utilisation over time", subject, footer, height_in=5.4)
    queue, used = figure.subplots(2, 1, sharex=True)
    unit = unit_for(float(curves[0].edges_s[-1]))
    for curve in curves:
        edges = curve.edges_s / unit.seconds
        _draw_steps(queue, edges, curve.waiting, curve)
        _draw_steps(used, edges, curve.utilisation, curve)
    queue.set(ylabel="jobs waiting", ylim=(0, None), xlim=(0, curves[0].edges_s[-1] / unit.seconds))
    queue.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    used.set(
        ylabel="slots in use", ylim=(0, 1.02), xlabel=f"time since the first job was submitted ({unit.name})"
    )
    used.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    for axes in (queue, used):
        plain(axes, grid="y")
    figure.legend(
        *queue.get_legend_handles_labels(),
        loc="outside upper left",
        ncols=min(len(curves), 5),
        fontsize=9,
        frameon=False,
    )
    return figure


def _draw_steps(axes: Axes, edges: Floats, values: Floats, curve: LoadCurve) -> None:
    axes.stairs(
        values,
        edges,
        baseline=None,
        color=scheduler_colour(curve.scheduler),
        linestyle=DASHES[curve.twin % len(DASHES)],
        linewidth=1.3,
        label=curve.label,
    )
