"""What all figures have in common: a title, a subject, plain axes, and a footer that names the commands."""

import io
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from rota.core.errors import ConfigError
from rota.core.text import printable_lines
from rota.figures.colours import FAINT, INK
from rota.recordings.provenance import Provenance

T = TypeVar("T")

MARGIN_IN = 0.12
TITLE_IN, SUBJECT_IN, LINE_IN = 0.27, 0.2, 0.135
CHARACTERS_PER_IN = 17.5
MOST_ORIGINS = 4


class Page(Figure):
    """A figure that shows itself in a notebook."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        save(self, stream)
        return stream.getvalue()


def new_page(
    title: str, subject: str, footer: Sequence[str], *, width_in: float = 8.0, height_in: float = 4.8
) -> Figure:
    """An empty figure with its title above and its footer below; the size is that of what is in between."""
    lines = [line for text in footer for line in _wrapped(text, width_in)]
    head_in = MARGIN_IN + TITLE_IN + SUBJECT_IN
    foot_in = 2 * MARGIN_IN + LINE_IN * len(lines)
    whole_in = height_in + head_in + foot_in
    figure = Page(figsize=(width_in, whole_in), facecolor="white")
    FigureCanvasAgg(figure)
    figure.set_layout_engine(
        ConstrainedLayoutEngine(
            rect=(0.0, foot_in / whole_in, 1.0, height_in / whole_in),
            w_pad=MARGIN_IN,
            h_pad=0.05,
            hspace=0.02,
        )
    )
    left, top_in = MARGIN_IN / width_in, whole_in - MARGIN_IN
    figure.text(left, top_in / whole_in, title, size=13, weight="bold", color=INK, va="top")
    figure.text(left, (top_in - TITLE_IN) / whole_in, subject, size=10, color=FAINT, va="top")
    text = "\n".join(lines)
    figure.text(left, MARGIN_IN / whole_in, text, size=6.5, color=FAINT, va="bottom", family="monospace")
    return figure


def footer(drawn_by: str, run_by: Sequence[str]) -> tuple[str, ...]:
    """The commands that a reader needs to make the figure again."""
    more = f" (and {len(run_by) - 3} more)" if len(run_by) > 3 else ""
    return (f"figure: {drawn_by}", f"runs:   {' · '.join(run_by[:3])}{more}")


def origins(recorded: Iterable[Provenance]) -> list[str]:
    """What recordings were made with, each once, for the footer."""
    lines = list(dict.fromkeys(f"from:   {each.made_with} · {each.command}" for each in recorded))
    more = [f" (and {len(lines) - MOST_ORIGINS} more)"] if len(lines) > MOST_ORIGINS else []
    return lines[:MOST_ORIGINS] + more


def spread(values: Sequence[T], most: int) -> list[T]:
    """Some of many, evenly spread, with the first and the last."""
    places = np.linspace(0, len(values) - 1, min(len(values), most))
    return [values[place] for place in sorted({round(place) for place in places.tolist()})]


def plain(axes: Axes, *, grid: str = "") -> None:
    """Axes without decoration; `grid` names the directions (x, y or both) that get faint lines."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, color=FAINT)
    axes.xaxis.label.set(color=INK, size=10)
    axes.yaxis.label.set(color=INK, size=10)
    axes.set_axisbelow(True)
    for direction in grid:
        (axes.xaxis if direction == "x" else axes.yaxis).grid(True, color="#e2e2e2", linewidth=0.7)


def legend(axes: Axes, title: str = "") -> None:
    """A legend beside the axes, where it can hide nothing; none if nothing has a name to be shown."""
    if not axes.get_legend_handles_labels()[0]:
        return
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.0, 1.02), fontsize=9, frameon=False, title=title, alignment="left"
    )


def save(figure: Figure, stream: IO[bytes], *, dots_per_in: int = 160) -> None:
    """Write a PNG; the same figure gives the same bytes."""
    with _as_it_is(figure):
        figure.savefig(stream, format="png", dpi=dots_per_in, metadata={"Software": None})


def save_svg(figure: Figure, stream: IO[bytes]) -> None:
    """Write an SVG; the same figure gives the same bytes."""
    with _as_it_is(figure), rc_context({"svg.hashsalt": "rota"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})


def save_pdf(figure: Figure, stream: IO[bytes]) -> None:
    """Write a PDF; the same figure gives the same bytes."""
    with _as_it_is(figure):
        figure.savefig(stream, format="pdf", metadata={"CreationDate": None})


FORMATS = {".png": save, ".svg": save_svg, ".pdf": save_pdf}
"""How the name of a file ends → what writes it."""


def check_format(file: Path) -> None:
    """Raise an error if the name of a file does not say how a figure is written."""
    if file.suffix.lower() not in FORMATS:
        raise ConfigError(f"{file}: a figure is written as {', '.join(FORMATS)}; choose such a name")


def save_as(figure: Figure, stream: IO[bytes], file: Path) -> None:
    """Write a figure in the format that the name of its file says."""
    check_format(file)
    FORMATS[file.suffix.lower()](figure, stream)


@contextmanager
def _as_it_is(figure: Figure) -> Iterator[None]:
    """Text is drawn as it is written: a name from a file is no formula, and may have what no font has."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)
        text.set_text(printable_lines(text.get_text()))
    with rc_context({"text.parse_math": False}), warnings.catch_warnings():
        for harmless in (r"Glyph .* missing from font", "constrained_layout not applied"):  # a name too long
            warnings.filterwarnings("ignore", harmless, UserWarning)
        yield


def _wrapped(text: str, width_in: float) -> list[str]:
    return textwrap.wrap(
        text,
        int((width_in - 2 * MARGIN_IN) * CHARACTERS_PER_IN),
        subsequent_indent=8 * " ",
        break_on_hyphens=False,
    )
