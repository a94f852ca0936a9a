"""Figures of populations: accuracy, idle time, and ratio to the lower bound."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from rota.core.arrays import Floats
from rota.core.grouped import grouped
from rota.core.population.events import Event, Reported
from rota.figures.groups import DrawnFigure, Options
from rota.figures.page import (
    ALLOCATIONS,
    FAINT,
    IDLE,
    INK,
    allocation_colour,
    footer,
    in_palette,
    legend,
    new_page,
    plain,
    rows,
    unit_for,
)
from rota.results.parameters import Labels
from rota.results.population.metrics import SlotUse
from rota.results.population.run import PopulationRecord
from rota.results.population.summary import SlotInfo, on_common_ground

MOMENTS = 400
"""Number of moments at which repetitions are combined."""

Rose = tuple[Floats, Floats]
"""Times at which the best accuracy rose, and its values from then on."""


class Bands(NamedTuple):
    """Mean and range over the repetitions; NaN before all have measured something."""

    mean: Floats
    least: Floats
    most: Floats


def best_so_far(reports: Iterable[tuple[float, float]]) -> Rose:
    """Return when the best metric rose, and to what, from (time, metric) in order; NaN changes nothing."""
    at_s: list[float] = []
    best: list[float] = []
    for when_s, metric in reports:
        if metric > (best[-1] if best else -math.inf):
            at_s.append(when_s)
            best.append(metric)
    return np.array(at_s), np.array(best)


def bands(repetitions: Sequence[Rose], moments: Floats) -> Bands:
    """Return the mean and the range of the best metric at each moment."""
    places = [np.searchsorted(rose_s, moments, side="right") for rose_s, _ in repetitions]
    values = np.array(
        [np.r_[np.nan, best][place] for place, (_, best) in zip(places, repetitions, strict=True)]
    )
    return Bands(values.mean(0), values.min(0), values.max(0))


UNNAMED = "slots "
"""Start of the name of a cluster without a name: its speeds follow."""
SAID = ("cluster", "population.trials", "population.steps", "evolution")
"""Parameters of a grid that the title of a group has already."""


@dataclass(frozen=True, slots=True)
class PopulationGroup:
    """Runs that can be compared: one per allocation, in the order of the colours."""

    name: str
    """Name in files."""
    population: str
    evolution: str
    cluster: str
    slots: tuple[SlotInfo, ...]
    runs: tuple[PopulationRecord, ...]
    label: str = ""
    """Point of a grid: `noise=0.1`, without what the title has already."""

    @property
    def title(self) -> str:
        """The title in figures."""
        return ", ".join(filter(None, [f"{self.evolved}, on {self.machines}", self.label]))

    @property
    def evolved(self) -> str:
        """The population and its evolution: `20 trials × 1,000 steps, pbt`."""
        return self.population + ("" if self.evolution == "none" else f", {self.evolution}")

    @property
    def machines(self) -> str:
        """The name of the cluster, `cluster nine`, or else its slots."""
        if self.cluster.startswith(UNNAMED):
            speeds = [slot.speed for slot in self.slots]
            return f"{len(speeds)} slots, {min(speeds):g}× to {max(speeds):g}×"
        return f"cluster {self.cluster}"

    def footer(self, command: str) -> tuple[str, ...]:
        """Return the footer of a figure of the group."""
        return footer(command, tuple(dict.fromkeys(run.command for run in self.runs)))


def population_groups(runs: Iterable[PopulationRecord]) -> list[PopulationGroup]:
    """Return groups of comparable runs, in the order of the runs."""
    found = grouped(
        ((of.population, of.evolution, of.cluster, of.slots, run.folder.path.parent), run)
        for run in runs
        for of in [run.summary]
    )
    labels = Labels(run.parameters for members in found.values() for run in members)
    keys = [key for key in labels.keys if key not in SAID]
    names: dict[str, int] = {}
    groups = []
    for members in found.values():
        of, point = members[0].summary, members[0].parameters
        cluster = f"{len(of.slots)} slots" if of.cluster.startswith(UNNAMED) else of.cluster
        slug = _slug(f"{cluster} {of.population.split(' × ')[0]} {of.evolution}")
        name = "-".join(filter(None, [slug, labels.file_name(point, keys)]))
        names[name] = names.get(name, 0) + 1
        name += f"-{names[name]}" if names[name] > 1 else ""
        runs, label = _ordered(members), labels.text(point, keys)
        groups.append(PopulationGroup(name, of.population, of.evolution, of.cluster, of.slots, runs, label))
    return groups


def slot_names(slots: Iterable[SlotInfo]) -> list[str]:
    """Return the node, the device and the speed of each slot: `head gpu, 8×`."""
    return [f"{slot.node} {slot.device}, {slot.speed:g}×" for slot in slots]


def _ordered(runs: list[PopulationRecord]) -> tuple[PopulationRecord, ...]:
    order = in_palette((run.summary.allocation for run in runs), ALLOCATIONS)
    return tuple(sorted(runs, key=lambda run: order.index(run.summary.allocation)))


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60]


ACROSS, MOST_ACROSS = 4, 6
"""Panels side by side: in a sequence, and with a column per cluster."""


class Ratio(NamedTuple):
    """The makespan ÷ lower bound of one allocation on one cluster."""

    allocation: str
    mean: float
    """Mean makespan ÷ mean lower bound, the smallest of all allocations'."""
    least: float
    most: float
    """Range over single repetitions."""


def ratios(group: PopulationGroup) -> list[Ratio]:
    """Return makespan ÷ lower bound of each allocation, in the seeds that all have."""
    found = []
    for summary in on_common_ground([run.summary for run in group.runs]):
        each = [done.makespan_s / done.lower_bound_s for done in summary.repetitions]
        found.append(Ratio(summary.allocation, summary.ratio, min(each), max(each)))
    return found


def ratio_sheets(groups: Sequence[PopulationGroup], options: Options) -> Iterator[DrawnFigure]:
    """Draw one figure of all clusters and populations."""
    commands = tuple(dict.fromkeys(run.command for group in groups for run in group.runs))
    yield DrawnFigure("populations-ratio", draw_ratios(groups, footer(options.command, commands)))


def draw_ratios(groups: Sequence[PopulationGroup], foot: Sequence[str]) -> Figure:
    """Draw a panel per population and cluster; whiskers reach from the best repetition to the worst."""
    data = table(groups)
    places = arranged(list(data))
    down, across = (1 + max(place[at] for place in places.values()) for at in (0, 1))
    names = in_palette((ratio.allocation for found in data.values() for ratio in found), ALLOCATIONS)
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
    """Return ratios by population and cluster; duplicates are numbered."""
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
    """Return the row and column of each panel: a row per population if that leaves no gaps."""
    down, across = (list(dict.fromkeys(key[at] for key in keys)) for at in (0, 1))
    if len(keys) == len(down) * len(across) and len(across) <= MOST_ACROSS:
        return {key: (down.index(key[0]), across.index(key[1])) for key in keys}
    return {key: divmod(number, ACROSS) for number, key in enumerate(keys)}


def _draw_bars(axes: Axes, found: Sequence[Ratio], names: Sequence[str], furthest: float) -> None:
    places = [names.index(ratio.allocation) for ratio in found]
    colours = [allocation_colour(ratio.allocation) for ratio in found]
    axes.barh(places, [ratio.mean for ratio in found], 0.72, color=colours)
    axes.axvline(1.0, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    for place, ratio in zip(places, found, strict=True):
        axes.plot([ratio.least, ratio.most], [place, place], color=INK, linewidth=1.0)
        at = max(ratio.most, ratio.mean) + 0.02 * furthest
        axes.text(at, place, f"{ratio.mean:.2f}", size=8, color=INK, va="center_baseline")
    rows(axes, names)
    axes.set_xlim(0, 1.2 * furthest)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


LEAST_IN = 8.0
"""Smallest width of a page: its title must fit."""
COMMUNICATING = "#222222"
LOST: dict[str, Any] = {"facecolor": "white", "edgecolor": FAINT, "hatch": "////", "linewidth": 0}


class Shares(NamedTuple):
    """Shares of the time in which a slot was there."""

    computing: float
    communicating: float
    lost: float
    idle: float


def shares(use: SlotUse) -> Shares:
    """Return how a slot spent the time in which it was there."""
    whole_s = use.there_s or 1.0
    return Shares(
        use.computing_s / whole_s, use.communicating_s / whole_s, use.lost_s / whole_s, use.idle_share
    )


def idle_sheets(groups: Sequence[PopulationGroup], options: Options) -> Iterator[DrawnFigure]:
    """Draw a figure of idle shares per group."""
    for group in groups:
        yield DrawnFigure(f"{group.name}/idle", draw_idle(group, group.footer(options.command)))


def draw_idle(group: PopulationGroup, foot: Sequence[str]) -> Figure:
    """Draw a panel per allocation, a bar per slot with its idle share."""
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
        rows(axes, names)
    lost = any(use.lost_s > 0.0 for run in group.runs for use in run.summary.slot_use())
    legend(panels[-1], handles=_legend(lost), fontsize=8.5, handlelength=1.4)
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
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_title(allocation, size=10, color=INK, loc="left")


def _legend(lost: bool) -> list[Patch]:
    handles = [
        Patch(color=FAINT, label="computing (in colour)"),
        Patch(color=COMMUNICATING, label="communicating"),
    ]
    if lost:
        handles.append(Patch(label="lost: its node or its trial failed", **LOST))
    return [*handles, Patch(color=IDLE, label="idle, and its share")]


BEYOND = 1.06
"""End of the axis, in makespans."""
EARLY = 0.04
"""Share of the axis in which all curves rise alike."""
TARGET: dict[str, Any] = {
    "xytext": (-4, 3), "textcoords": "offset points", "ha": "right", "size": 8, "color": FAINT,
}  # fmt: skip


class AccuracyCurve(NamedTuple):
    """One allocation: mean, worst and best over the repetitions; NaN before all have measured something.

    Metrics have the sign that trials reported them with.
    """

    allocation: str
    at_s: Floats
    mean: Floats
    least: Floats
    most: Floats
    final: float
    """Mean final metric of the repetitions."""
    end_s: float
    """When all repetitions were done, in seconds."""
    said: str
    """`final` as text."""


def accuracy_curve(run: PopulationRecord, end_s: float) -> AccuracyCurve | None:
    """Return the curve of a run; None if nothing was measured."""
    at_s = np.linspace(0.0, end_s, MOMENTS)
    risen = [best_so_far(reports(run.events(each.seed))) for each in run.summary.repetitions]
    if not all(len(best) for _, best in risen):
        return None
    summary = run.summary
    mean, least, most = (summary.sign * band for band in bands(risen, at_s))
    final, said = summary.sign * (summary.best_accuracy or math.nan), summary.shown(summary.best_accuracy)
    return AccuracyCurve(summary.allocation, at_s, mean, least, most, final, done_s(run), said)


def reports(events: Iterable[Event]) -> Iterator[tuple[float, float]]:
    """Yield the time and the metric of each report."""
    return ((event.at_s, event.metric) for event in events if isinstance(event, Reported))


def done_s(run: PopulationRecord) -> float:
    """Return when the last repetition was done."""
    return max(repetition.makespan_s for repetition in run.summary.repetitions)


def accuracy_sheets(groups: Sequence[PopulationGroup], options: Options) -> Iterator[DrawnFigure]:
    """Draw a figure of accuracies over time per group in which something was measured."""
    for group in groups:
        end_s = BEYOND * max(map(done_s, group.runs))
        curves = [curve for run in group.runs if (curve := accuracy_curve(run, end_s))]
        if curves:
            yield DrawnFigure(f"{group.name}/accuracy", draw_accuracy(curves, group, options))


def draw_accuracy(curves: Sequence[AccuracyCurve], group: PopulationGroup, options: Options) -> Figure:
    """Draw the best metric so far over time, a curve per allocation."""
    figure = new_page(
        f"Best {group.runs[0].summary.metric_name} of any trial, against time",
        f"{group.title}; means over repetitions, shaded from worst to best; dots: all are done",
        group.footer(options.command),
        width_in=9.0,
    )
    axes = figure.add_subplot()
    unit, unit_s = unit_for(float(curves[0].at_s[-1]))
    for curve in curves:
        _draw_curve(axes, curve, unit_s)
    summary = group.runs[0].summary
    if summary.target is not None:
        target = summary.sign * summary.target
        axes.axhline(target, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.annotate("target", (1.0, target), xycoords=axes.get_yaxis_transform(), **TARGET)
    axes.set(xlim=(0, curves[0].at_s[-1] / unit_s))
    axes.set(xlabel=f"time ({unit})", ylabel=f"best {summary.metric_name} so far")
    if summary.in_percent:
        axes.set(ylim=(_lowest(curves), None))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    plain(axes, grid="xy")
    legend(axes, title="in the end")
    return figure


def _lowest(curves: Sequence[AccuracyCurve]) -> float:
    """Return the start of the axis, without the first rise, which is steep and alike for all."""
    early = round(EARLY * MOMENTS)
    return min(float(np.nanmin(curve.mean[early:])) for curve in curves)


def _draw_curve(axes: Axes, curve: AccuracyCurve, unit_s: float) -> None:
    colour = allocation_colour(curve.allocation)
    over = min(int(np.searchsorted(curve.at_s, curve.end_s)), len(curve.at_s) - 1)
    at, (mean, least, most) = curve.at_s / unit_s, (curve.mean, curve.least, curve.most)
    until = slice(over + 1)
    axes.fill_between(at[until], least[until], most[until], step="post", color=colour, alpha=0.1, linewidth=0)
    label = f"{curve.allocation}: {curve.said}"
    axes.step(at[until], mean[until], where="post", color=colour, linewidth=1.7, label=label)
    axes.plot(at[over], mean[over], "o", color=colour, markersize=6, markeredgecolor="white", zorder=4)
