"""Blocks of a report's page: plain values, and their colours."""

import colorsys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from rota.figures.page import allocation_colour, model_colours, scheduler_colour

Colour = list[str]
"""A colour on a light page, and on a dark one."""

ON_DARK = {
    "#626262": "#a3a3a3", "#0072b2": "#4ba3dd", "#56c9f0": "#93def8", "#00a66e": "#2fc792",
    "#c7c110": "#d8d338", "#cc79a7": "#e39cc4", "#e7aa5c": "#f2c385", "#d55500": "#f27a2c",
    "#6b2500": "#b3683f", "#331d88": "#9180e8",
}  # fmt: skip
"""Substitutes on a dark page for colours that are too dark there."""
SHADES = 24
TRIALS = 8
"""Number of colours that tell trials apart."""
WORST, BEST = (0.91, 0.93, 0.96), (0.03, 0.32, 0.55)
WORST_ON_DARK, BEST_ON_DARK = (0.20, 0.23, 0.28), (0.45, 0.80, 1.0)
AGENTS = ("#0072b2", "#d55500", "#00a66e", "#cc79a7", "#626262")
"""Colours of agents, by seed."""

RULES = {
    "fifo": "jobs start in the order of arrival and keep their slots",
    "srtf": "the job with the least time left goes first",
    "srsf": "the job with the least GPU time left goes first",
    "tiresias": "the job with the least GPU time so far goes first; durations need not be known",
    "themis": "the job that has been treated least fairly so far goes first",
    "antman": "guaranteed jobs have GPUs of their own, the others share them",
    "muri-s": "jobs that need different resources share GPUs; those with least left to do first",
    "muri-l": "jobs that need different resources share GPUs; those that have had least first",
    "muri-l-worst-order": "as muri-l, with the stages of a group in the worst order",
    "muri-l-no-blossom": "as muri-l, with groups that are put together without matching",
    "elastic": "the job with the least time left goes first; idle GPUs make gangs larger",
}
ALLOCATION_RULES = {
    "fifo": "the next trial goes to the slot that has been idle for longest, one interval at a time",
    "era": "long assignments while there is much to do, shorter ones towards the end",
    "eta": "assignments as long as the slowest slot needs for one trial",
    "hrfs": "fast slots help trials that are behind, slow ones do little for those ahead",
    "finish": "the assignment that minimises the estimated makespan",
    "learned": "the assignment that an agent has learned to be best, in simulations",
}


def scheduler(name: str) -> Colour:
    """Return the colour of a scheduler."""
    return both(scheduler_colour(name))


def allocation(name: str) -> Colour:
    """Return the colour of an allocation."""
    return both(allocation_colour(name))


def agent(number: int) -> Colour:
    """Return the colour of an agent by number; colours repeat."""
    return both(AGENTS[number % len(AGENTS)])


def both(colour: str) -> Colour:
    """Return a colour, and its substitute on a dark page."""
    return [colour, ON_DARK.get(colour) or _lighter(colour)]


def models(names: Sequence[str]) -> list[Colour]:
    """Return a pale colour of each model, a little darker on a dark page."""
    return [[colour, _darker(colour)] for colour in model_colours(names).values()]


def trials() -> list[Colour]:
    """Return colours for trials that were not measured."""
    return models([str(number) for number in range(TRIALS)])


def shades() -> list[Colour]:
    """Return shades from the worst to the best; the first is for what was not measured."""
    steps = [at / (SHADES - 2) for at in range(SHADES - 1)]
    pairs = [[_mixed(WORST, BEST, at), _mixed(WORST_ON_DARK, BEST_ON_DARK, at)] for at in steps]
    return [["#9fb4c7", "#5b7288"], *pairs]


def _mixed(one: Sequence[float], other: Sequence[float], share: float) -> str:
    return _hex(a + (b - a) * share for a, b in zip(one, other, strict=True))


def _lighter(colour: str) -> str:
    hue, light, saturation = _hls(colour)
    return _hex(colorsys.hls_to_rgb(hue, 0.45 + 0.5 * light, saturation))


def _darker(colour: str) -> str:
    hue, light, saturation = _hls(colour)
    return _hex(colorsys.hls_to_rgb(hue, 0.8 * light, 0.75 * saturation))


def _hls(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return colorsys.rgb_to_hls(red, green, blue)


def _hex(parts: Iterable[float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


Best = Literal["least", "most", ""]
Kind = Literal["time", "share", "number", "text"]
Block = dict[str, Any]


class Head(NamedTuple):
    """A column of a table."""

    name: str
    hint: str = ""
    """Explanation of the column."""
    best: Best = ""


class TableCell(NamedTuple):
    """A cell: the value that is sorted by, None if there is none, and its text."""

    value: float | str | None
    text: str


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A series of a chart; a gap where `y` is None."""

    name: str
    colour: Colour
    x: Sequence[float | None]
    y: Sequence[float | None]
    dash: int = 0
    """Dash pattern: tells lines of one colour apart."""
    faint: bool = False
    """Whether it is thin and not in the legend."""


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """An axis of a chart."""

    label: str
    kind: Kind = "number"
    log: bool = False
    places: Sequence[float] = ()
    names: Sequence[str] = ()
    """Positions and texts of the marks, if given; categories (`text`) are at 0, 1, …"""


@dataclass(frozen=True, slots=True)
class Glance:
    """The summary of a section."""

    winner: str
    colour: Colour
    says: str
    """What the winner did."""
    others: str = ""
    bars: Sequence[tuple[str, Colour, float, str]] = ()
    """All that were compared: name, colour, value, and its text."""
    won: bool = False
    """Whether several policies were compared, and this is the best of them."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report."""

    id: str
    kind: str
    """Kind of section in plain words: `schedulers`, `learning` …"""
    title: str
    about: str
    glance: Glance
    blocks: Sequence[Block]
    commands: Sequence[str] = field(default=())
    """Commands that made the results."""

    def record(self) -> dict[str, Any]:
        """Return plain values for the page."""
        return asdict(self)


def table(
    title: str,
    heads: Sequence[Head],
    rows: Sequence[Sequence[TableCell]],
    colours: Sequence[Colour],
    note: str = "",
    fold: int = 0,
) -> Block:
    """Return a table with a colour per row; at first, `fold` rows are shown, or all if it is 0."""
    return {
        "type": "table",
        "title": title,
        "note": note,
        "heads": [head._asdict() for head in heads],
        "rows": [[list(cell) for cell in row] for row in rows],
        "colours": list(colours),
        "fold": fold,
    }


def chart(
    title: str,
    x: ChartAxis,
    y: ChartAxis,
    lines: Sequence[ChartLine],
    *,
    steps: bool = False,
    dots: bool = False,
    note: str = "",
) -> Block:
    """Return a line chart; `steps`: a value holds until the next; `dots`: only points were measured."""
    return {
        "type": "chart",
        "title": title,
        "note": note,
        "x": asdict(x),
        "y": asdict(y),
        "steps": steps,
        "dots": dots,
        "lines": [asdict(line) for line in lines],
    }


def shares(
    title: str,
    parts: Sequence[tuple[str, Colour]],
    rows: Sequence[tuple[str, Sequence[float]]],
    note: str = "",
) -> Block:
    """Return a bar per row, divided into parts that add up to 1."""
    return {
        "type": "shares",
        "title": title,
        "note": note,
        "parts": [list(part) for part in parts],
        "rows": [[name, list(values)] for name, values in rows],
    }
