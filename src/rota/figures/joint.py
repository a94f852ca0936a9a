"""The figure of joint agents: how much more accurate than the best rule they and others are at a deadline."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from rota.core.intervals import mean_interval
from rota.figures.page import FAINT, INK, new_page, rows
from rota.learning.joint.evaluate import JointComparison

METHODS = {
    "agent": "joint agent",
    "best_rule": "the best rule in training",
    "untrained": "untrained network",
    "random": "random choices",
    "oracle": "oracle: all trees known",
}
"""Column of a comparison → its name in figures."""
COLOURS = {"agent": "#d55500", "oracle": "#00a66e"}
OTHERS = "#626262"
HEIGHT_IN = 2.6
POINTS = 100.0


class MethodLine(NamedTuple):
    """One method against the rule, in percentage points of accuracy."""

    name: str
    column: str
    mean: float
    """Mean over cases."""
    low: float
    high: float
    """The 95 % interval of the mean over clusters; NaN if there is one cluster."""
    clusters: list[float]
    """The mean of each cluster."""


def lines(found: JointComparison) -> list[MethodLine]:
    """Return a line for each method but the rule itself."""
    made = []
    for column, name in METHODS.items():
        if column == "best_rule":
            continue
        groups: dict[int, list[float]] = {}
        for row in found.rows:
            groups.setdefault(row.cluster, []).append(POINTS * (getattr(row, column) - row.best_rule))
        means = [float(np.mean(group)) for group in groups.values()]
        _, low, high = mean_interval(means)
        mean = POINTS * (found.mean(column) - found.mean("best_rule"))
        made.append(MethodLine(name, column, mean, low, high, means))
    return made


def joint_figure(found: JointComparison, foot: Sequence[str]) -> Figure:
    """Draw the methods below each other, the rule as a line at 0."""
    drawn = lines(found)
    title = "How much better than the best rule at the deadline?"
    subject = f"{len(found.rows)} cases; the rule: {found.rule}"
    figure = new_page(title, subject, foot, height_in=HEIGHT_IN)
    axes = figure.subplots()
    rows(axes, [line.name for line in drawn], grid="x")
    axes.axvline(0.0, color=INK, linewidth=0.8)
    for at, line in enumerate(drawn):
        colour = COLOURS.get(line.column, OTHERS)
        axes.plot(line.clusters, [at] * len(line.clusters), "o", color=colour, alpha=0.35, markersize=4)
        if np.isfinite(line.low):
            axes.plot([line.low, line.high], [at, at], color=colour, linewidth=2.0)
        axes.plot([line.mean], [at], "D", color=colour, markersize=6)
    axes.set_xlabel("accuracy of the best trial − that of the rule (percentage points)")
    text = "diamond: mean over cases; bar: its 95 % interval over networks and data sets, the dots"
    axes.set_title(text, size=8.5, color=FAINT, loc="left")
    return figure
