"""How long jobs took: the share that completed within each time, per scheduler."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter

from rota.core.arrays import Floats
from rota.figures.colours import DASHES, scheduler_colour
from rota.figures.durations import log_ticks, said
from rota.figures.groups import Group
from rota.figures.page import legend, new_page, plain
from rota.figures.sheets import Options, Sheet


class JctCurve(NamedTuple):
    """The distribution of one run, over the jobs that finished."""

    label: str
    scheduler: str
    twin: int
    jct_s: Floats
    """Sorted."""
    share: Floats
    """Of the jobs, that took at most as long."""
    mean_s: float


def jct_curves(group: Group) -> list[JctCurve]:
    """A curve per run in which a job has finished."""
    curves = []
    for label, twin, run in group.contenders:
        jct_s = np.sort(run.times.jct_s[run.times.finished])
        if not len(jct_s):
            continue
        share = np.arange(1, len(jct_s) + 1) / len(jct_s)
        curves.append(JctCurve(label, run.scheduler, twin, jct_s, share, run.metrics.avg_jct_s))
    return curves


def sheets(group: Group, options: Options) -> Iterator[Sheet]:
    if curves := jct_curves(group):
        yield Sheet("jct", draw_jct(curves, group.title, options.footer(group)))


def draw_jct(curves: Sequence[JctCurve], subject: str, footer: Sequence[str]) -> Figure:
    figure = new_page("Job completion time (JCT)", subject, footer, width_in=9.0)
    axes = figure.add_subplot()
    for curve in curves:
        _draw_curve(axes, curve)
    low_s = min(curve.jct_s[0] for curve in curves) / 1.2
    high_s = max(curve.jct_s[-1] for curve in curves) * 1.2
    axes.set_xscale("log")
    axes.set(xlim=(low_s, high_s), ylim=(0, 1.01))
    ticks = log_ticks(low_s, high_s)
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.xaxis.set_minor_locator(NullLocator())
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
