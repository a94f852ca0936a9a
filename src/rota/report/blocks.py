"""What a page is made of: sections of blocks, as plain values. `page/*.js` draws each type of block."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from rota.report.looks import Colour

Best = Literal["least", "most", ""]
Kind = Literal["time", "share", "number", "text"]
Block = dict[str, Any]


class Head(NamedTuple):
    """A column of a table."""

    name: str
    hint: str = ""
    """What it means, for those who wonder."""
    best: Best = ""


class Cell(NamedTuple):
    """What is sorted by, and what is shown; None if there is nothing to sort by."""

    value: float | str | None
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A series of a chart; a gap where `y` is None."""

    name: str
    colour: Colour
    x: Sequence[float | None]
    y: Sequence[float | None]
    dash: int = 0
    """Tells lines of one colour apart."""
    faint: bool = False
    """Not named in the legend, and drawn thinly."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis says, and in what its numbers are."""

    label: str
    kind: Kind = "number"
    log: bool = False
    places: Sequence[float] = ()
    names: Sequence[str] = ()
    """Where the marks are and what they say, if that is given; categories (`text`) are at 0, 1, …"""


@dataclass(frozen=True, slots=True)
class Glance:
    """What a hurried reader is told of a section."""

    winner: str
    colour: Colour
    says: str
    """What the winner did."""
    others: str = ""
    bars: Sequence[tuple[str, Colour, float, str]] = ()
    """Of all that were compared: name, colour, what it came to, and that in words."""
    won: bool = False
    """Whether several policies were compared, and this is the best of them."""


@dataclass(frozen=True, slots=True)
class Section:
    """What belongs together."""

    id: str
    kind: str
    """What it is one of, in plain words: `schedulers`, `learning` …"""
    title: str
    about: str
    glance: Glance
    blocks: Sequence[Block]
    commands: Sequence[str] = field(default=())
    """What made the results."""

    def record(self) -> dict[str, Any]:
        return asdict(self)


def table(
    title: str,
    heads: Sequence[Head],
    rows: Sequence[Sequence[Cell]],
    colours: Sequence[Colour],
    note: str = "",
    fold: int = 0,
) -> Block:
    """A row per colour, which its first cell is marked with; at first only `fold` of them, if given."""
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
    x: Axis,
    y: Axis,
    lines: Sequence[Line],
    *,
    steps: bool = False,
    dots: bool = False,
    note: str = "",
) -> Block:
    """Lines over an axis; `steps` if a value holds until the next, `dots` if only points were measured."""
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
    """A bar per row, cut into parts that add up to 1."""
    return {
        "type": "shares",
        "title": title,
        "note": note,
        "parts": [list(part) for part in parts],
        "rows": [[name, list(values)] for name, values in rows],
    }
