"""Profiles at a glance: the stages of an iteration, or where they were not measured its length by device."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from rota.figures.colours import FAINT, INK
from rota.figures.page import legend, plain, spread
from rota.recordings.profile import PACKED, Profile, Profiles

ROW_IN, AROUND_IN = 0.155, 0.95
MOST_GANGS, MOST_BATCHES = 4, 4

STAGES = {"load": "#e7aa5c", "compute": "#0072b2", "synchronise": "#00a66e"}
REST, REST_COLOUR = "not told apart", "#c9c9c9"
DEVICES = ("#0072b2", "#d55500", "#00a66e", "#cc79a7", "#626262", "#c7c110")
MARKERS = ("o", "s", "D", "^", "v", "P")


class Bar(NamedTuple):
    """One measurement, as shares of its stages."""

    label: str
    shares: dict[str, float]
    iteration_s: float


class Dots(NamedTuple):
    """One way to run a model: seconds per iteration on each device."""

    label: str
    iteration_s: dict[str, float]


class Panel(NamedTuple):
    """What is drawn of one recording: either bars or dots."""

    title: str
    bars: list[Bar]
    dots: list[Dots]

    @property
    def height_in(self) -> float:
        return AROUND_IN + ROW_IN * max(len(self.bars) + len(self.dots), 4)


def panels(recordings: Mapping[str, Profiles]) -> list[Panel]:
    """Bars per device for all recordings with stages together; dots for each without."""
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
            dotted.append(Panel(title, [], _dots([row for row in alone if row.gang == 1])))
    return [Panel(_title(rows, device), _bars(rows), []) for device, rows in staged.items()] + dotted


def draw_profiles(figure: Figure, place: SubplotSpec, panel: Panel) -> Axes:
    axes = figure.add_subplot(place)
    (_draw_bars if panel.bars else _draw_dots)(axes, panel)
    axes.set_title(panel.title, size=10, color=INK, loc="left")
    return axes


def shares(row: Profile) -> dict[str, float]:
    """Of each stage in the sum of all; what was not measured apart is the rest of the iteration."""
    measured = {name: s for name, s in zip(STAGES, row.stages_s, strict=True) if not math.isnan(s)}
    if len(measured) < len(STAGES):
        measured[REST] = max(row.iteration_s - math.fsum(measured.values()), 0.0)
    whole_s = math.fsum(measured.values())
    return {name: stage_s / whole_s if whole_s > 0.0 else 0.0 for name, stage_s in measured.items()}


def said(seconds: float) -> str:
    """`12.3 ms`."""
    for unit, size_s in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size_s:
            return f"{seconds / size_s:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _title(rows: Sequence[Profile], device: str) -> str:
    models = len({row.model for row in rows})
    return f"Profiles on {device}: {models} model{'s' if models != 1 else ''}, {len(rows):,} measured"


def _bars(rows: Sequence[Profile]) -> list[Bar]:
    """Some gang sizes and batch sizes of each model, from the smallest to the largest."""
    bars = []
    for model in dict.fromkeys(row.model for row in rows):
        own = [row for row in rows if row.model == model]
        gangs = sorted({row.gang for row in own})
        for gang in _some_gangs(gangs):
            same = sorted((row for row in own if row.gang == gang), key=lambda row: row.batch_size)
            some = [same[len(same) // 2]] if len(gangs) > 1 else spread(same, MOST_BATCHES)
            bars += [Bar(_label(row, len(gangs) > 1), shares(row), row.iteration_s) for row in some]
    return bars


def _some_gangs(gangs: Sequence[int]) -> list[int]:
    """From the smallest to the largest, by equal factors as far as they were measured."""
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


def _draw_bars(axes: Axes, panel: Panel) -> None:
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
    axes.legend(loc="upper left", bbox_to_anchor=(1.08, 1.02), fontsize=9, frameon=False)


def _draw_dots(axes: Axes, panel: Panel) -> None:
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
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    plain(axes, grid="x")
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    axes.spines["left"].set_color(FAINT)
