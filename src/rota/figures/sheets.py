"""What goes into drawing a figure, and what comes out."""

from typing import NamedTuple

from matplotlib.figure import Figure

from rota.figures.groups import Group
from rota.figures.page import footer
from rota.figures.pen import PEN, Pen


class Options(NamedTuple):
    """What the user asked for."""

    command: str
    """That the figure is drawn by."""
    normalise_to: str | None = None
    """The scheduler that the others are compared with."""
    window_s: tuple[float, float] | None = None
    """Of the Gantt charts, since the first submit."""
    quick: bool = False
    """Only one Gantt chart per group."""
    pen: Pen = PEN
    """What figures are written with."""

    def footer(self, group: Group) -> tuple[str, ...]:
        return footer(self.command, group.commands)


class Sheet(NamedTuple):
    """A drawn figure and the name of its file."""

    name: str
    figure: Figure
