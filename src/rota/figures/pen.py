"""Figures become files: each a PNG, and an SVG beside it where that is asked for."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from rota.core.atomic import written
from rota.figures.page import save, save_svg


class Pen(NamedTuple):
    """How figures are written."""

    svg: bool = False
    """Also as vectors."""
    dots_per_in: int = 160

    def draw(self, figure: Figure, file: Path) -> Iterator[Path]:
        """`file` is that of the PNG; gives each that is written."""
        with written(file) as stream:
            save(figure, stream, dots_per_in=self.dots_per_in)
        yield file
        if self.svg:
            with written(file.with_suffix(".svg")) as stream:
                save_svg(figure, stream)
            yield file.with_suffix(".svg")


PEN = Pen()
"""That nobody has chosen."""
