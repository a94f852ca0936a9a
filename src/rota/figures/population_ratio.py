"""How long each allocation takes, as a ratio to the least that is possible: a panel per cluster."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rota.figures.colours import ALLOCATIONS, FAINT, INK, allocation_colour
from rota.figures.page import footer, new_page, plain
from rota.figures.population import PopulationGroup
from rota.figures.sheets import Options, Sheet
from rota.results.population.summary import on_common_ground

ACROSS, MOST_ACROSS = 4, 6
"""Panels side by side: if they come one after the other, and if there is a column per cluster."""


class Ratio(NamedTuple):
    """One allocation on one cluster."""

    allocation: str
    mean: float
    """Mean makespan ÷ mean lower bound, the smallest of all allocations'."""
    least: float
    most: float
    """Of single repetitions."""


def ratios(group: PopulationGroup) -> list[Ratio]:
    found = []
    for summary in on_common_ground([run.summary for run in group.runs]):
        each = [done.makespan_s / done.lower_bound_s for done in summary.repetitions]
        found.append(Ratio(summary.allocation, summary.ratio, min(each), max(each)))
    return found


def sheets(groups: Sequence[PopulationGroup], options: Options) -> Iterator[Sheet]:
    """One sheet for all clusters and populations."""
    commands = tuple(dict.fromkeys(run.command for group in groups for run in group.runs))
    yield Sheet("populations-ratio", draw_ratios(groups, footer(options.command, commands)))


def draw_ratios(groups: Sequence[PopulationGroup], foot: Sequence[str]) -> Figure:
    """A panel per population and cluster; whiskers reach from the best repetition to the worst."""
    data = table(groups)
    places = arranged(list(data))
    down, across = (1 + max(place[at] for place in places.values()) for at in (0, 1))
    names = _names(ratio.allocation for found in data.values() for ratio in found)
    furthest = max(ratio.most for found in data.values() for ratio in found)
    figure = new_page(
        "Makespan relative to the least possible: shorter bars are better",
        "means, with the lower bound dashed; whiskers reach from the best repetition to the worst",
        foot,
        width_in=max(8.5, 1.2 + 2.4 * across),
        height_in=0.25 + down * (0.75 + 0.26 * len(names)),
    )
    grid = figure.add_gridspec(down, across)
    for (population, cluster), (row, column) in places.items():
        axes = figure.add_subplot(grid[row, column])
        _draw_bars(axes, data[population, cluster], names, furthest)
        axes.set_title(f"{cluster}\n{population}", size=9, color=INK, loc="left")
        axes.tick_params(labelleft=column == 0)
        if (row + 1, column) not in places.values():
            axes.set_xlabel("makespan ÷ lower bound", size=9)
    return figure


def table(groups: Sequence[PopulationGroup]) -> dict[tuple[str, str], list[Ratio]]:
    """By population and cluster; those that are the same in both are numbered, not left out."""
    found: dict[tuple[str, str], list[Ratio]] = {}
    for group in groups:
        evolved = ", ".join(filter(None, [group.evolved, group.label]))
        row, number = evolved, 1
        while (row, group.machines) in found:
            number += 1
            row = f"{evolved} ({number})"
        found[row, group.machines] = ratios(group)
    return found


def arranged(keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[int, int]]:
    """Row and column of each: a row per population if that leaves no gaps, else one after the other."""
    rows, columns = (list(dict.fromkeys(key[at] for key in keys)) for at in (0, 1))
    if len(keys) == len(rows) * len(columns) and len(columns) <= MOST_ACROSS:
        return {key: (rows.index(key[0]), columns.index(key[1])) for key in keys}
    return {key: divmod(number, ACROSS) for number, key in enumerate(keys)}


def _names(found: Iterable[str]) -> list[str]:
    """Each allocation once, in the order of the colours."""
    there = set(found)
    return [name for name in ALLOCATIONS if name in there] + sorted(there - set(ALLOCATIONS))


def _draw_bars(axes: Axes, found: Sequence[Ratio], names: Sequence[str], furthest: float) -> None:
    places = [names.index(ratio.allocation) for ratio in found]
    colours = [allocation_colour(ratio.allocation) for ratio in found]
    axes.barh(places, [ratio.mean for ratio in found], 0.72, color=colours)
    axes.axvline(1.0, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    for place, ratio in zip(places, found, strict=True):
        axes.plot([ratio.least, ratio.most], [place, place], color=INK, linewidth=1.0)
        at = max(ratio.most, ratio.mean) + 0.02 * furthest
        axes.text(at, place, f"{ratio.mean:.2f}", size=8, color=INK, va="center_baseline")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.set_xlim(0, 1.2 * furthest)
    plain(axes)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
