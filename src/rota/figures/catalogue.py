"""All figures by name. To add one: write its file with a data and a draw function, add its line here."""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rota.core.errors import ConfigError, unknown

if TYPE_CHECKING:
    from rota.figures.grid_runs import ParameterGrid
    from rota.figures.groups import DrawnFigure, Options, RunGroup
    from rota.figures.population import PopulationGroup

FIGURES = {
    "jct": "rota.figures.jobs:jct_sheets",
    "comparison": "rota.figures.jobs:comparison_sheets",
    "load": "rota.figures.jobs:load_sheets",
    "gantt": "rota.figures.gantt:sheets",
}
"""Functions that draw the figures of a group of runs, by name; imported on demand."""


POPULATIONS = {
    "ratio": "rota.figures.population:ratio_sheets",
    "accuracy": "rota.figures.population:accuracy_sheets",
    "idle": "rota.figures.population:idle_sheets",
    "gantt": "rota.figures.population_gantt:sheets",
}
"""Functions that draw the figures of groups of runs of populations, by name."""

GRIDS = {"grid": "rota.figures.grid:sheets"}
"""Functions that draw the figures of all runs of a grid, by name."""


def figure(name: str) -> "Callable[[RunGroup, Options], Iterator[DrawnFigure]]":
    """Return the function that draws a figure of a group of runs, by name."""
    draw: Callable[[RunGroup, Options], Iterator[DrawnFigure]] = _function(name, FIGURES)
    return draw


def population_figure(name: str) -> "Callable[[Sequence[PopulationGroup], Options], Iterator[DrawnFigure]]":
    """Return the function that draws a figure of groups of populations, by name."""
    draw: Callable[[Sequence[PopulationGroup], Options], Iterator[DrawnFigure]] = _function(name, POPULATIONS)
    return draw


def grid_figure(name: str) -> "Callable[[ParameterGrid, Options], Iterator[DrawnFigure]]":
    """Return the function that draws a figure of a grid, by name."""
    draw: Callable[[ParameterGrid, Options], Iterator[DrawnFigure]] = _function(name, GRIDS)
    return draw


def check(name: str) -> None:
    """Raise an error if there is no figure of this name."""
    _function(name, FIGURES | POPULATIONS | GRIDS)


def _function(name: str, figures: dict[str, str]) -> Any:
    if name not in figures:
        raise ConfigError(unknown("figure", name, figures))
    module, function = figures[name].split(":")
    return getattr(import_module(module), function)
