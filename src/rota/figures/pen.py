"""Figures become files: each a PNG, and an SVG beside it where that is asked for."""

from collections.abc import Callable, Iterator
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
    kept: frozenset[Path] = frozenset()
    """Files that are left as they are, as absolute paths."""
    on_kept: Callable[[Path], object] = lambda file: None
    """Told of each of them that would have been written."""

    def draw(self, figure: Figure, file: Path) -> Iterator[Path]:
        """`file` is that of the PNG; gives each that is written."""
        if self._is_free(file):
            with written(file) as stream:
                save(figure, stream, dots_per_in=self.dots_per_in)
            yield file
        vectors = file.with_suffix(".svg")
        if self.svg and self._is_free(vectors):
            with written(vectors) as stream:
                save_svg(figure, stream)
            yield vectors

    def _is_free(self, file: Path) -> bool:
        if file.resolve() not in self.kept:
            return True
        self.on_kept(file)
        return False


PEN = Pen()
"""That nobody has chosen."""
