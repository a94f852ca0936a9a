"""The Gantt chart of a run of jobs."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from rota.core.cluster import Cluster
from rota.core.columns import UP
from rota.core.timeline import EventKind, Timeline
from rota.figures.groups import DrawnFigure, DrawnRun, Options, RunGroup
from rota.figures.page import (
    DAY_S,
    FAINT,
    HOUR_S,
    HOURS,
    IDLE,
    INK,
    MINUTE_S,
    MODELS,
    OTHER_MODELS,
    AxisUnit,
    box,
    lanes,
    legend_above,
    model_colours,
    new_page,
    unit_for,
)
from rota.results.jobs import JobColumns
from rota.results.timeline_pass import Segments, segments

WINDOWS_S = (
    *(n * MINUTE_S for n in (1, 2, 5, 10, 20, 30)),
    *(n * HOUR_S for n in (1, 2, 3, 6, 12, 24, 36, 48, 72, 96, 120, 168, 336, 672)),
)
JOBS_IN_WINDOW = 40


class GanttBlock(NamedTuple):
    """A job on neighbouring slots of a node, or on its share of one slot."""

    start_s: float
    end_s: float
    job: int
    slot: int
    """The first slot."""
    slots: int
    low: float
    high: float
    """Part of the slot's height; all of it unless other jobs share the slot."""


class Absence(NamedTuple):
    """A time in which a node is not there."""

    start_s: float
    end_s: float
    node: int


class Span(NamedTuple):
    """A job on a slot."""

    start_s: float
    end_s: float
    job: int


def default_window(jobs: JobColumns, end_s: float) -> tuple[float, float]:
    """Return the window with most arrivals, long enough for dozens of jobs, but not beyond the end."""
    submit_s = jobs.submit_s
    gap_s = (submit_s[-1] - submit_s[0]) / len(submit_s)
    wanted_s = max(JOBS_IN_WINDOW * gap_s, 4 * float(np.median(jobs.iterations * jobs.iteration_s)))
    length_s = next((window_s for window_s in WINDOWS_S if window_s >= wanted_s), WINDOWS_S[-1])
    arrivals = np.searchsorted(submit_s, submit_s + length_s) - np.arange(len(submit_s))
    start_s = float(submit_s[np.argmax(arrivals)])
    return start_s, min(start_s + length_s, end_s)


def blocks(timeline: Timeline, cluster: Cluster, window_s: tuple[float, float]) -> list[GanttBlock]:
    """Return everything that runs in the window, by slot and time."""
    spans = _spans(segments(timeline).between(*window_s), timeline, cluster.slots)
    pieces = [piece for slot in range(cluster.slots) for piece in _split(spans[slot], slot)]
    return _joined(pieces, cluster)


def absences(timeline: Timeline, cluster: Cluster, window_s: tuple[float, float]) -> list[Absence]:
    """Return when nodes are not there, within the window."""
    away_since_s = {int(node): window_s[0] for node in np.flatnonzero(cluster.table()[UP] == 0)}
    changes = timeline.events[np.isin(timeline.events["kind"], (EventKind.NODE_LOST, EventKind.NODE_JOINED))]
    comes = changes["kind"] == EventKind.NODE_JOINED
    columns = zip(changes["at_s"].tolist(), changes["job"].tolist(), comes.tolist(), strict=True)
    found = absent(columns, away_since_s, window_s[1])
    clipped = [Absence(max(a.start_s, window_s[0]), min(a.end_s, window_s[1]), a.node) for a in found]
    return [absence for absence in clipped if absence.end_s > absence.start_s]


def absent(
    changes: Iterable[tuple[float, int, bool]], since_s: dict[int, float], end_s: float
) -> list[Absence]:
    """Return when nodes are not there, from changes: the time, the node, and whether it comes.

    `since_s` has the nodes that are not there at first.
    """
    found = []
    for at_s, node, comes in changes:
        if not comes:
            since_s.setdefault(node, at_s)
        elif node in since_s:
            found.append(Absence(since_s.pop(node), at_s, node))
    found += [Absence(start_s, end_s, node) for node, start_s in since_s.items()]
    return [each for each in found if each.end_s > each.start_s]


def failures(found: list[GanttBlock], timeline: Timeline) -> list[GanttBlock]:
    """Return where and when jobs failed, as blocks without length."""
    kinds = (EventKind.ATTEMPT_FAILED, EventKind.FAILED)
    events = timeline.events[np.isin(timeline.events["kind"], kinds)]
    of_job: dict[int, list[GanttBlock]] = {job: [] for job in events["job"].tolist()}
    for block in found:
        if block.job in of_job:
            of_job[block.job].append(block)
    return [
        block._replace(start_s=at_s, end_s=at_s)
        for job, at_s in zip(events["job"].tolist(), events["at_s"].tolist(), strict=True)
        for block in of_job[job]
        if block.start_s < at_s <= block.end_s
    ]


def _spans(cut: Segments, timeline: Timeline, slots: int) -> list[list[Span]]:
    spans: list[list[Span]] = [[] for _ in range(slots)]
    columns = (cut.start_s, cut.end_s, cut.job, cut.begin, cut.gpus)
    for start_s, end_s, job, begin, gpus in zip(*(column.tolist() for column in columns), strict=True):
        for slot in timeline.slots[begin : begin + gpus].tolist():
            spans[slot].append(Span(start_s, end_s, job))
    return spans


def _split(spans: list[Span], slot: int) -> list[GanttBlock]:
    """Cut the spans of a slot where the set of jobs on it changes, and divide its height among them.

    Jobs are in the order of their numbers, so that a group looks the same on all of its slots.
    """
    pieces: list[GanttBlock] = []
    here: list[Span] = []
    coming = sorted(spans)
    for start_s, end_s in pairwise(sorted({edge_s for span in spans for edge_s in span[:2]})):
        here = [span for span in here if span.end_s > start_s]
        while coming and coming[0].start_s <= start_s:
            here.append(coming.pop(0))
        for place, span in enumerate(sorted(here, key=lambda span: span.job)):
            low, high = place / len(here), (place + 1) / len(here)
            pieces.append(GanttBlock(start_s, end_s, span.job, slot, 1, low, high))
    return _prolonged(pieces)


def _prolonged(pieces: list[GanttBlock]) -> list[GanttBlock]:
    """Join blocks of a slot that follow each other at the same height."""
    whole: dict[tuple[int, float, float, float], GanttBlock] = {}
    for piece in pieces:
        before = whole.pop((piece.job, piece.low, piece.high, piece.start_s), None)
        start_s = before.start_s if before else piece.start_s
        whole[piece.job, piece.low, piece.high, piece.end_s] = piece._replace(start_s=start_s)
    return list(whole.values())


def _joined(pieces: list[GanttBlock], cluster: Cluster) -> list[GanttBlock]:
    """Join the blocks of a gang on neighbouring slots of a node."""
    nodes = cluster.slot_nodes().tolist()
    open_blocks: dict[tuple[float, float, int], GanttBlock] = {}
    done = []
    for piece in pieces:
        if piece.high - piece.low < 1.0:
            done.append(piece)
            continue
        key = (piece.start_s, piece.end_s, piece.job)
        block = open_blocks.pop(key, None)
        if block and block.slot + block.slots == piece.slot and nodes[block.slot] == nodes[piece.slot]:
            open_blocks[key] = block._replace(slots=block.slots + 1)
            continue
        if block:
            done.append(block)
        open_blocks[key] = piece
    return sorted(done + list(open_blocks.values()), key=lambda block: (block.slot, block.start_s, block.low))


WIDTH_IN = 11.0
NODE_GAP = 0.7  # in slots
SLOT_IN, SHARED_IN = 0.115, 0.035  # the height of a slot, and what each further job adds to it
LOWEST_IN, HIGHEST_IN = 1.6, 15.0
CHARACTER_EM = 0.62
SMALLEST_TEXT = 4.5  # points
NARROW_IN, THIN_IN = 0.03, 0.07
LABEL_IN = 0.15
FAILURE_PT = 1.6
SEAM = 0.04  # above and below a slot, in slots
HOURS_UP_TO_S = 14 * DAY_S
AWAY: dict[str, Any] = {"facecolor": "white", "edgecolor": FAINT, "hatch": "////", "linewidth": 0}


class GanttChart(NamedTuple):
    """The content of a Gantt chart."""

    label: str
    window_s: tuple[float, float]
    origin_s: float
    """Origin of the time axis: the first submit."""
    blocks: list[GanttBlock]
    absences: list[Absence]
    failed: list[GanttBlock]
    """Where and when jobs failed, as blocks without length."""
    models: list[str]
    """Models, those with most GPU time first."""
    jobs: JobColumns
    cluster: Cluster

    @property
    def unit(self) -> AxisUnit:
        """Hours, unless the window is very short or very long."""
        span_s = self.window_s[1] - self.window_s[0]
        return HOURS if 2 * HOUR_S < span_s <= HOURS_UP_TO_S else unit_for(span_s)


def window_of(group: RunGroup, window_s: tuple[float, float] | None) -> tuple[float, float]:
    """Return the window of all runs on the clock of the trace; it is given from the first submit."""
    run = group.runs[0].run
    if window_s is None:
        end_s = max(each.run.end_s for each in group.runs)
        return default_window(run.jobs, end_s)
    origin_s = float(run.jobs.submit_s[0])
    return origin_s + window_s[0], origin_s + window_s[1]


def chart(drawn: DrawnRun, window_s: tuple[float, float]) -> GanttChart:
    """Return the chart of the slots in a window."""
    run, timeline = drawn.run, drawn.run.timeline()
    found = blocks(timeline, run.cluster, window_s)
    return GanttChart(
        label=drawn.label,
        window_s=window_s,
        origin_s=float(run.jobs.submit_s[0]),
        blocks=found,
        failed=failures(found, timeline),
        absences=absences(timeline, run.cluster, window_s),
        models=models_by_use(run.jobs),
        jobs=run.jobs,
        cluster=run.cluster,
    )


def models_by_use(jobs: JobColumns) -> list[str]:
    """Return the models of a workload, those with most GPU time first."""
    gpu_s = np.bincount(jobs.model, jobs.gpus * jobs.iterations * jobs.iteration_s, len(jobs.models))
    return [jobs.models[number] for number in np.argsort(-gpu_s, kind="stable")]


def sheets(group: RunGroup, options: Options) -> Iterator[DrawnFigure]:
    """Draw a chart per run; with `quick`, of the first run only."""
    window_s = window_of(group, options.window_s)
    for each in group.runs[: 1 if options.quick else None]:
        figure = draw_gantt(chart(each, window_s), group.title, options.footer(group))
        yield DrawnFigure(f"gantt-{each.file_name}", figure)


def draw_gantt(chart: GanttChart, subject: str, footer: Sequence[str]) -> Figure:
    """Draw a row per slot, a block per stretch of time in which a job runs."""
    rows = chart.cluster.slots + NODE_GAP * (len(chart.cluster.nodes) - 1)
    slot_in = min(max(_slot_in(chart), LOWEST_IN / rows), HIGHEST_IN / rows)
    title = f"Which job runs where: {chart.label}"
    subject += "; a row is a slot, split where jobs share it; blocks bear the id of their job"
    figure = new_page(title, subject, footer, width_in=WIDTH_IN, height_in=rows * slot_in + 1.1)
    axes = figure.add_subplot()
    _draw_nodes(axes, chart)
    _draw_blocks(axes, chart, slot_in)
    _draw_absences(axes, chart)
    _draw_failures(axes, chart)
    _write_ids(axes, chart, slot_in)
    _label_axes(axes, chart, rows, slot_in)
    legend_above(axes, _legend(chart), ncols=6, handlelength=1.4)
    return figure


def _at(chart: GanttChart, at_s: float) -> float:
    return (at_s - chart.origin_s) / chart.unit.seconds


def _tops(cluster: Cluster) -> list[float]:
    tops: list[float] = (np.arange(cluster.slots) + NODE_GAP * cluster.slot_nodes()).tolist()
    return tops


def _extent(tops: list[float], block: GanttBlock) -> tuple[float, float]:
    first, last = tops[block.slot], tops[block.slot + block.slots - 1]
    return first + SEAM + (1 - 2 * SEAM) * block.low, last + SEAM + (1 - 2 * SEAM) * block.high


def _slot_in(chart: GanttChart) -> float:
    """Return the height of a slot, which grows with the jobs that share it."""
    most = max((round(1 / (block.high - block.low)) for block in chart.blocks), default=1)
    return SLOT_IN + SHARED_IN * (most - 1)


def _seconds_per_in(chart: GanttChart) -> float:
    return (chart.window_s[1] - chart.window_s[0]) / (WIDTH_IN - 1.0)


def _draw_nodes(axes: Axes, chart: GanttChart) -> None:
    """Draw a pale lane per slot, which shows idle time."""
    left, right = (_at(chart, at_s) for at_s in chart.window_s)
    for top in _tops(chart.cluster):
        axes.add_patch(Rectangle((left, top + SEAM), right - left, 1 - 2 * SEAM, facecolor=IDLE, linewidth=0))


def _draw_blocks(axes: Axes, chart: GanttChart, slot_in: float) -> None:
    """Draw blocks with a fine white edge, except very small ones."""
    tops, colours = _tops(chart.cluster), model_colours(chart.models)
    narrow_s = NARROW_IN * _seconds_per_in(chart)
    corners, faces, edges = [], [], []
    for block in chart.blocks:
        left, right = _at(chart, block.start_s), _at(chart, block.end_s)
        top, bottom = _extent(tops, block)
        corners.append(box(left, right, top, bottom))
        faces.append(colours[chart.jobs.models[chart.jobs.model[block.job]]])
        small = block.end_s - block.start_s < narrow_s or (bottom - top) * slot_in < THIN_IN
        edges.append(0.0 if small else 0.35)
    axes.add_collection(PolyCollection(corners, facecolors=faces, edgecolors="white", linewidths=edges))


def _draw_absences(axes: Axes, chart: GanttChart) -> None:
    tops, first = _tops(chart.cluster), chart.cluster.first_slots().tolist()
    for start_s, end_s, node in chart.absences:
        left, right = _at(chart, start_s), _at(chart, end_s)
        height = chart.cluster.nodes[node].slots
        axes.add_patch(Rectangle((left, tops[first[node]]), right - left, height, **AWAY))


def _draw_failures(axes: Axes, chart: GanttChart) -> None:
    """Draw a dark line where a job failed."""
    tops = _tops(chart.cluster)
    ends = [(_at(chart, block.end_s), *_extent(tops, block)) for block in chart.failed]
    lines = [[(x, top), (x, bottom)] for x, top, bottom in ends]
    axes.add_collection(LineCollection(lines, colors=INK, linewidths=FAILURE_PT, capstyle="butt"))


def _write_ids(axes: Axes, chart: GanttChart, slot_in: float) -> None:
    tops, seconds_per_in = _tops(chart.cluster), _seconds_per_in(chart)
    for block in chart.blocks:
        top, bottom = _extent(tops, block)
        size = min(7.0, 0.85 * 72 * slot_in * (bottom - top))
        name = chart.jobs.ids[block.job]
        needed_in = CHARACTER_EM * size / 72 * (len(name) + 1)
        if size >= SMALLEST_TEXT and (block.end_s - block.start_s) / seconds_per_in >= needed_in:
            x = _at(chart, (block.start_s + block.end_s) / 2)
            y = (top + bottom) / 2
            axes.text(x, y, name, size=size, ha="center", va="center_baseline", color=INK, clip_on=True)


def _label_axes(axes: Axes, chart: GanttChart, rows: float, slot_in: float) -> None:
    """Label the axes, and only some of very many nodes."""
    tops, first = _tops(chart.cluster), chart.cluster.first_slots().tolist()
    nodes = chart.cluster.nodes
    middles = [tops[slot] + node.slots / 2 for slot, node in zip(first, nodes, strict=True)]
    every = math.ceil(LABEL_IN * len(nodes) / (slot_in * rows))
    axes.set_yticks(middles[::every], [f"node {number}" for number in range(0, len(nodes), every)])
    lanes(axes, rows)
    axes.set_xlim(*(_at(chart, at_s) for at_s in chart.window_s))
    axes.set_xlabel(f"time since the first job was submitted ({chart.unit.name})")


def _legend(chart: GanttChart) -> list[Patch | Line2D]:
    shown = {int(chart.jobs.model[block.job]) for block in chart.blocks}
    names = {chart.jobs.models[number] for number in shown}
    colours = model_colours(chart.models)
    handles: list[Patch | Line2D] = [
        Patch(color=colours[name], label=name) for name in chart.models[: len(MODELS)] if name in names
    ]
    if names & set(chart.models[len(MODELS) :]):
        handles.append(Patch(color=OTHER_MODELS, label="other models"))
    handles.append(Patch(color=IDLE, label="idle"))
    if chart.absences:
        handles.append(Patch(label="node not there", **AWAY))
    if chart.failed:
        handles.append(Line2D([], [], color=INK, linewidth=FAILURE_PT, label="job failed"))
    return handles
