"""All figures by name. To add one: write its file with a data and a draw function, add its line here."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rota.core.errors import ConfigError, unknown

if TYPE_CHECKING:
    from rota.figures.groups import DrawnFigure, Options

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
    "trials": "rota.figures.trials:sheets",
}
"""Functions that draw the figures of groups of runs of populations, by name."""

GRIDS = {"grid": "rota.figures.grid:sheets"}
"""Functions that draw the figures of all runs of a grid, by name."""


def figure(
    name: str, among: Mapping[str, str] = MappingProxyType(FIGURES)
) -> "Callable[[Any, Options], Iterator[DrawnFigure]]":
    """Return the function that draws a figure, by its name among those of one kind."""
    if name not in among:
        raise ConfigError(unknown("figure", name, among))
    module, function = among[name].split(":")
    draw: Callable[[Any, Options], Iterator[DrawnFigure]] = getattr(import_module(module), function)
    return draw


def check(name: str) -> None:
    """Raise an error if there is no figure of this name."""
    figure(name, FIGURES | POPULATIONS | GRIDS)
