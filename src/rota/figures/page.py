"""The page of a figure: colours, strokes, ticks of durations, size and style."""

import colorsys
import io
import textwrap
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import NullLocator

from rota.core.errors import ConfigError, InputError
from rota.core.files import atomic_write, printable_lines
from rota.recordings.folder import Provenance

SCHEDULERS = {
    "fifo": "#626262",
    "srtf": "#0072b2",
    "srsf": "#56c9f0",
    "tiresias": "#00a66e",
    "themis": "#c7c110",
    "antman": "#cc79a7",
    "muri-s": "#e7aa5c",
    "muri-l": "#d55500",
    "muri-l-worst-order": "#6b2500",
    "muri-l-no-blossom": "#331d88",
    "gittins": "#9600f0",
    "las": "#5a1e5a",
    "random": "#1e000f",
}
"""Colours of schedulers, in the order in which figures list them."""

ALLOCATIONS = {
    "fifo": "#626262",
    "era": "#56c9f0",
    "eta": "#0072b2",
    "hrfs": "#00a66e",
    "finish": "#e7aa5c",
    "learned": "#d55500",
    "spa-era": "#c7c110",
    "spa-eta": "#6b2500",
    "gpa-era": "#cc79a7",
    "gpa-eta": "#331d88",
}
"""Colours of allocations, in the order in which figures list them."""

MODELS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#44bb99", "#bbcc33", "#99ddff", "#aaaa00")
"""Colours of models: pale, so that dark text can be read on them."""
OTHER_MODELS = "#bbbbbb"
IDLE = "#e9e9e9"
INK = "#222222"
FAINT = "#767676"
REAL, SIMULATED = "#222222", "#d55500"
"""Colours of real runs and of simulated ones."""

DASHES = ("solid", (0, (4, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (2, 2, 6, 2)))
"""Dash patterns that tell runs of the same scheduler apart."""
HATCHES = ("", "////", "....", "xxxx", "----")


def scheduler_colour(name: str) -> str:
    """Return the colour of a scheduler; one that is not listed gets a colour from its name."""
    return SCHEDULERS.get(name) or _from_name(name)


def allocation_colour(name: str) -> str:
    """Return the colour of an allocation; one that is not listed gets a colour from its name."""
    return ALLOCATIONS.get(name) or _from_name(name)


def _from_name(name: str) -> str:
    hue = zlib.crc32(name.encode()) / 2**32
    red, green, blue = (round(255 * part) for part in colorsys.hls_to_rgb(hue, 0.42, 0.55))
    return f"#{red:02x}{green:02x}{blue:02x}"


def model_colours(models: Sequence[str]) -> dict[str, str]:
    """Return a colour for each model; those beyond the palette share one."""
    return {model: MODELS[i] if i < len(MODELS) else OTHER_MODELS for i, model in enumerate(models)}


class Pen(NamedTuple):
    """Options for writing figures."""

    svg: bool = False
    """Write an SVG file, too."""
    dots_per_in: int = 160
    kept: frozenset[Path] = frozenset()
    """Absolute paths of files that are not overwritten."""
    on_kept: Callable[[Path], object] = lambda file: None
    """Called with each of them that would have been written."""

    def draw(self, figure: Figure, file: Path) -> Iterator[Path]:
        """Write a figure; `file` is that of the PNG. Yields each file that is written."""
        if self._is_free(file):
            with atomic_write(file) as stream:
                save(figure, stream, dots_per_in=self.dots_per_in)
            yield file
        vectors = file.with_suffix(".svg")
        if self.svg and self._is_free(vectors):
            with atomic_write(vectors) as stream:
                save_svg(figure, stream)
            yield vectors

    def _is_free(self, file: Path) -> bool:
        if file.resolve() not in self.kept:
            return True
        self.on_kept(file)
        return False


PEN = Pen()
"""Default options."""


MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0


class AxisUnit(NamedTuple):
    """The unit of an axis of time."""

    name: str
    seconds: float


SECONDS, MINUTES = AxisUnit("seconds", 1.0), AxisUnit("minutes", MINUTE_S)
HOURS, DAYS = AxisUnit("hours", HOUR_S), AxisUnit("days", DAY_S)
UNITS = (SECONDS, MINUTES, HOURS, DAYS)
SHORT = {"seconds": "s", "minutes": "min", "hours": "h", "days": "days"}

LOG_TICKS = {
    1.0: "1 s", 10.0: "10 s", MINUTE_S: "1 min", 10 * MINUTE_S: "10 min", HOUR_S: "1 h",
    6 * HOUR_S: "6 h", DAY_S: "1 day", 7 * DAY_S: "1 week", 30 * DAY_S: "30 days", 365 * DAY_S: "1 year",
}  # fmt: skip
FEWEST_TICKS = 3


def unit_for(span_s: float) -> AxisUnit:
    """Return the largest unit of which an axis over this span has more than two."""
    return next((unit for unit in reversed(UNITS) if span_s > 2 * unit.seconds), UNITS[0])


def said(duration_s: float) -> str:
    """Return a duration with at least two significant digits and a unit: `0.25 s`, `48 s`, `2.5 days`."""
    unit = unit_for(duration_s)
    amount = duration_s / unit.seconds
    text = f"{amount:.2g}" if amount < 9.95 else f"{amount:,.0f}"
    return f"{text} {SHORT[unit.name]}"


def log_ticks(low_s: float, high_s: float) -> dict[float, str]:
    """Return positions and texts of the marks of a logarithmic axis; a short axis has more of them."""
    coarse = {at_s: label for at_s, label in LOG_TICKS.items() if low_s <= at_s <= high_s}
    if len(coarse) >= FEWEST_TICKS:
        return coarse
    fine = [10.0**power * digit for power in range(-6, 9) for digit in (1, 2, 5)]
    return {at_s: said(at_s) for at_s in fine if low_s <= at_s <= high_s}


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
    """Return an empty figure with a title and a footer; the size is that of the room in between."""
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
    """Return the commands that a reader needs to make the figure again."""
    more = f" (and {len(run_by) - 3} more)" if len(run_by) > 3 else ""
    return (f"figure: {drawn_by}", f"runs:   {' · '.join(run_by[:3])}{more}")


def origins(recorded: Iterable[Provenance]) -> list[str]:
    """Return the provenance of recordings, each once, for the footer."""
    lines = list(dict.fromkeys(f"from:   {each.made_with} · {each.command}" for each in recorded))
    more = [f" (and {len(lines) - MOST_ORIGINS} more)"] if len(lines) > MOST_ORIGINS else []
    return lines[:MOST_ORIGINS] + more


def spread(values: Sequence[T], most: int) -> list[T]:
    """Return some of many values, evenly spread, with the first and the last."""
    places = np.linspace(0, len(values) - 1, min(len(values), most))
    return [values[place] for place in sorted({round(place) for place in places.tolist()})]


def plain(axes: Axes, *, grid: str = "") -> None:
    """Remove decoration from axes; `grid` names the directions (x, y or both) that get faint lines."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, color=FAINT)
    axes.xaxis.label.set(color=INK, size=10)
    axes.yaxis.label.set(color=INK, size=10)
    axes.set_axisbelow(True)
    for direction in grid:
        (axes.xaxis if direction == "x" else axes.yaxis).grid(True, color="#e2e2e2", linewidth=0.7)


def rows(axes: Axes, labels: Sequence[str], *, grid: str = "") -> None:
    """Name the rows of a horizontal chart, the first at the top, and remove decoration."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.45, -0.55)
    plain(axes, grid=grid)
    axes.tick_params(axis="y", length=0)


def pages(
    found: Sequence[T], most: int, draw: Callable[[Sequence[T]], Figure], missing: str
) -> Iterator[Figure]:
    """Yield pages with at most so many panels each. Raises InputError if there is nothing to draw."""
    if not found:
        raise InputError(missing)
    yield from (draw(found[at : at + most]) for at in range(0, len(found), most))


def key_below(axes: Axes, handles: Sequence[Patch], **look: Any) -> None:
    """Fill axes at the foot of a page with a legend."""
    axes.set_axis_off()
    usual: dict[str, Any] = {"loc": "upper left", "fontsize": 8, "frameon": False, "handlelength": 1.2}
    axes.legend(handles=handles, **usual | look)


def in_palette(names: Iterable[str], palette: Iterable[str]) -> list[str]:
    """Return names, each once, in the order of a palette; others after them, by name."""
    places = {name: place for place, name in enumerate(palette)}
    return sorted(set(names), key=lambda name: (places.get(name, len(places)), name))


def legend(axes: Axes, title: str = "", **look: Any) -> None:
    """Add a legend at the right of the axes, of given handles, or of what has a label, if anything has."""
    if look.get("handles", axes.get_legend_handles_labels()[0]):
        usual: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "fontsize": 9}
        axes.legend(**usual | look, frameon=False, title=title, alignment="left")


def legend_above(axes: Axes, handles: Sequence[Artist], **look: Any) -> None:
    """Add a legend above the axes."""
    usual: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "fontsize": 8.5}
    axes.legend(handles=handles, **usual | look, frameon=False, borderpad=0.2)


def log_durations(axes: Axes, low_s: float, high_s: float, *, along: str = "x") -> None:
    """Make an axis of seconds logarithmic, x or y, with marks at common durations."""
    ticks = log_ticks(low_s, high_s)
    axes.set(**{f"{along}scale": "log", f"{along}lim": (low_s, high_s)})
    axes.set(**{f"{along}ticks": list(ticks), f"{along}ticklabels": list(ticks.values())})
    (axes.xaxis if along == "x" else axes.yaxis).set_minor_locator(NullLocator())


Corners = list[tuple[float, float]]


def box(left: float, right: float, top: float, bottom: float) -> Corners:
    """Return the corners of a rectangle, for a collection of them."""
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def lanes(axes: Axes, count: float) -> None:
    """Turn axes into lanes from the top down, without marks beside their names."""
    axes.set_ylim(count, 0)
    plain(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


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
"""Functions that write a figure, by file suffix."""


def check_format(file: Path) -> None:
    """Raise an error if the suffix of a file is not that of a figure."""
    if file.suffix.lower() not in FORMATS:
        raise ConfigError(f"{file}: a figure is written as {', '.join(FORMATS)}; choose such a name")


def write_figure(figure: Figure, file: Path) -> None:
    """Write a figure to a file, in the format of its suffix."""
    check_format(file)
    with atomic_write(file) as stream:
        FORMATS[file.suffix.lower()](figure, stream)


@contextmanager
def _as_it_is(figure: Figure) -> Iterator[None]:
    """Draw text as it is: names from files are no formulas, and may have characters that no font has."""
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
