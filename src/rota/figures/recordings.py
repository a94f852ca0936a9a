"""What was recorded, on one page: trees as strips of accuracies, curves as lines, profiles as bars."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from rota.core.errors import InputError
from rota.figures.adaptation import adaptation_figure
from rota.figures.page import new_page, origins
from rota.figures.recorded_curves import HEIGHT_IN as CURVES_IN
from rota.figures.recorded_curves import bundle, draw_curves
from rota.figures.recorded_profiles import draw_profiles, panels
from rota.figures.recorded_trees import draw_trees, tree_blocks
from rota.recordings.describe import contents
from rota.recordings.library import Library

WIDTH_IN = 11.0
ABREAST = 2
"""Bundles of curves side by side."""

Data = TypeVar("Data")


Draw = Callable[[Figure, SubplotSpec], Axes]


class Part(NamedTuple):
    """Axes side by side on the page."""

    height_in: float
    across: list[Draw]


class Drawing(NamedTuple):
    """A figure that can be drawn of a library."""

    name: str
    verb: str
    """Of `rota recordings`."""
    figure: Callable[[str], Figure]
    """Takes the command that draws it."""


def figures(library: Library) -> list[Drawing]:
    """All that there is something for."""
    trees = [held.what for held in library.trees]
    found = [Drawing("overview", "describe", partial(recordings_figure, library))] if len(library) else []
    if any(not tree.missing() for tree in trees):
        found.append(Drawing("adaptation", "adaptation", partial(adaptation_figure, trees)))
    return found


def parts(library: Library) -> list[Part]:
    """What is to be drawn, from the top."""
    blocks = tree_blocks([held.what for held in library.trees])
    found = [Part(block.height_in, [_drawer(draw_trees, block)]) for block in blocks]
    lines = [_drawer(draw_curves, bundle(held.what)) for held in library.curves]
    found += [Part(CURVES_IN, lines[at : at + ABREAST]) for at in range(0, len(lines), ABREAST)]
    profiles = {held.name: held.what for held in library.profiles}
    found += [Part(panel.height_in, [_drawer(draw_profiles, panel)]) for panel in panels(profiles)]
    return found


def _drawer(draw: Callable[[Figure, SubplotSpec, Data], Axes], data: Data) -> Draw:
    return lambda figure, place: draw(figure, place, data)


def recordings_figure(library: Library, drawn_by: str) -> Figure:
    """The page; `drawn_by` is the command that draws it."""
    if not len(library):
        raise InputError(f"{library.folder}: no complete recording to draw; record or import one first")
    drawn = parts(library)
    heights_in = [part.height_in for part in drawn]
    every = [
        *(held.what.provenance for held in library.trees),
        *(held.what.provenance for held in library.curves),
        *(held.what.provenance for held in library.profiles),
    ]
    figure = new_page(
        "What was recorded",
        f"{library.folder}: {contents(library)}",
        (f"figure: {drawn_by}", *origins(every)),
        width_in=WIDTH_IN,
        height_in=sum(heights_in),
    )
    grid = figure.add_gridspec(len(drawn), 1, height_ratios=heights_in)
    for number, part in enumerate(drawn):
        places = grid[number, 0].subgridspec(1, len(part.across))
        for column, draw in enumerate(part.across):
            draw(figure, places[0, column])
    return figure
