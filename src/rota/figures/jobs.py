"""Figures of jobs: completion times, comparison of schedulers, load."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from rota.core.arrays import Floats
from rota.figures.groups import DrawnFigure, DrawnRun, Options, RunGroup
from rota.figures.page import (
    DASHES,
    FAINT,
    HATCHES,
    IDLE,
    INK,
    AxisUnit,
    legend,
    log_durations,
    new_page,
    plain,
    rows,
    said,
    scheduler_colour,
    unit_for,
)
from rota.results.run import RunRecord
from rota.results.timeline_pass import Series


class JctCurve(NamedTuple):
    """The distribution of JCTs of one run, over the jobs that finished."""

    label: str
    scheduler: str
    twin: int
    jct_s: Floats
    """Sorted JCTs in seconds."""
    share: Floats
    """Share of the jobs that took at most as long."""
    mean_s: float


def jct_curves(group: RunGroup) -> list[JctCurve]:
    """Return a curve per run in which a job has finished."""
    curves = []
    for label, twin, run in group.runs:
        jct_s = np.sort(run.times.jct_s[run.times.finished])
        if not len(jct_s):
            continue
        share = np.arange(1, len(jct_s) + 1) / len(jct_s)
        curves.append(JctCurve(label, run.scheduler, twin, jct_s, share, run.metrics.avg_jct_s))
    return curves


def jct_sheets(group: RunGroup, options: Options) -> Iterator[DrawnFigure]:
    """Draw the distribution of JCTs, if a job has finished."""
    if curves := jct_curves(group):
        yield DrawnFigure("jct", draw_jct(curves, group.title, options.footer(group)))


def draw_jct(curves: Sequence[JctCurve], subject: str, footer: Sequence[str]) -> Figure:
    """Draw the share of jobs that were completed within a time, a curve per run."""
    figure = new_page("Job completion time (JCT)", subject, footer, width_in=9.0)
    axes = figure.add_subplot()
    for curve in curves:
        _draw_curve(axes, curve)
    low_s = min(curve.jct_s[0] for curve in curves) / 1.2
    high_s = max(curve.jct_s[-1] for curve in curves) * 1.2
    log_durations(axes, low_s, high_s)
    axes.set(ylim=(0, 1.01))
    axes.set(xlabel="time from submit to end (logarithmic)", ylabel="share of jobs completed within it")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    plain(axes, grid="xy")
    legend(axes, title="mean JCT")
    return figure


def _draw_curve(axes: Axes, curve: JctCurve) -> None:
    colour = scheduler_colour(curve.scheduler)
    dashes = DASHES[curve.twin % len(DASHES)]
    steps = (np.append(curve.jct_s[0], curve.jct_s), np.append(0.0, curve.share))
    label = f"{curve.label}: {said(curve.mean_s)}"
    axes.step(*steps, where="post", color=colour, linestyle=dashes, linewidth=1.8, label=label)


METRICS: dict[str, Callable[[RunRecord], float]] = {
    "average JCT": lambda run: run.metrics.avg_jct_s,
    "99th percentile JCT": lambda run: run.metrics.p99_jct_s,
    "makespan": lambda run: run.metrics.makespan_s,
}


class SchedulerComparison(NamedTuple):
    """One metric of all runs."""

    metric: str
    values_s: list[float]
    ratios: list[float]
    """Ratios to the reference."""


def compare(runs: Sequence[DrawnRun], reference: DrawnRun) -> list[SchedulerComparison]:
    """Return each metric of all runs, with ratios to a reference."""
    compared = []
    for metric, of in METRICS.items():
        values_s = [of(drawn.run) for drawn in runs]
        base_s = of(reference.run)
        compared.append(SchedulerComparison(metric, values_s, [value_s / base_s for value_s in values_s]))
    return compared


def comparison_sheets(group: RunGroup, options: Options) -> Iterator[DrawnFigure]:
    """Draw the comparison with one scheduler."""
    reference = group.find(options.normalise_to)
    compared = compare(group.runs, reference)
    figure = draw_comparison(compared, group.runs, reference.label, group.title, options.footer(group))
    yield DrawnFigure("comparison", figure)


def draw_comparison(
    compared: Sequence[SchedulerComparison],
    runs: Sequence[DrawnRun],
    reference: str,
    subject: str,
    footer: Sequence[str],
) -> Figure:
    """Draw a panel per metric, a bar per run: names are written once, at the left."""
    height_in = 0.75 + 0.3 * len(runs)
    figure = new_page(
        f"Compared with {reference}: shorter bars are better", subject, footer, height_in=height_in
    )
    for axes, comparison in zip(figure.subplots(1, len(compared), sharey=True), compared, strict=True):
        _draw_bars(axes, comparison, runs)
    return figure


def _draw_bars(axes: Axes, comparison: SchedulerComparison, runs: Sequence[DrawnRun]) -> None:
    places = np.arange(len(runs))
    colours = [scheduler_colour(drawn.run.scheduler) for drawn in runs]
    hatches = [HATCHES[drawn.twin % len(HATCHES)] for drawn in runs]
    bars = axes.barh(places, comparison.ratios, 0.72, color=colours, hatch=hatches, edgecolor="white")
    texts = zip(comparison.ratios, comparison.values_s, strict=True)
    labels = [f"{ratio:.2f}× ({said(value_s)})" for ratio, value_s in texts]
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    axes.bar_label(bars, labels, padding=4, size=8, color=INK, bbox=paper)
    axes.axvline(1.0, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0.5)
    rows(axes, [drawn.label for drawn in runs])
    axes.set_xlim(0, 1.75 * max(comparison.ratios))
    axes.set_title(comparison.metric, size=10, color=INK, loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))


BINS = 200
QUEUE_IN, STRIP_IN, LEGEND_IN = 2.6, 0.42, 0.24


class LoadCurve(NamedTuple):
    """The load of one run in equal intervals of time; NaN once it is over."""

    label: str
    scheduler: str
    twin: int
    edges_s: Floats
    """Edges of the intervals, in seconds since the first submit."""
    waiting: Floats
    """Mean number of waiting jobs in each interval."""
    utilisation: Floats
    """Busy share of the available slots in each interval."""
    mean_waiting: float
    mean_utilisation: float
    """Mean over the whole run."""


def load_curves(group: RunGroup, bins: int = BINS) -> list[LoadCurve]:
    """Return the load of each run in `bins` equal intervals, on a common axis of time."""
    series = [drawn.run.series() for drawn in group.runs]
    first_s = min(steps.at_s[0] for steps in series)
    last_s = max(steps.at_s[-1] for steps in series)
    edges_s = np.linspace(first_s, last_s, bins + 1)
    curves = []
    for (label, twin, run), steps in zip(group.runs, series, strict=True):
        waiting, utilisation = load_of(steps, edges_s)
        means = (run.metrics.queue_length, run.metrics.utilisation)
        curves.append(LoadCurve(label, run.scheduler, twin, edges_s - first_s, waiting, utilisation, *means))
    return curves


def load_of(steps: Series, edges_s: Floats) -> tuple[Floats, Floats]:
    """Return the queue length and the utilisation in each interval; exact means, NaN after the end."""
    over = edges_s[:-1] >= steps.at_s[-1]
    waiting = np.where(over, np.nan, steps.means(steps.waiting, edges_s))
    available = steps.means(steps.available, edges_s)
    there = available > 0.0
    utilisation = np.full(len(over), np.nan)
    utilisation[there] = steps.means(steps.busy, edges_s)[there] / available[there]
    return waiting, utilisation


def load_sheets(group: RunGroup, options: Options) -> Iterator[DrawnFigure]:
    """Draw queues and utilisation over time."""
    yield DrawnFigure("load", draw_load(load_curves(group), group.title, options.footer(group)))


def draw_load(curves: Sequence[LoadCurve], subject: str, footer: Sequence[str]) -> Figure:
    """Draw the queues in one panel, and the utilisation in a strip per run."""
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


def _draw_queues(axes: Axes, curves: Sequence[LoadCurve], unit: AxisUnit) -> None:
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


def _draw_strip(axes: Axes, curve: LoadCurve, unit: AxisUnit) -> None:
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
