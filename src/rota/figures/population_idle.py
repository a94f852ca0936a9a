"""What each slot did with its time: computing, communicating, work that was lost, nothing."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from rota.figures.colours import FAINT, IDLE, INK, allocation_colour
from rota.figures.page import new_page, plain
from rota.figures.population import PopulationGroup, slot_names
from rota.figures.sheets import Options, Sheet
from rota.results.population.usage import SlotUse

LEAST_IN = 8.0
"""The least width of a page: what is said above it must fit."""
COMMUNICATING = "#222222"
LOST: dict[str, Any] = {"facecolor": "white", "edgecolor": FAINT, "hatch": "////", "linewidth": 0}
LEGEND: dict[str, Any] = {
    "loc": "upper left",
    "bbox_to_anchor": (1.0, 1.02),
    "fontsize": 8.5,
    "frameon": False,
    "handlelength": 1.4,
}


class Shares(NamedTuple):
    """Of the time in which a slot was there."""

    computing: float
    communicating: float
    lost: float
    idle: float


def shares(use: SlotUse) -> Shares:
    whole_s = use.there_s or 1.0
    return Shares(
        use.computing_s / whole_s, use.communicating_s / whole_s, use.lost_s / whole_s, use.idle_share
    )


def sheets(groups: Sequence[PopulationGroup], options: Options) -> Iterator[Sheet]:
    for group in groups:
        yield Sheet(f"{group.name}/idle", draw_idle(group, group.footer(options.command)))


def draw_idle(group: PopulationGroup, foot: Sequence[str]) -> Figure:
    """A panel per allocation, a bar per slot; the share of idle time is written beside it."""
    names = slot_names(group.slots)
    figure = new_page(
        "Share of idle time per slot",
        f"{group.title}; of the time it was there, means over repetitions",
        foot,
        width_in=max(LEAST_IN, 3.6 + 1.6 * len(group.runs)),
        height_in=1.0 + 0.27 * len(names),
    )
    panels = figure.subplots(1, len(group.runs), sharey=True, squeeze=False)[0]
    for axes, run in zip(panels, group.runs, strict=True):
        _draw_slots(axes, [shares(use) for use in run.summary.slot_use()], run.summary.allocation)
        axes.set_yticks(np.arange(len(names)), names)
    lost = any(use.lost_s > 0.0 for run in group.runs for use in run.summary.slot_use())
    panels[-1].legend(handles=_legend(lost), **LEGEND)
    return figure


def _draw_slots(axes: Axes, found: Sequence[Shares], allocation: str) -> None:
    places = np.arange(len(found))
    left = np.zeros(len(found))
    looks: dict[str, dict[str, Any]] = {
        "computing": {"color": allocation_colour(allocation)},
        "communicating": {"color": COMMUNICATING},
        "lost": LOST,
        "idle": {"color": IDLE},
    }
    for name, look in looks.items():
        widths = np.array([getattr(each, name) for each in found])
        axes.barh(places, widths, 0.74, left=left, **look)
        left += widths
    for place, each in enumerate(found):
        axes.text(1.03, place, f"{each.idle:.0%}", size=8, color=INK, va="center_baseline")
    axes.set(xlim=(0, 1.22), xticks=[0, 0.5, 1.0])
    axes.set_ylim(len(found) - 0.45, -0.55)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_title(allocation, size=10, color=INK, loc="left")
    plain(axes)
    axes.tick_params(axis="y", length=0)


def _legend(lost: bool) -> list[Patch]:
    handles = [
        Patch(color=FAINT, label="computing (in colour)"),
        Patch(color=COMMUNICATING, label="communicating"),
    ]
    if lost:
        handles.append(Patch(label="lost: its node or its trial failed", **LOST))
    return [*handles, Patch(color=IDLE, label="idle, and its share")]
