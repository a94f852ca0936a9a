"""How sure is an agent? The probability of each action at each decision of its sequence."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.patches import Rectangle

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.figures.colours import FAINT, INK
from rota.figures.learned_rows import Picture, Place, pictures
from rota.figures.page import new_page
from rota.learning.outcome import Evaluation, Row

MOST = 10
"""Rows on a page."""
NAMES_IN, CELL_IN = 1.1, 1.45
HEIGHT_IN, LINE_IN = 0.85, 0.2
LEAST_IN = 6.5
SHADES = LinearSegmentedColormap.from_list("probability", ["#ffffff", "#77aadd", "#0b4f86"])
DARK = 0.6
"""Above this, a number is written in white."""


class Cell(NamedTuple):
    """One agent in one scenario."""

    label: str
    probabilities: Floats
    """Of each decision and action."""
    chosen: tuple[int, ...]
    rank: int
    of: int


class Strip(NamedTuple):
    """One agent and one model."""

    title: str
    actions: list[str]
    cells: list[Cell]

    @property
    def height_in(self) -> float:
        return HEIGHT_IN + LINE_IN * len(self.actions)


def strips(evaluations: Sequence[Evaluation]) -> list[Strip]:
    """What is to be drawn."""
    found = pictures(evaluations)
    return [
        _strip(picture, model, seed, named=len(found) > 1)
        for picture in found
        for model in picture.models
        for seed in picture.seeds
        if any(seed in rows for rows in picture.of_model(model).values())
    ]


def _strip(picture: Picture, model: str, seed: int, *, named: bool) -> Strip:
    places = picture.of_model(model)
    cells = [_cell(place, rows[seed]) for place, rows in places.items() if seed in rows]
    parts = [picture.name] * named + [model] + [f"agent with seed {seed}"] * (len(picture.seeds) > 1)
    every = [row for rows in places.values() for row in rows.values()]
    return Strip(", ".join(parts), action_names(every), cells)


def _cell(place: Place, row: Row) -> Cell:
    label = place.label.replace("\n", ", ") + ("" if row.seen else ", unseen")
    found = row.agent
    return Cell(label, np.array(found.probabilities), found.sequence, found.rank, found.of)


def action_names(rows: Sequence[Row]) -> list[str]:
    """What each action does, in words: as many as any scenario has."""
    names = [list(row.agent.actions) for row in rows]
    return max(names, key=len, default=[])


def probabilities_figures(evaluations: Sequence[Evaluation], footer: Sequence[str]) -> Iterator[Figure]:
    """A page, or several if there are many agents."""
    found = strips(evaluations)
    if not found:
        raise InputError("nothing was evaluated; give agents and recordings: rota evaluate")
    for at in range(0, len(found), MOST):
        yield _page(found[at : at + MOST], footer)


def _page(found: Sequence[Strip], footer: Sequence[str]) -> Figure:
    across = max(len(strip.cells) for strip in found)
    heights_in = [strip.height_in for strip in found]
    figure = new_page(
        "How sure is the agent, and of what?",
        "probability of each action, in percent, at each decision; framed: what it does",
        footer,
        width_in=max(LEAST_IN, NAMES_IN + CELL_IN * across),
        height_in=sum(heights_in),
    )
    grid = figure.add_gridspec(len(found), across, height_ratios=heights_in)
    for at, strip in enumerate(found):
        _draw_strip(figure, grid, at, strip, last=at == len(found) - 1)
    return figure


def _draw_strip(figure: Figure, grid: GridSpec, at: int, strip: Strip, *, last: bool) -> None:
    for number, cell in enumerate(strip.cells):
        axes = figure.add_subplot(grid[at, number])
        _draw(axes, cell, strip.actions if number == 0 else [""] * len(strip.actions))
        if number == 0:
            _head(axes, strip.title)
        if last:
            axes.set_xlabel("decision", size=8, color=INK)


def _head(axes: Axes, text: str) -> None:
    """Written over all cells of a strip, whose titles leave a line for it."""
    where: dict[str, Any] = {"xycoords": "axes fraction", "xytext": (0, 24), "textcoords": "offset points"}
    axes.annotate(text, (0.0, 1.0), **where, size=9, weight="bold", color=INK).set_in_layout(False)


def _draw(axes: Axes, cell: Cell, names: Sequence[str]) -> None:
    chances = cell.probabilities.T
    axes.imshow(chances, cmap=SHADES, vmin=0.0, vmax=1.0, aspect="auto")
    for (action, decision), chance in np.ndenumerate(chances):
        colour = "white" if chance > DARK else INK
        axes.text(decision, action, f"{100 * chance:.0f}", size=7.5, color=colour, ha="center", va="center")
    for decision, action in enumerate(cell.chosen):
        corner = decision - 0.46, action - 0.44
        axes.add_patch(Rectangle(corner, 0.92, 0.88, fill=False, edgecolor="#d55500", linewidth=1.8))
    decisions = range(len(cell.chosen))
    axes.set_xticks(decisions, [str(decision + 1) for decision in decisions], size=7.5)
    axes.set_yticks(range(len(names)), names, size=8)
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_color(FAINT)
    axes.set_title(f"\n{cell.label}\nrank {cell.rank} of {cell.of}", size=8, color=INK, loc="left", pad=3)
