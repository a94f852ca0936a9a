"""All figures by name. To add one: write its file with a data and a draw function, add its line here."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from rota.core.errors import ConfigError, unknown

if TYPE_CHECKING:
    from rota.figures.groups import Group
    from rota.figures.sheets import Options, Sheet

FIGURES = {
    "jct": "rota.figures.jct:sheets",
    "comparison": "rota.figures.comparison:sheets",
    "load": "rota.figures.load:sheets",
    "gantt": "rota.figures.gantt:sheets",
}
"""Name → what draws the sheets of a group of runs; imported when it is asked for."""


def figure(name: str) -> "Callable[[Group, Options], Iterator[Sheet]]":
    if name not in FIGURES:
        raise ConfigError(unknown("figure", name, FIGURES))
    module, function = FIGURES[name].split(":")
    draw: Callable[[Group, Options], Iterator[Sheet]] = getattr(import_module(module), function)
    return draw
