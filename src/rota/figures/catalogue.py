"""All figures by name. To add one: write its file with a data function and a draw function, add its line here."""

from collections.abc import Callable, Iterator

from rota.figures import comparison, gantt, jct, load
from rota.figures.groups import Group
from rota.figures.sheets import Options, Sheet

FIGURES: tuple[tuple[str, Callable[[Group, Options], Iterator[Sheet]]], ...] = (
    ("jct", jct.sheets),
    ("comparison", comparison.sheets),
    ("load", load.sheets),
    ("gantt", gantt.sheets),
)
