"""Figures of recordings: curves and profiles."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.core.grouped import grouped
from rota.figures.growth import draw_growth, growth_figure, growth_panels
from rota.figures.page import INK, legend, new_page, origins, plain, rows, spread
from rota.figures.trees import adaptation_figure, draw_trees, tree_blocks
from rota.recordings.curve import Curves, CurveSetting, Plain
from rota.recordings.describe import contents
from rota.recordings.library import Library
from rota.recordings.profile import PACKED, Profile, Profiles

WIDTH_IN = 11.0
ABREAST = 2
"""Number of bundles of curves side by side."""

Data = TypeVar("Data")


Draw = Callable[[Figure, SubplotSpec], Axes]


class AxesRow(NamedTuple):
    """A row of axes on the page."""

    height_in: float
    across: list[Draw]


class Drawing(NamedTuple):
    """A figure of a library of recordings."""

    name: str
    verb: str
    """Verb of `rota recordings`."""
    figure: Callable[[str], Figure]
    """Function that draws it; its argument is the command that does."""


def figures(library: Library) -> list[Drawing]:
    """Return all figures for which there are recordings."""
    trees = [held.what for held in library.trees]
    found = [Drawing("overview", "describe", partial(recordings_figure, library))] if len(library) else []
    if any(not tree.missing() for tree in trees):
        found.append(Drawing("adaptation", "adaptation", partial(adaptation_figure, trees)))
    grown = [held.what for held in library.growth]
    if any(not tree.missing() for tree in grown):
        found.append(Drawing("growth", "growth", partial(growth_figure, grown)))
    return found


def parts(library: Library) -> list[AxesRow]:
    """Return the rows to be drawn, from the top."""
    blocks = tree_blocks([held.what for held in library.trees])
    found = [AxesRow(block.height_in, [_drawer(draw_trees, block)]) for block in blocks]
    gains = [_drawer(draw_growth, panel) for panel in growth_panels([held.what for held in library.growth])]
    found += [AxesRow(HEIGHT_IN, gains[at : at + ABREAST]) for at in range(0, len(gains), ABREAST)]
    lines = [_drawer(draw_curves, bundle(held.what)) for held in library.curves]
    found += [AxesRow(HEIGHT_IN, lines[at : at + ABREAST]) for at in range(0, len(lines), ABREAST)]
    profiles = {held.name: held.what for held in library.profiles}
    found += [AxesRow(panel.height_in, [_drawer(draw_profiles, panel)]) for panel in panels(profiles)]
    return found


def _drawer(draw: Callable[[Figure, SubplotSpec, Data], Axes], data: Data) -> Draw:
    return lambda figure, place: draw(figure, place, data)


def recordings_figure(library: Library, drawn_by: str) -> Figure:
    """Draw the page; `drawn_by` is the command that draws it."""
    if not len(library):
        raise InputError(f"{library.folder}: no complete recording to draw; record or import one first")
    drawn = parts(library)
    heights_in = [part.height_in for part in drawn]
    every = [
        *(held.what.provenance for held in library.trees),
        *(held.what.provenance for held in library.growth),
        *(held.what.provenance for held in library.curves),
        *(held.what.provenance for held in library.profiles),
    ]
    figure = new_page(
        "What was recorded",
        f"{library.folder}: {contents(library)}",
        (f"figure: {drawn_by}", *origins(every)),
        width_in=WIDTH_IN,
        height_in=sum(heights_in),
    )
    grid = figure.add_gridspec(len(drawn), 1, height_ratios=heights_in)
    for number, part in enumerate(drawn):
        places = grid[number, 0].subgridspec(1, len(part.across))
        for column, draw in enumerate(part.across):
            draw(figure, places[0, column])
    return figure


HEIGHT_IN = 3.0
MOST_IN_LEGEND = 7


class CurveLine(NamedTuple):
    """The curve of one setting."""

    value: Plain
    """Value of the hyper-parameter that colours it."""
    steps: Floats
    metric: Floats


class CurveBundle(NamedTuple):
    """The curves of all settings of one recording."""

    title: str
    coloured_by: str
    metric: str
    lines: list[CurveLine]
    values: list[Plain]
    """Values of the hyper-parameter, in order."""


def bundle(curves: Curves) -> CurveBundle:
    """Return the curves of a recording, coloured by the hyper-parameter that explains most of them."""
    metric = curves.main_metric
    settings = [setting for setting in curves.settings.values() if metric in setting.metrics]
    by = max(curves.hyper, key=lambda name: _explained(settings, name, metric), default="")
    lines = [CurveLine(s.hyper.get(by, ""), s.steps.astype(float), s.metrics[metric]) for s in settings]
    values = sorted({line.value for line in lines}, key=lambda value: (isinstance(value, str), value))
    missing = len(curves.missing())
    there = f"{len(curves.settings)} settings" + (f", {missing} missing or cut short" if missing else "")
    there += f", {len(curves.failed)} failed" if curves.failed else ""
    data = f" on {curves.data}" if curves.data else ""
    return CurveBundle(f"{curves.model}{data}: {there}", by, metric, lines, values)


def draw_curves(figure: Figure, place: SubplotSpec, data: CurveBundle) -> Axes:
    """Draw a line per setting, and return its axes."""
    axes = figure.add_subplot(place)
    colours = colormaps["viridis"](np.linspace(0.0, 0.92, max(len(data.values), 1)))
    shown = set(spread(data.values, MOST_IN_LEGEND))
    for line in data.lines:
        label = _said(line.value)
        axes.plot(
            line.steps,
            line.metric,
            color=colours[data.values.index(line.value)],
            linewidth=1.0,
            alpha=0.85,
            marker="." if len(line.steps) < 4 else "",
            label=label if line.value in shown else None,
        )
        shown.discard(line.value)
    axes.set(xlabel="steps", ylabel=data.metric)
    axes.margins(x=0.01)
    if data.metric == "accuracy":
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    if _spans_decades(data.lines):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
    plain(axes, grid="xy")
    axes.set_title(data.title, size=10, color=INK, loc="left")
    _legend(axes, data)
    return axes


def _legend(axes: Axes, data: CurveBundle) -> None:
    handles, labels = axes.get_legend_handles_labels()
    names = [_said(value) for value in data.values]
    order = sorted(range(len(labels)), key=lambda place: names.index(labels[place]))
    shown = {"handles": [handles[i] for i in order], "labels": [labels[i] for i in order]}
    legend(axes, data.coloured_by, **shown, fontsize=8, title_fontsize=8)


def _said(value: Plain) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _explained(settings: Sequence[CurveSetting], name: str, metric: str) -> float:
    """Return the share of the final variance that one hyper-parameter explains."""
    ends = ((setting.hyper[name], setting.metrics[metric][-1:].tolist()) for setting in settings)
    groups = grouped((value, end[0]) for value, end in ends if end and not math.isnan(end[0]))
    every = [value for group in groups.values() for value in group]
    if len(every) < 2 or np.var(every) == 0.0:
        return 0.0
    means = [np.mean(group) for group in groups.values() for _ in group]
    return float(np.var(means) / np.var(every))


def _spans_decades(lines: Sequence[CurveLine]) -> bool:
    """Whether some settings end after many times more steps than others."""
    ends = [line.steps[-1] for line in lines if len(line.steps) and line.steps[-1] > 0]
    return bool(ends) and max(ends) / min(ends) > 8.0


ROW_IN, AROUND_IN = 0.155, 0.95
MOST_GANGS, MOST_BATCHES = 4, 4

STAGES = {"load": "#e7aa5c", "compute": "#0072b2", "synchronise": "#00a66e"}
REST, REST_COLOUR = "not told apart", "#c9c9c9"
DEVICES = ("#0072b2", "#d55500", "#00a66e", "#cc79a7", "#626262", "#c7c110")
MARKERS = ("o", "s", "D", "^", "v", "P")


class StageBar(NamedTuple):
    """The stages of one measurement, as shares."""

    label: str
    shares: dict[str, float]
    iteration_s: float


class Dots(NamedTuple):
    """Seconds per iteration on each device, for one model and batch size."""

    label: str
    iteration_s: dict[str, float]


class RecordingPanel(NamedTuple):
    """The bars or the dots of one recording."""

    title: str
    bars: list[StageBar]
    dots: list[Dots]

    @property
    def height_in(self) -> float:
        """Height of the panel in inches."""
        return AROUND_IN + ROW_IN * max(len(self.bars) + len(self.dots), 4)


def panels(recordings: Mapping[str, Profiles]) -> list[RecordingPanel]:
    """Return bars per device for all recordings with stages; dots for each without."""
    staged: dict[str, list[Profile]] = {}
    dotted = []
    for name, profiles in recordings.items():
        alone = [row for row in profiles.rows if not row.beside and row.placement == PACKED]
        if any(not math.isnan(stage_s) for row in alone for stage_s in row.stages_s):
            for row in alone:
                staged.setdefault(row.device, []).append(row)
        else:
            pairs = sum(bool(row.beside) for row in profiles.rows)
            more = f", {pairs:,} in pairs" if pairs else ""
            title = f"Profiles {name}: {len(alone):,} alone, packed{more}; drawn: one device, alone"
            dotted.append(RecordingPanel(title, [], _dots([row for row in alone if row.gang == 1])))
    return [RecordingPanel(_title(rows, device), _bars(rows), []) for device, rows in staged.items()] + dotted


def draw_profiles(figure: Figure, place: SubplotSpec, panel: RecordingPanel) -> Axes:
    """Draw the bars or the dots of a recording, and return their axes."""
    axes = figure.add_subplot(place)
    (_draw_bars if panel.bars else _draw_dots)(axes, panel)
    axes.set_title(panel.title, size=10, color=INK, loc="left")
    return axes


def shares(row: Profile) -> dict[str, float]:
    """Return the share of each stage; what was not measured is the rest of the iteration."""
    measured = {name: s for name, s in zip(STAGES, row.stages_s, strict=True) if not math.isnan(s)}
    if len(measured) < len(STAGES):
        measured[REST] = max(row.iteration_s - math.fsum(measured.values()), 0.0)
    whole_s = math.fsum(measured.values())
    return {name: stage_s / whole_s if whole_s > 0.0 else 0.0 for name, stage_s in measured.items()}


def said(seconds: float) -> str:
    """Return seconds as text: `12.3 ms`."""
    for unit, size_s in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size_s:
            return f"{seconds / size_s:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _title(rows: Sequence[Profile], device: str) -> str:
    models = len({row.model for row in rows})
    return f"Profiles on {device}: {models} model{'s' if models != 1 else ''}, {len(rows):,} measured"


def _bars(rows: Sequence[Profile]) -> list[StageBar]:
    """Return some gang sizes and batch sizes of each model, from the smallest to the largest."""
    bars = []
    for model in dict.fromkeys(row.model for row in rows):
        own = [row for row in rows if row.model == model]
        gangs = sorted({row.gang for row in own})
        for gang in _some_gangs(gangs):
            same = sorted((row for row in own if row.gang == gang), key=lambda row: row.batch_size)
            some = [same[len(same) // 2]] if len(gangs) > 1 else spread(same, MOST_BATCHES)
            bars += [StageBar(_label(row, len(gangs) > 1), shares(row), row.iteration_s) for row in some]
    return bars


def _some_gangs(gangs: Sequence[int]) -> list[int]:
    """Return some sizes from the smallest to the largest, about by equal factors."""
    targets = np.geomspace(gangs[0], gangs[-1], MOST_GANGS).tolist()
    return sorted({min(gangs, key=lambda gang: abs(math.log(gang / target))) for target in targets})


def _label(row: Profile, gangs: bool) -> str:
    batch = f", batch {row.batch_size:,}" if row.batch_size else ""
    return f"{row.model}{batch}" + (f", {row.gang} device{'s' if row.gang > 1 else ''}" if gangs else "")


def _dots(rows: Sequence[Profile]) -> list[Dots]:
    found: dict[tuple[str, int], Dots] = {}
    for row in sorted(rows, key=lambda row: (row.model, row.batch_size)):
        dots = found.setdefault((row.model, row.batch_size), Dots(_label(row, False), {}))
        dots.iteration_s.setdefault(row.device, row.iteration_s)
    return list(found.values())


def _draw_bars(axes: Axes, panel: RecordingPanel) -> None:
    places = np.arange(len(panel.bars))
    left = np.zeros(len(panel.bars))
    for name, colour in {**STAGES, REST: REST_COLOUR}.items():
        widths = np.array([bar.shares.get(name, 0.0) for bar in panel.bars])
        if widths.any():
            axes.barh(places, widths, 0.78, left=left, color=colour, label=name)
            left += widths
    for place, bar in zip(places.tolist(), panel.bars, strict=True):
        axes.text(1.01, place, said(bar.iteration_s), size=7.5, color=INK, va="center")
    _rows(axes, [bar.label for bar in panel.bars])
    axes.set(xlim=(0, 1), xlabel="share of the stages (right: median iteration)")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    legend(axes, bbox_to_anchor=(1.08, 1.02))


def _draw_dots(axes: Axes, panel: RecordingPanel) -> None:
    devices = list(dict.fromkeys(device for dots in panel.dots for device in dots.iteration_s))
    for number, device in enumerate(devices):
        points = [(d.iteration_s[device], row) for row, d in enumerate(panel.dots) if device in d.iteration_s]
        seconds, rows = zip(*points, strict=True)
        colour, marker = DEVICES[number % len(DEVICES)], MARKERS[number % len(MARKERS)]
        axes.plot(seconds, rows, linestyle="", color=colour, marker=marker, markersize=5, label=device)
    for row, dots in enumerate(panel.dots):
        low, high = min(dots.iteration_s.values()), max(dots.iteration_s.values())
        axes.plot((low, high), (row, row), color="#dddddd", linewidth=1.5, zorder=0.5)
    _rows(axes, [dots.label for dots in panel.dots])
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: said(seconds)))
    axes.set_xlabel("time per iteration (logarithmic)")
    legend(axes)


def _rows(axes: Axes, labels: Sequence[str]) -> None:
    rows(axes, labels, grid="x")
    axes.tick_params(axis="y", labelsize=7.5)
