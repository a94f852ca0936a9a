"""Figures of growth trees: what growing gains, by when it first happens."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.ticker import PercentFormatter

from rota.core.errors import InputError
from rota.figures.page import FAINT, INK, new_page, origins, plain
from rota.recordings.gains import by_network, gains, seed_deviation
from rota.recordings.growth import GrowthTree

ACROSS = 3
PANEL_IN, HEIGHT_IN = 3.7, 2.7
COLOURS = ("#56b4e9", "#0072b2", "#102a56", "#d55e00", "#cc79a7")


class GainLine(NamedTuple):
    """Paths with one number of changes."""

    changes: int
    first: list[int]
    """Boundary of the first change, from 1."""
    mean: list[float]
    low: list[float]
    """Mean − two standard errors over trees; NaN with one tree."""
    high: list[float]


class GrowthPanel(NamedTuple):
    """The trees of one model on one data set."""

    title: str
    boundaries: int
    deviation: float
    """Standard deviation of an accuracy between seeds; NaN if it is not known."""
    lines: list[GainLine]


def growth_panels(trees: Sequence[GrowthTree]) -> list[GrowthPanel]:
    """Return a panel per model, data set and choices; trees that are not complete are left out."""
    return [
        GrowthPanel(
            f"{model} on {data or 'unknown data'}: {len(group)} tree{'s' if len(group) > 1 else ''}",
            choices.decisions,
            seed_deviation(group),
            _lines(group),
        )
        for (model, data, choices), group in by_network(trees).items()
    ]


def _lines(trees: Sequence[GrowthTree]) -> list[GainLine]:
    lines: dict[int, GainLine] = {}
    for found in gains(trees):
        line = lines.setdefault(found.changes, GainLine(found.changes, [], [], [], []))
        count, mean = len(found.gains), float(found.gains.mean())
        error = 2.0 * float(found.gains.std(ddof=1)) / count**0.5 if count > 1 else np.nan
        line.first.append(found.first + 1)
        line.mean.append(mean)
        line.low.append(mean - error)
        line.high.append(mean + error)
    return list(lines.values())


def growth_figure(trees: Sequence[GrowthTree], drawn_by: str) -> Figure:
    """Draw a panel per model and data set; `drawn_by` is the command that draws it."""
    panels = growth_panels(trees)
    if not panels:
        raise InputError(
            "no complete growth tree to draw; record one first: rota record config/record/growth-quick.toml"
        )
    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    figure = new_page(
        "When does it pay to grow a network while it trains?",
        "gain of accuracy over the same training without growth, after as many steps, by when growth began",
        (f"figure: {drawn_by}", *origins(tree.provenance for tree in trees)),
        width_in=max(PANEL_IN * across, 2 * PANEL_IN),
        height_in=HEIGHT_IN * down,
    )
    grid = figure.add_gridspec(down, across)
    explained = max(range(len(panels)), key=lambda number: len(panels[number].lines))
    for number, panel in enumerate(panels):
        axes = draw_growth(figure, grid[number // across, number % across], panel)
        if number == explained:
            axes.legend(fontsize=7, framealpha=0.9, edgecolor="white", labelcolor=FAINT)
    return figure


def draw_growth(figure: Figure, place: SubplotSpec, panel: GrowthPanel) -> Axes:
    """Draw a line per number of changes, with two standard errors over trees; return the axes."""
    axes = figure.add_subplot(place)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    if not np.isnan(panel.deviation):
        axes.axhspan(-panel.deviation, panel.deviation, color="#eeeeee", zorder=0)
    for number, line in enumerate(panel.lines):
        colour = COLOURS[number % len(COLOURS)]
        at = np.array(line.first) + 0.12 * (number - (len(panel.lines) - 1) / 2)
        label = f"{line.changes} change{'s' if line.changes > 1 else ''}"
        axes.plot(at, line.mean, "o-", color=colour, markersize=3.5, linewidth=1.2, label=label)
        axes.vlines(at, line.low, line.high, color=colour, linewidth=1.0)
    axes.set_xticks(range(1, panel.boundaries + 1))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title(panel.title, size=9, color=INK, loc="left")
    plain(axes, grid="y")
    axes.tick_params(labelsize=8)
    axes.set_xlabel("boundary of the first change", size=8)
    axes.set_ylabel("gain of accuracy by growth", size=8)
    return axes
