"""Figures of fidelity: simulated runs against real ones."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator, PercentFormatter

from rota.core.population.events import Reported
from rota.figures.gantt import blocks
from rota.figures.page import (
    FAINT,
    IDLE,
    INK,
    MODELS,
    REAL,
    SIMULATED,
    AxisUnit,
    Corners,
    box,
    footer,
    lanes,
    log_ticks,
    new_page,
    plain,
    unit_for,
)
from rota.results.fidelity.aligned import AlignedTimeline
from rota.results.fidelity.compare import AnyRun, RunPair, TimelineComparison, Versus
from rota.results.population.run import PopulationRecord
from rota.results.run import RunRecord

LOG_FROM = 20.0
"""Ratio of completion times from which their axes are logarithmic."""
MARGIN = 1.1
"""Factor by which axes of completion times are longer, so that a few percent can be seen."""


class FidelityBar(NamedTuple):
    """A trial or a job on neighbouring slots, or on its share of one."""

    began_s: float
    ended_s: float
    item: str
    top: float
    bottom: float
    """Vertical position in slots, from the first one down."""


class FidelityChart(NamedTuple):
    """One timeline, slot by slot."""

    slots: list[str]
    bars: list[FidelityBar]


class Extent(NamedTuple):
    """The range of an axis of completion times."""

    low_s: float
    high_s: float
    log: bool


def charts(pair: RunPair) -> tuple[FidelityChart, FidelityChart]:
    """Return the real timeline and the simulated one."""
    return _chart(pair.real, pair.seed), _chart(pair.simulated, pair.seed)


def done(timeline: AlignedTimeline) -> tuple[list[float], list[float]]:
    """Return times and the share of all that was done then; begins with 0 at 0."""
    ends_s = sorted(life.end_s for life in timeline.lives.values())
    return [0.0, *ends_s], [place / len(ends_s) for place in range(len(ends_s) + 1)]


def completion_times(real: AlignedTimeline, simulated: AlignedTimeline) -> tuple[list[float], list[float]]:
    """Return the completion times of each trial or job, in the same order."""
    return (
        [life.jct_s for life in real.lives.values()],
        [simulated.lives[name].jct_s for name in real.lives],
    )


def extent(times_s: list[float]) -> Extent:
    """Return the range of an axis that has some room for all times."""
    low_s, high_s = min(times_s), max(times_s)
    log = low_s > 0.0 and high_s / low_s > LOG_FROM
    return Extent(low_s / MARGIN, high_s * MARGIN or 1.0, log)


def _chart(run: AnyRun, seed: int | None) -> FidelityChart:
    if isinstance(run, PopulationRecord):
        assert seed is not None
        return _of_population(run, seed)
    return _of_jobs(run)


def _of_population(run: PopulationRecord, seed: int) -> FidelityChart:
    bars = [
        FidelityBar(event.began_s, event.ended_s, str(event.trial), event.slot, event.slot + 1.0)
        for event in run.events(seed)
        if isinstance(event, Reported)
    ]
    several = len({slot.node for slot in run.summary.slots}) > 1
    names = [
        f"slot {number}{f' ({slot.node})' if several else ''}"
        for number, slot in enumerate(run.summary.slots)
    ]
    return FidelityChart(names, bars)


def _of_jobs(run: RunRecord) -> FidelityChart:
    """Return the chart of a run of jobs, on a clock that starts with the first submit."""
    origin_s, cluster = float(run.jobs.submit_s.min()), run.cluster
    window_s = (origin_s, float(run.times.end_s.max()))
    bars = [
        FidelityBar(
            block.start_s - origin_s,
            block.end_s - origin_s,
            run.jobs.ids[block.job],
            block.slot + block.low,
            block.slot + block.slots - 1 + block.high,
        )
        for block in blocks(run.timeline(), cluster, window_s)
    ]
    names = [f"node {node}" for node in cluster.slot_nodes().tolist()]
    return FidelityChart(names, bars)


WIDTH_IN = 11.0
UPPER_IN, GAP_IN = 3.4, 0.75
SLOT_IN, LOWEST_IN, HIGHEST_IN = 0.34, 0.75, 3.2
BAND = 0.08
"""Prediction error of completion times within which points are in the shaded band."""
BAND_COLOUR = "#fbe3d3"
SEAM = 0.05
TEXT_PT, CHARACTER_EM = 6.5, 0.62
NARROW_IN = 0.03
LABEL_IN = 0.15
DIVERGED = "#a5006a"


def fidelity_figure(pair: RunPair, comparison: TimelineComparison, command: str) -> Figure:
    """Return the figure of two runs that were compared."""
    real, simulated = pair.timelines()
    both = charts(pair)
    heights_in = [min(max(SLOT_IN * len(chart.slots), LOWEST_IN), HIGHEST_IN) for chart in both]
    commands = tuple(dict.fromkeys((pair.real.command, pair.simulated.command)))
    figure = new_page(
        f"How faithful is the simulation? {pair.title}",
        _said(comparison),
        footer(command, commands),
        width_in=WIDTH_IN,
        height_in=UPPER_IN + sum(heights_in) + 2 * GAP_IN,
    )
    grid = figure.add_gridspec(3, 2, height_ratios=[UPPER_IN, *(each + 0.4 * GAP_IN for each in heights_in)])
    draw_completion(figure.add_subplot(grid[0, 0]), *completion_times(real, simulated), comparison.what)
    draw_done(figure.add_subplot(grid[0, 1]), real, simulated)
    upper = figure.add_subplot(grid[1, :])
    lower = figure.add_subplot(grid[2, :], sharex=upper)
    unit = unit_for(max(real.makespan_s, simulated.makespan_s))
    end = 1.01 * max(real.makespan_s, simulated.makespan_s) / unit.seconds
    colours = item_colours(real)
    for axes, chart, name, height_in in zip(
        (upper, lower), both, ("real", "simulated"), heights_in, strict=True
    ):
        draw_timeline(axes, chart, name, colours, unit, end=end, height_in=height_in)
    _mark_divergence((upper, lower), comparison.diverged, unit)
    upper.tick_params(labelbottom=False)
    one = comparison.what.removesuffix("s")
    lower.set_xlabel(f"time ({unit.name}); a row is a slot, and a {one} has the same colour in both")
    return figure


def _said(comparison: TimelineComparison) -> str:
    count = f"{comparison.count:,} {comparison.what}"
    return f"{count}: {_off('makespan', comparison.makespan)}, {_off('mean JCT', comparison.jct.mean)}"


def _off(name: str, versus: Versus) -> str:
    unit = unit_for(versus.real)
    real, simulated = (value / unit.seconds for value in versus)
    error = "" if versus.error_percent is None else f" ({round(versus.error_percent, 1) + 0.0:+.1f} %)"
    return f"{name} {real:.4g} {unit.name} real, {simulated:.4g} simulated{error}"


def draw_completion(axes: Axes, real_s: list[float], simulated_s: list[float], what: str) -> None:
    """Draw a point per trial or job; on the diagonal it took as long as predicted."""
    found = extent(real_s + simulated_s)
    unit = unit_for(found.high_s)
    low, high = found.low_s / unit.seconds, found.high_s / unit.seconds
    line = np.linspace(low, high, 64)
    axes.fill_between(line, line * (1 - BAND), line * (1 + BAND), color=BAND_COLOUR, linewidth=0)
    axes.plot(line, line, color=FAINT, linewidth=1.0)
    x, y = np.array([real_s, simulated_s]) / unit.seconds
    axes.scatter(x, y, s=22, color=SIMULATED, alpha=0.75, edgecolors="white", linewidths=0.4)
    _scale(axes, found, unit)
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    said = "" if found.log else f" ({unit.name})"
    axes.set_xlabel(f"completion time, real{said}")
    axes.set_ylabel(f"simulated{said}")
    axes.set_title(
        f"Each point is one of the {what}; shaded: within {BAND:.0%}", size=9.5, color=INK, loc="left"
    )
    plain(axes)


def _scale(axes: Axes, found: Extent, unit: AxisUnit) -> None:
    """Give logarithmic axes marks at common durations."""
    if not found.log:
        return
    axes.set(xscale="log", yscale="log")
    ticks = log_ticks(found.low_s, found.high_s)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([at_s / unit.seconds for at_s in ticks]))
        axis.set_major_formatter(FixedFormatter(list(ticks.values())))
        axis.set_minor_locator(NullLocator())


def draw_done(axes: Axes, real: AlignedTimeline, simulated: AlignedTimeline) -> None:
    """Draw the share that was done over time."""
    unit = unit_for(max(real.makespan_s, simulated.makespan_s))
    end_s = 1.01 * max(real.makespan_s, simulated.makespan_s)
    for timeline, name, colour, width in (
        (real, "real", REAL, 3.2),
        (simulated, "simulated", SIMULATED, 1.4),
    ):
        at_s, share = done(timeline)
        times = [each / unit.seconds for each in [*at_s, end_s]]
        axes.step(times, [*share, share[-1]], where="post", color=colour, linewidth=width, label=name)
    axes.set(xlim=(0, end_s / unit.seconds), ylim=(0, 1.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel(f"time ({unit.name})")
    axes.set_title(f"Share of {real.what} that are done", size=9.5, color=INK, loc="left")
    axes.legend(loc="upper left", fontsize=9, frameon=False)
    plain(axes, grid="y")


def item_colours(timeline: AlignedTimeline) -> dict[str, str]:
    """Return a colour for each trial or job, the same in both timelines; they repeat if there are many."""
    return {name: MODELS[number % len(MODELS)] for number, name in enumerate(timeline.lives)}


def draw_timeline(
    axes: Axes,
    chart: FidelityChart,
    name: str,
    colours: Mapping[str, str],
    unit: AxisUnit,
    *,
    end: float,
    height_in: float,
) -> None:
    """Draw what ran on which slot when."""
    rows = len(chart.slots)
    axes.add_collection(
        PolyCollection(
            [_row(0.0, end, slot, slot + 1.0) for slot in range(rows)], facecolors=IDLE, linewidths=0
        )
    )
    boxes = [_row(b.began_s / unit.seconds, b.ended_s / unit.seconds, b.top, b.bottom) for b in chart.bars]
    narrow = NARROW_IN * end / WIDTH_IN
    widths = [0.0 if right[0] - left[0] < narrow else 0.3 for left, right, *_ in boxes]
    faces = [colours[bar.item] for bar in chart.bars]
    axes.add_collection(PolyCollection(boxes, facecolors=faces, edgecolors="white", linewidths=widths))
    _write_names(axes, chart, unit, end, height_in)
    _label_slots(axes, chart.slots, height_in)
    lanes(axes, rows)
    axes.set(xlim=(0, end))
    axes.set_title(
        name, size=10, color=REAL if name == "real" else SIMULATED, loc="left", weight="bold", pad=3
    )


def _row(left: float, right: float, top: float, bottom: float) -> Corners:
    return box(left, right, top + SEAM, bottom - SEAM)


def _write_names(axes: Axes, chart: FidelityChart, unit: AxisUnit, end: float, height_in: float) -> None:
    per_in = end / (0.88 * WIDTH_IN)
    slot_in = height_in / len(chart.slots)
    for bar in chart.bars:
        size = min(TEXT_PT, 0.8 * 72 * slot_in * (bar.bottom - bar.top))
        wide = (bar.ended_s - bar.began_s) / unit.seconds
        if size >= 4.5 and wide >= CHARACTER_EM * size / 72 * (len(bar.item) + 1) * per_in:
            x = (bar.began_s + bar.ended_s) / 2 / unit.seconds
            y = (bar.top + bar.bottom) / 2
            axes.text(x, y, bar.item, size=size, ha="center", va="center_baseline", color=INK, clip_on=True)


def _label_slots(axes: Axes, names: Sequence[str], height_in: float) -> None:
    """Label neighbours that share a name once, and only some of very many."""
    marks, at = [], 0
    for name, group in groupby(names):
        size = len(list(group))
        marks.append((at + size / 2, name))
        at += size
    every = max(1, math.ceil(LABEL_IN * len(marks) / height_in))
    axes.set_yticks([place for place, _ in marks[::every]], [name for _, name in marks[::every]])


def _mark_divergence(both: tuple[Axes, Axes], diverged: Versus | None, unit: AxisUnit) -> None:
    if diverged is None:
        return
    for axes, at_s in zip(both, diverged, strict=True):
        axes.axvline(at_s / unit.seconds, color=DIVERGED, linewidth=1.2, linestyle=(0, (3, 2)))
    both[0].set_title(
        "dashed: a slot gets another interval than simulated", loc="right", size=7.5, color=DIVERGED, pad=3
    )
