"""The queue and the use of the cluster over time, per scheduler."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rota.core.arrays import Floats
from rota.figures.colours import DASHES, IDLE, INK, scheduler_colour
from rota.figures.durations import Unit, unit_for
from rota.figures.groups import Group
from rota.figures.page import legend, new_page, plain
from rota.figures.sheets import Options, Sheet
from rota.results.series import Series

BINS = 200
QUEUE_IN, STRIP_IN, LEGEND_IN = 2.6, 0.42, 0.24


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
    mean_waiting: float
    mean_utilisation: float
    """Over the whole run."""


def load_curves(group: Group, bins: int = BINS) -> list[LoadCurve]:
    series = [contender.run.series() for contender in group.contenders]
    first_s = min(steps.at_s[0] for steps in series)
    last_s = max(steps.at_s[-1] for steps in series)
    edges_s = np.linspace(first_s, last_s, bins + 1)
    curves = []
    for (label, twin, run), steps in zip(group.contenders, series, strict=True):
        waiting, utilisation = load_of(steps, edges_s)
        means = (run.metrics.queue_length, run.metrics.utilisation)
        curves.append(LoadCurve(label, run.scheduler, twin, edges_s - first_s, waiting, utilisation, *means))
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
    """The queues in one panel, then the utilisation in a strip per run: those would hide each other."""
    queue_in = max(QUEUE_IN, LEGEND_IN * (len(curves) + 2))
    height_in = queue_in + STRIP_IN * len(curves)
    figure = new_page("Queue and utilisation over time", subject, footer, width_in=9.0, height_in=height_in)
    ratios = [queue_in / STRIP_IN, *[1.0] * len(curves)]
    queue, *strips = figure.subplots(1 + len(curves), 1, sharex=True, height_ratios=ratios)
    unit = unit_for(float(curves[0].edges_s[-1]))
    _draw_queues(queue, curves, unit)
    for strip, curve in zip(strips, curves, strict=True):
        _draw_strip(strip, curve, unit)
    strips[0].set_title("share of the slots in use, and its mean", size=10, color=INK, loc="left")
    strips[-1].tick_params(axis="x", length=3.5, labelbottom=True)
    strips[-1].set_xlabel(f"time since the first job was submitted ({unit.name})")
    return figure


def _draw_queues(axes: Axes, curves: Sequence[LoadCurve], unit: Unit) -> None:
    for curve in curves:
        axes.stairs(
            curve.waiting,
            curve.edges_s / unit.seconds,
            baseline=None,
            color=scheduler_colour(curve.scheduler),
            linestyle=DASHES[curve.twin % len(DASHES)],
            linewidth=1.5,
            label=f"{curve.label}: {curve.mean_waiting:.1f}",
        )
    axes.set(ylim=(0, None), xlim=(0, curves[0].edges_s[-1] / unit.seconds))
    axes.set_title("jobs waiting", size=10, color=INK, loc="left")
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    plain(axes, grid="y")
    legend(axes, title="mean over the run")


def _draw_strip(axes: Axes, curve: LoadCurve, unit: Unit) -> None:
    edges = curve.edges_s / unit.seconds
    there = np.where(np.isnan(curve.utilisation), np.nan, 1.0)
    axes.stairs(there, edges, fill=True, color=IDLE)
    axes.stairs(curve.utilisation, edges, fill=True, color=scheduler_colour(curve.scheduler))
    axes.set(ylim=(0, 1), yticks=[])
    axes.set_ylabel(curve.label, rotation=0, ha="right", va="center")
    plain(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", length=0)
    mean = f"{curve.mean_utilisation:.0%}"
    axes.text(1.01, 0.5, mean, transform=axes.transAxes, size=9, color=INK, va="center")
