"""Figure of the same population under rota and Ray Tune: overhead per report, accuracy over time."""

import math
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter

from rota.core.arrays import Floats
from rota.figures.page import FAINT, INK, legend, log_durations, new_page, plain
from rota.figures.population import MOMENTS, bands, best_so_far
from rota.results.population.metrics import SideRun, Sides

COLOURS = ("#d55500", "#0072b2", "#56c9f0", "#626262")
"""Colours in the order of the sides."""
MARGIN = 5.0
"""Factor by which the axis of overheads is longer at both ends."""
LEAST_S = 1e-5
"""Smallest overhead in seconds that could be measured."""
CLEARLY = 0.7
"""Share of an overhead below which a gap is drawn: slots were empty, too."""
LOWEST = 0.5
"""Share of the best accuracy at which the axis begins: all sides begin alike."""


class Overhead(NamedTuple):
    """The overhead per report on one side."""

    side: str
    median_s: float
    each_s: list[float]
    """Seconds in each repetition."""
    gap_s: float | None
    """Median seconds between two intervals of a process, if that is clearly less."""


class Rise(NamedTuple):
    """The best accuracy so far on one side, over the repetitions; NaN before all have measured something."""

    side: str
    at_s: Floats
    """Seconds since training began."""
    mean: Floats
    least: Floats
    most: Floats
    end_s: float
    """When the last repetition was done."""

    @property
    def final(self) -> float:
        """The mean accuracy at the end."""
        return float(self.mean[-1])


def overheads(sides: Sides) -> list[Overhead]:
    """Return the overhead per report of each side, in seconds."""
    return [_overhead(side, sides.of(side)) for side in sides.names]


def _overhead(side: str, runs: list[SideRun]) -> Overhead:
    each_s = [run.overhead_s for run in runs]
    gaps_s = [run.gap_s for run in runs if run.gap_s is not None]
    found = median(each_s)
    gap_s = median(gaps_s) if gaps_s else math.inf
    return Overhead(side, found, each_s, gap_s if gap_s < CLEARLY * found else None)


def reports(run: SideRun) -> list[tuple[float, float]]:
    """Return the end and the metric of each interval, in order, in seconds since training began."""
    parts = sorted(run.parts, key=lambda part: part.ended_s)
    return [(part.ended_s - run.first_s, part.metric) for part in parts]


def rises(sides: Sides) -> list[Rise]:
    """Return a curve per side, over the same moments, evenly in their logarithm."""
    reported = {side: [reports(run) for run in sides.of(side)] for side in sides.names}
    every_s = [at_s for runs in reported.values() for run in runs for at_s, _ in run]
    moments = np.geomspace(min(every_s), max(every_s), MOMENTS)
    moments[-1] = max(every_s)  # whatever rounding made of it
    return [_rise(side, runs, moments) for side, runs in reported.items()]


def _rise(side: str, runs: list[list[tuple[float, float]]], moments: Floats) -> Rise:
    end_s = max(run[-1][0] for run in runs)
    return Rise(side, moments, *bands(list(map(best_so_far, runs)), moments), end_s)


def sides_figure(sides: Sides) -> Figure:
    """Draw the overhead per report on the left, the best accuracy over time on the right."""
    figure = new_page(
        "The same population under rota and under Ray Tune",
        sides.about,
        (f"figure: {sides.command}",),
        width_in=11.0,
        height_in=3.6,
    )
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.5])
    _draw_overheads(left, overheads(sides))
    _draw_rises(right, rises(sides))
    return figure


def said_s(seconds: float) -> str:
    """Return seconds as text: `3.9 ms`, `1.2 s`."""
    return f"{1000 * seconds:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"


def _draw_overheads(axes: Axes, found: list[Overhead]) -> None:
    for place, each in enumerate(found):
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(each.each_s, [place] * len(each.each_s), "o", color=colour, markersize=4, alpha=0.6)
        _mark(axes, each.median_s, place, colour, hollow=False)
        if each.gap_s is not None:
            _mark(axes, each.gap_s, place, colour, hollow=True)
    every_s = [seconds for each in found for seconds in (*each.each_s, each.gap_s or each.median_s)]
    low_s, high_s = max(min(every_s), LEAST_S) / MARGIN, max(*every_s, LEAST_S) * MARGIN
    axes.set_xscale("log")
    axes.set_xlim(low_s, high_s)
    ticks = [10.0**power for power in range(-6, 4) if low_s <= 10.0**power <= high_s]
    axes.set_xticks(ticks, [said_s(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(found)), [each.side.replace(", ", ",\n") for each in found])
    axes.set_ylim(len(found) - 0.5, -0.6)
    axes.set_xlabel("overhead per report (log scale)")
    hollow = any(each.gap_s is not None for each in found)
    title = "large: medians; hollow: without empty slots" if hollow else "large: medians"
    axes.set_title(title, size=10, color=FAINT, loc="left")
    plain(axes, grid="x")
    axes.tick_params(axis="y", length=0, labelsize=10)


def _mark(axes: Axes, seconds: float, place: int, colour: str, *, hollow: bool) -> None:
    """Draw a median with its number above it, or below if it is hollow."""
    fill, edge = ("white", colour) if hollow else (colour, "white")
    axes.plot(seconds, place, "D", markerfacecolor=fill, markeredgecolor=edge, markersize=9)
    above = {"xytext": (0, 9), "va": "bottom"}
    below = {"xytext": (0, -9), "va": "top"}
    where: dict[str, Any] = below if hollow else above
    axes.annotate(
        said_s(seconds),
        (seconds, place),
        textcoords="offset points",
        size=10,
        color=INK,
        ha="center",
        **where,
    )


def _draw_rises(axes: Axes, found: list[Rise]) -> None:
    for place, rise in enumerate(found):
        colour = COLOURS[place % len(COLOURS)]
        until = slice(int(np.searchsorted(rise.at_s, rise.end_s)) + 1)
        at_s, mean = rise.at_s[until], rise.mean[until]
        axes.fill_between(
            at_s, rise.least[until], rise.most[until], step="post", color=colour, alpha=0.12, linewidth=0
        )
        label = f"{rise.side}\n{rise.final:.1%} after {said_s(rise.end_s)}"
        axes.step(at_s, mean, where="post", color=colour, linewidth=1.8, label=label)
        axes.plot(at_s[-1], mean[-1], "o", color=colour, markersize=7, markeredgecolor="white", zorder=4)
    first_s, last_s = float(found[0].at_s[0]), float(found[0].at_s[-1])
    log_durations(axes, first_s, last_s * 1.15)
    finals = [rise.final for rise in found if not math.isnan(rise.final)]
    axes.set_ylim(LOWEST * max(finals) if finals else None, None)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set(xlabel="time since training began (log scale)", ylabel="best accuracy so far")
    title = "means over repetitions, shaded from worst to best; dots: all are done"
    axes.set_title(title, size=10, color=FAINT, loc="left")
    plain(axes, grid="xy")
    legend(axes)
