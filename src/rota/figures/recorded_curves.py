"""Curves at a glance: a line per setting, coloured by the hyper-parameter that matters most."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.ticker import PercentFormatter

from rota.core.arrays import Floats
from rota.figures.colours import INK
from rota.figures.page import plain, spread
from rota.recordings.curve import Curves, Plain, Setting

HEIGHT_IN = 3.0
MOST_IN_LEGEND = 7


class Line(NamedTuple):
    """One setting."""

    value: Plain
    """Of the hyper-parameter that colours it."""
    steps: Floats
    metric: Floats


class Bundle(NamedTuple):
    """All settings of one recording."""

    title: str
    coloured_by: str
    metric: str
    lines: list[Line]
    values: list[Plain]
    """Of the hyper-parameter, in order."""


def bundle(curves: Curves) -> Bundle:
    metric = curves.main_metric
    settings = [setting for setting in curves.settings.values() if metric in setting.metrics]
    by = max(curves.hyper, key=lambda name: _explained(settings, name, metric), default="")
    lines = [Line(s.hyper.get(by, ""), s.steps.astype(float), s.metrics[metric]) for s in settings]
    values = sorted({line.value for line in lines}, key=lambda value: (isinstance(value, str), value))
    missing = len(curves.missing())
    there = f"{len(curves.settings)} settings" + (f", {missing} missing or cut short" if missing else "")
    there += f", {len(curves.failed)} failed" if curves.failed else ""
    data = f" on {curves.data}" if curves.data else ""
    return Bundle(f"{curves.model}{data}: {there}", by, metric, lines, values)


def draw_curves(figure: Figure, place: SubplotSpec, data: Bundle) -> Axes:
    axes = figure.add_subplot(place)
    colours = colormaps["viridis"](np.linspace(0.0, 0.92, max(len(data.values), 1)))
    shown = set(spread(data.values, MOST_IN_LEGEND))
    for line in data.lines:
        label = _said(line.value)
        axes.plot(
            line.steps,
            line.metric,
            color=colours[data.values.index(line.value)],
            linewidth=1.0,
            alpha=0.85,
            marker="." if len(line.steps) < 4 else "",
            label=label if line.value in shown else None,
        )
        shown.discard(line.value)
    axes.set(xlabel="steps", ylabel=data.metric)
    axes.margins(x=0.01)
    if data.metric == "accuracy":
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    if _spans_decades(data.lines):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
    plain(axes, grid="xy")
    axes.set_title(data.title, size=10, color=INK, loc="left")
    _legend(axes, data)
    return axes


def _legend(axes: Axes, data: Bundle) -> None:
    handles, labels = axes.get_legend_handles_labels()
    names = [_said(value) for value in data.values]
    order = sorted(range(len(labels)), key=lambda place: names.index(labels[place]))
    axes.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        title=data.coloured_by,
        fontsize=8,
        title_fontsize=8,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.02),
        alignment="left",
    )


def _said(value: Plain) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _explained(settings: Sequence[Setting], name: str, metric: str) -> float:
    """The share of the spread at the end that goes with one hyper-parameter."""
    groups: dict[Plain, list[float]] = {}
    for setting in settings:
        values = setting.metrics[metric]
        if len(values) and not math.isnan(values[-1]):
            groups.setdefault(setting.hyper[name], []).append(float(values[-1]))
    every = [value for group in groups.values() for value in group]
    if len(every) < 2 or np.var(every) == 0.0:
        return 0.0
    means = [np.mean(group) for group in groups.values() for _ in group]
    return float(np.var(means) / np.var(every))


def _spans_decades(lines: Sequence[Line]) -> bool:
    """Whether some settings end after many times more steps than others."""
    ends = [line.steps[-1] for line in lines if len(line.steps) and line.steps[-1] > 0]
    return bool(ends) and max(ends) / min(ends) > 8.0
