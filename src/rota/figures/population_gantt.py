"""The Gantt chart of a population."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from rota.core.population.events import (
    Assigned,
    Cloned,
    Event,
    Grown,
    Idled,
    Joined,
    NodeFailed,
    Reported,
    Retired,
    TrialFailed,
)
from rota.figures.gantt import AWAY, Absence, absent
from rota.figures.groups import DrawnFigure, Options
from rota.figures.page import IDLE, INK, SHORT, AxisUnit, box, lanes, legend_above, new_page, unit_for
from rota.figures.population import PopulationGroup, slot_names
from rota.results.population.run import PopulationRecord
from rota.results.population.summary import PopulationSummary, SlotInfo

MIDDLE = (0.5, 0.75)
"""Limits of the relative position of the median between the worst and the best."""


class Trained(NamedTuple):
    """An interval of a trial, on a slot."""

    slot: int
    trial: int
    began_s: float
    """Start in seconds, with dispatch and transfer."""
    trains_s: float
    """Start of training in seconds."""
    ended_s: float
    metric: float


class LostWork(NamedTuple):
    """The work that a slot lost when its node or its trial failed."""

    slot: int
    began_s: float
    lost_s: float


class Copied(NamedTuple):
    """A clone: from the slot of the donor to the slot of the trial."""

    from_s: float
    from_slot: int
    to_s: float
    to_slot: int


class GrowthMark(NamedTuple):
    """The start of the first interval of a network that grew."""

    at_s: float
    slot: int


class Shading(NamedTuple):
    """A scale from accuracies to shades."""

    least: float
    most: float
    power: float
    """Exponent that spreads the many metrics that are nearly the best."""


class PopulationChart(NamedTuple):
    """The content of a Gantt chart."""

    allocation: str
    slots: tuple[SlotInfo, ...]
    done_s: float
    """When all trials were done, in seconds."""
    end_s: float
    """End of the axis in seconds."""
    until_s: list[float]
    """When each slot was last in use."""
    blocks: list[Trained]
    undone: list[LostWork]
    away: list[Absence]
    copied: list[Copied]
    grown: list[GrowthMark]
    summary: PopulationSummary

    @property
    def unit(self) -> AxisUnit:
        """The unit of the axis of time."""
        return unit_for(self.end_s)

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes, in the order of their numbers."""
        return list(dict.fromkeys(slot.node for slot in self.slots))


def population_chart(run: PopulationRecord, end_s: float | None = None) -> PopulationChart:
    """Return the chart of the first seed."""
    summary, events = run.summary, run.events()
    done_s = summary.repetitions[0].makespan_s
    end_s = end_s or done_s
    nodes = list(dict.fromkeys(slot.node for slot in summary.slots))
    where = [nodes.index(slot.node) for slot in summary.slots]
    return PopulationChart(
        allocation=summary.allocation,
        slots=summary.slots,
        done_s=done_s,
        end_s=end_s,
        until_s=retired_at(events, len(summary.slots), done_s),
        blocks=trained(events),
        undone=undone(events, where),
        away=away(events, len(nodes), done_s),
        copied=copied(events),
        grown=grown(events),
        summary=summary,
    )


def trained(events: Sequence[Event]) -> list[Trained]:
    """Return every interval, by the time of its report."""
    return [
        Trained(
            event.slot, event.trial, event.began_s, event.began_s + event.moved_s, event.ended_s, event.metric
        )
        for event in events
        if isinstance(event, Reported)
    ]


def undone(events: Sequence[Event], slots: Sequence[int]) -> list[LostWork]:
    """Return the work that was lost; `slots` gives the node of each slot."""
    busy: dict[int, float] = {}
    found = []
    for event in events:
        if isinstance(event, Assigned | Reported):
            busy[event.slot] = event.at_s
        elif isinstance(event, Idled):
            busy.pop(event.slot, None)
        elif isinstance(event, TrialFailed) and event.slot in busy:
            found.append(LostWork(event.slot, busy[event.slot], event.at_s))
            busy[event.slot] = event.at_s
        elif isinstance(event, NodeFailed):
            at = [slot for slot in busy if slots[slot] == event.node]
            found += [LostWork(slot, busy.pop(slot), event.at_s) for slot in at]
    return found


def away(events: Sequence[Event], nodes: int, end_s: float) -> list[Absence]:
    """Return when nodes are not there; all are away before they join."""
    changes = (
        (event.at_s, event.node, isinstance(event, Joined))
        for event in events
        if isinstance(event, NodeFailed | Joined)
    )
    return absent(changes, dict.fromkeys(range(nodes), 0.0), end_s)


def retired_at(events: Sequence[Event], slots: int, end_s: float) -> list[float]:
    """Return until when each slot was in use: the end of the run, or of its last assignment if it retired."""
    until_s = [end_s] * slots
    for event in events:
        if isinstance(event, Retired):
            until_s[event.slot] = event.at_s
        elif isinstance(event, Idled):  # a busy slot retires when its assignment is done
            until_s[event.slot] = max(until_s[event.slot], event.at_s)
    return until_s


def copied(events: Sequence[Event]) -> list[Copied]:
    """Return each clone whose trial continued: from the donor's last report to the trial's next interval."""
    last: dict[int, Reported] = {}
    open_clones: dict[int, tuple[float, int]] = {}
    found = []
    for event in events:
        if isinstance(event, Reported):
            if event.trial in open_clones:
                found.append(Copied(*open_clones.pop(event.trial), event.began_s, event.slot))
            last[event.trial] = event
        elif isinstance(event, Cloned) and event.donor != event.trial and event.donor in last:
            open_clones[event.trial] = (event.at_s, last[event.donor].slot)
    return found


def grown(events: Sequence[Event]) -> list[GrowthMark]:
    """Return where each network that grew was trained next; changes that never were are left out."""
    pending: set[int] = set()
    found = []
    for event in events:
        if isinstance(event, Grown):
            pending.add(event.trial)
        elif isinstance(event, Reported) and event.trial in pending:
            pending.remove(event.trial)
            found.append(GrowthMark(event.began_s, event.slot))
    return found


def shading(metrics: Sequence[float]) -> Shading | None:
    """Return the scale of all metrics; None if nothing was measured."""
    known = np.array([metric for metric in metrics if not math.isnan(metric)])
    if not len(known):
        return None
    least, most = float(known.min()), float(known.max())
    if most <= least:
        return Shading(least, least + 1.0, 1.0)
    middle = float(np.clip((np.median(known) - least) / (most - least), *MIDDLE))
    return Shading(least, most, math.log(0.5) / math.log(middle))


WIDTH_IN, SLOT_IN = 12.0, 0.36
UNMEASURED = "#9cc4dd"
SHADES = LinearSegmentedColormap.from_list(
    "shades", colormaps["YlGnBu"](np.linspace(0.0, 0.82, 64)), bad=UNMEASURED
)
"""Shades light enough that lines can be seen on the darkest."""
CLONE = "#d1006c"
MOVING = "#111111"
GROWN: dict[str, Any] = {"color": "#e06c00", "edgecolors": "white", "linewidths": 0.5, "clip_on": False}
"""Look of the mark of a network that grew."""
UPPER, LOWER = 0.12, 0.88
"""Vertical positions in a row at which lines of clones begin and end."""
NARROW_IN = 0.035
"""Width below which shaded blocks have no edges."""
CHARACTER_EM = 0.62
TEXT_PT = 6.5
LOST = "#f0a35e"


def sheets(groups: Sequence[PopulationGroup], options: Options) -> Iterator[DrawnFigure]:
    """Draw a chart per run, with the same shades in each group; with `quick`, of its first run only."""
    for group in groups:
        end_s = max(run.summary.repetitions[0].makespan_s for run in group.runs)
        charts = [population_chart(run, end_s) for run in group.runs[: 1 if options.quick else None]]
        scale = scale_of(charts)
        for chart in charts:
            figure = draw_population_gantt(chart, scale, group.title, group.footer(options.command))
            yield DrawnFigure(f"{group.name}/gantt-{chart.allocation}", figure)


def scale_of(charts: Sequence[PopulationChart]) -> PowerNorm | None:
    """Return a scale from accuracies to shades, the same for all charts; None if nothing was measured."""
    found = shading([block.metric for chart in charts for block in chart.blocks])
    return found and PowerNorm(found.power, found.least, found.most)


def draw_population_gantt(
    chart: PopulationChart, scale: PowerNorm | None, subject: str, foot: Sequence[str]
) -> Figure:
    """Draw a row per slot, a block per interval, shaded by the metric at its end."""
    figure = new_page(
        f"Which trial on which slot: {chart.allocation}, {_done(chart)}",
        f"{subject}; first seed; blocks bear the numbers of trials; axis as long as the slowest took",
        foot,
        width_in=WIDTH_IN,
        height_in=SLOT_IN * len(chart.slots) + 1.1,
    )
    axes = figure.add_subplot()
    _draw_rows(axes, chart)
    _draw_blocks(axes, chart, scale)
    _draw_away(axes, chart)
    _draw_clones(axes, chart)
    _draw_growth(axes, chart)
    _write_trials(axes, chart, scale)
    _label(axes, chart)
    if scale:
        _draw_scale(figure, axes, scale, chart.summary)
    legend_above(axes, _legend(chart, scale), ncols=5, handlelength=1.6)
    return figure


def _done(chart: PopulationChart) -> str:
    when = "until the deadline of" if chart.summary.has_deadline else "done after"
    return f"{when} {chart.done_s / chart.unit.seconds:.3g} {SHORT[chart.unit.name]}"


def _draw_scale(figure: Figure, axes: Axes, scale: PowerNorm, summary: PopulationSummary) -> None:
    """Draw the scale of metrics, in even steps of the shades."""
    bar = figure.colorbar(ScalarMappable(scale, SHADES), ax=axes, pad=0.01, aspect=18, shrink=0.9)
    bar.set_label(f"{summary.metric_name} after the block", size=9, color=INK)
    ticks = np.asarray(scale.inverse(np.linspace(0.0, 1.0, 6)))
    said = "{:.0%}".format if summary.in_percent else summary.shown
    bar.set_ticks(list(ticks), labels=[said(tick) for tick in ticks])
    bar.minorticks_off()
    bar.ax.tick_params(labelsize=8, colors=INK)
    bar.outline.set_visible(False)


def _draw_rows(axes: Axes, chart: PopulationChart) -> None:
    rows = [_box(chart, slot, 0.0, until_s) for slot, until_s in enumerate(chart.until_s)]
    axes.add_collection(PolyCollection(rows, facecolors=IDLE, linewidths=0))


def _draw_blocks(axes: Axes, chart: PopulationChart, scale: PowerNorm | None) -> None:
    """Draw intervals, coloured by the metric at their end; all alike if nothing was measured."""
    if scale:
        colours = np.asarray(SHADES(scale([block.metric for block in chart.blocks])))
    else:
        colours = np.array([UNMEASURED] * len(chart.blocks))
    boxes = [_box(chart, block.slot, block.began_s, block.ended_s) for block in chart.blocks]
    narrow_s = NARROW_IN * _seconds_per_in(chart) if scale else 0.0
    widths = [0.0 if block.ended_s - block.began_s < narrow_s else 0.3 for block in chart.blocks]
    axes.add_collection(PolyCollection(boxes, facecolors=colours, edgecolors="white", linewidths=widths))
    moves = [_box(chart, b.slot, b.began_s, b.trains_s) for b in chart.blocks if b.trains_s > b.began_s]
    axes.add_collection(PolyCollection(moves, facecolors=MOVING, linewidths=0))
    lost = [_box(chart, *each) for each in chart.undone]
    axes.add_collection(PolyCollection(lost, facecolors=LOST, linewidths=0))


def _box(chart: PopulationChart, slot: int, from_s: float, to_s: float) -> list[tuple[float, float]]:
    left, right = from_s / chart.unit.seconds, to_s / chart.unit.seconds
    return box(left, right, slot + 0.06, slot + 0.94)


def _draw_away(axes: Axes, chart: PopulationChart) -> None:
    for from_s, to_s, node in chart.away:
        for row, slot in enumerate(chart.slots):
            if slot.node == chart.nodes[node]:
                left, right = (min(at_s, chart.end_s) / chart.unit.seconds for at_s in (from_s, to_s))
                axes.add_patch(Rectangle((left, row + 0.06), right - left, 0.88, **AWAY))


def _draw_clones(axes: Axes, chart: PopulationChart) -> None:
    unit_s = chart.unit.seconds
    lines = []
    for from_s, from_slot, to_s, to_slot in chart.copied:
        leaves, arrives = clone_heights(from_slot, to_slot)
        lines.append([(from_s / unit_s, leaves), (to_s / unit_s, arrives)])
    axes.add_collection(LineCollection(lines, colors=CLONE, linewidths=0.8, alpha=0.7))
    axes.scatter([line[1][0] for line in lines], [line[1][1] for line in lines], s=6, color=CLONE, zorder=3)


def _draw_growth(axes: Axes, chart: PopulationChart) -> None:
    """Draw a triangle at the start of each interval before which the network grew."""
    at = [mark.at_s / chart.unit.seconds for mark in chart.grown]
    axes.scatter(at, [mark.slot + LOWER for mark in chart.grown], s=22, marker="^", **GROWN, zorder=4)


def clone_heights(from_slot: int, to_slot: int) -> tuple[float, float]:
    """Return where a line leaves the row of the donor and where it ends: at the facing edges."""
    if from_slot == to_slot:
        return from_slot + LOWER, from_slot + LOWER
    if from_slot < to_slot:
        return from_slot + LOWER, to_slot + UPPER
    return from_slot + UPPER, to_slot + LOWER


def _write_trials(axes: Axes, chart: PopulationChart, scale: PowerNorm | None) -> None:
    seconds_per_in = _seconds_per_in(chart)
    for block in chart.blocks:
        name = str(block.trial)
        needed_s = CHARACTER_EM * TEXT_PT / 72 * (len(name) + 1) * seconds_per_in
        if block.ended_s - block.began_s >= needed_s:
            dark = scale is not None and scale(block.metric) > 0.62
            x = (block.began_s + block.ended_s) / 2 / chart.unit.seconds
            colour = "white" if dark else INK
            axes.text(
                x, block.slot + 0.5, name, size=TEXT_PT, ha="center", va="center_baseline", color=colour
            )


def _seconds_per_in(chart: PopulationChart) -> float:
    return chart.end_s / (0.78 * WIDTH_IN)


def _label(axes: Axes, chart: PopulationChart) -> None:
    axes.set_yticks(np.arange(len(chart.slots)) + 0.5, slot_names(chart.slots))
    lanes(axes, len(chart.slots))
    axes.set_xlim(0, chart.end_s / chart.unit.seconds)
    axes.set_xlabel(f"time ({chart.unit.name})")


def _legend(chart: PopulationChart, scale: PowerNorm | None) -> list[Patch | Line2D]:
    clone = Line2D(
        [],
        [],
        color=CLONE,
        marker="o",
        markersize=3,
        linewidth=1,
        label="clone: a trial continues from another's checkpoint",
    )
    colour = str(GROWN["color"])
    mark = Line2D([], [], color=colour, marker="^", markersize=5, linestyle="none", label="its network grows")
    handles: list[tuple[object, Patch | Line2D]] = [
        (
            any(block.trains_s > block.began_s for block in chart.blocks),
            Patch(color=MOVING, label="dispatch and checkpoint transfer"),
        ),
        (
            scale and any(math.isnan(block.metric) for block in chart.blocks),
            Patch(color=UNMEASURED, label="not measured"),
        ),
        (chart.copied, clone),
        (chart.grown, mark),
        (True, Patch(color=IDLE, label="idle")),
        (chart.undone, Patch(color=LOST, label="lost")),
        (chart.away, Patch(label="node not there", **AWAY)),
    ]
    return [handle for there, handle in handles if there]
