"""How good are agents? The accuracy that they reach in each scenario, beside what others would."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from rota.core.errors import InputError
from rota.figures.colours import INK
from rota.figures.learned import percent
from rota.figures.learned_rows import Picture, Place, pictures
from rota.figures.page import new_page, plain
from rota.learning.outcome import Evaluation, Row

COLOURS = {
    "never": "#d1495b",
    "random": "#b9b9b9",
    "best fixed": "#e7aa5c",
    "agent": "#0072b2",
    "oracle": "#00a66e",
}
"""What is compared, in this order."""
NAMES = {
    "never": "changes nothing",
    "random": "random (mean of 10)",
    "best fixed": "best fixed sequence",
    "agent": "agent",
    "oracle": "oracle",
}
BAR, UNSEEN = 0.17, "////"
ACROSS, MOST = 2, 8
"""Panels on a page."""
COLUMN_IN, BESIDE_IN = 1.05, 1.0
HEIGHT_IN, LEGEND_IN = 3.0, 0.45
LEAST_IN = 7.0
STEP = 0.05
"""Axes begin at a multiple of this."""


class Column(NamedTuple):
    """One scenario: means over the agents."""

    place: Place
    seen: bool
    accuracies: dict[str, float]
    """By name, as in COLOURS; NaN where there is none."""
    least: float
    """Of the agents."""
    most: float
    headroom: float
    ranks: tuple[int, ...]
    """Of each agent."""
    of: int

    @property
    def said(self) -> str:
        """What is written above the bars."""
        low, high = min(self.ranks), max(self.ranks)
        rank = f"{low}" if low == high else f"{low}–{high}"
        return f"rank {rank} of {self.of}\nheadroom {self.headroom:.2f}"


class Panel(NamedTuple):
    """One model."""

    model: str
    title: str
    columns: list[Column]


def panels(evaluations: Sequence[Evaluation]) -> list[Panel]:
    """What is to be drawn."""
    found = pictures(evaluations)
    return [_panel(picture, model, named=len(found) > 1) for picture in found for model in picture.models]


def _panel(picture: Picture, model: str, *, named: bool) -> Panel:
    columns = [_column(place, list(rows.values())) for place, rows in picture.of_model(model).items()]
    headroom = np.mean([column.headroom for column in columns])
    agents = len(picture.seeds)
    means = f" ({agents} agents)" if agents > 1 else ""
    name = f"{picture.name}\n" if named else ""
    return Panel(model, f"{name}{model}: mean headroom {headroom:.2f}{means}", columns)


def _column(place: Place, rows: Sequence[Row]) -> Column:
    reached = [row.agent.accuracy for row in rows]
    accuracies = {
        "never": [row.others.never for row in rows],
        "random": [row.others.random for row in rows],
        "best fixed": [math.nan if row.others.fixed is None else row.others.fixed for row in rows],
        "agent": reached,
        "oracle": [row.others.oracle for row in rows],
    }
    return Column(
        place,
        all(row.seen for row in rows),
        {name: float(np.mean(values)) for name, values in accuracies.items()},
        min(reached),
        max(reached),
        float(np.mean([row.agent.headroom for row in rows])),
        tuple(row.agent.rank for row in rows),
        rows[0].agent.of,
    )


def limits(columns: Sequence[Column]) -> tuple[float, float]:
    """From a multiple of 5 % below all bars, so that the shortest can be seen, to above what is written."""
    found = [value for each in columns for value in (each.least, *each.accuracies.values())]
    least, most = np.nanmin(found), np.nanmax(found)
    low = max(0.0, (math.ceil(round(least / STEP, 6)) - 1) * STEP)
    return low, float(most + 0.2 * (most - low))


def accuracy_figures(evaluations: Sequence[Evaluation], footer: Sequence[str]) -> Iterator[Figure]:
    """A page, or several if there are many panels."""
    found = panels(evaluations)
    if not found:
        raise InputError("nothing was evaluated; give agents and recordings: rota evaluate")
    for at in range(0, len(found), MOST):
        yield _page(found[at : at + MOST], footer)


def _page(found: Sequence[Panel], footer: Sequence[str]) -> Figure:
    across = min(ACROSS, len(found))
    down = -(-len(found) // across)
    width_in = BESIDE_IN + COLUMN_IN * max(len(panel.columns) for panel in found)
    figure = new_page(
        "How close does the agent come to the best that can be done?",
        "accuracy at the end of the budget; headroom: 0 is the mean of all sequences, 1 the best (oracle)",
        footer,
        width_in=max(LEAST_IN, width_in * across),
        height_in=HEIGHT_IN * down + LEGEND_IN,
    )
    grid = figure.add_gridspec(down + 1, across, height_ratios=[HEIGHT_IN] * down + [LEGEND_IN])
    for at, panel in enumerate(found):
        same = [column for each in found if each.model == panel.model for column in each.columns]
        _draw(figure.add_subplot(grid[at // across, at % across]), panel, limits(same))
    _legend(figure.add_subplot(grid[down, :]), [column for panel in found for column in panel.columns])
    return figure


def _draw(axes: Axes, panel: Panel, seen: tuple[float, float]) -> None:
    for at, column in enumerate(panel.columns):
        _draw_bars(axes, at, column)
    labels = [column.place.label + ("" if column.seen else "\nunseen") for column in panel.columns]
    plain(axes, grid="y")
    axes.set_ylim(*seen)
    axes.set_xticks(range(len(labels)), labels, size=8)
    axes.set_xlim(-0.55, len(labels) - 0.45)
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(percent)
    axes.set_ylabel(f"accuracy (axis from {percent(seen[0])})", size=9)
    axes.set_title(panel.title, loc="left", size=9.5, color=INK)


def _draw_bars(axes: Axes, at: int, column: Column) -> None:
    for number, (name, accuracy) in enumerate(column.accuracies.items()):
        where = at + (number - 2) * BAR
        hatch = UNSEEN if name == "agent" and not column.seen else ""
        axes.bar(
            where, accuracy, 0.92 * BAR, color=COLOURS[name], hatch=hatch, edgecolor="white", linewidth=0
        )
        if name == "agent" and column.most > column.least:
            axes.plot([where] * 2, [column.least, column.most], color=INK, linewidth=1.2)
    above: dict[str, Any] = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center"}
    axes.annotate(column.said, (at, column.accuracies["oracle"]), **above, size=6.8, color=COLOURS["agent"])


def _legend(axes: Axes, columns: Sequence[Column]) -> None:
    patches = []
    for name, colour in COLOURS.items():
        if name != "agent" or any(column.seen for column in columns):
            patches.append(Patch(color=colour, label=NAMES[name]))
        if name == "agent" and not all(column.seen for column in columns):
            label = "agent, where it has not learned"
            patches.append(Patch(facecolor=colour, edgecolor="white", hatch=UNSEEN, label=label))
    axes.set_axis_off()
    axes.legend(handles=patches, loc="upper left", ncols=3, fontsize=8, frameon=False, handlelength=1.2)
