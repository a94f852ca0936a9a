"""Schedulers side by side: average JCT, tail JCT and makespan relative to one of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rota.figures.colours import FAINT, HATCHES, INK, scheduler_colour
from rota.figures.durations import said
from rota.figures.groups import Contender, Group
from rota.figures.page import new_page, plain
from rota.figures.sheets import Options, Sheet
from rota.results.run import Run

METRICS: dict[str, Callable[[Run], float]] = {
    "average JCT": lambda run: run.metrics.avg_jct_s,
    "99th percentile JCT": lambda run: run.metrics.p99_jct_s,
    "makespan": lambda run: run.metrics.makespan_s,
}


class Comparison(NamedTuple):
    """One metric of all contenders."""

    metric: str
    values_s: list[float]
    ratios: list[float]
    """To the reference."""


def compare(contenders: Sequence[Contender], reference: Contender) -> list[Comparison]:
    compared = []
    for metric, of in METRICS.items():
        values_s = [of(contender.run) for contender in contenders]
        base_s = of(reference.run)
        compared.append(Comparison(metric, values_s, [value_s / base_s for value_s in values_s]))
    return compared


def sheets(group: Group, options: Options) -> Iterator[Sheet]:
    reference = group.find(options.normalise_to)
    compared = compare(group.contenders, reference)
    figure = draw_comparison(compared, group.contenders, reference.label, group.title, options.footer(group))
    yield Sheet("comparison", figure)


def draw_comparison(
    compared: Sequence[Comparison],
    contenders: Sequence[Contender],
    reference: str,
    subject: str,
    footer: Sequence[str],
) -> Figure:
    """A panel per metric, a bar per contender: names are written once, at the left."""
    height_in = 0.75 + 0.3 * len(contenders)
    figure = new_page(
        f"Compared with {reference}: shorter bars are better", subject, footer, height_in=height_in
    )
    for axes, comparison in zip(figure.subplots(1, len(compared), sharey=True), compared, strict=True):
        _draw_bars(axes, comparison, contenders)
    return figure


def _draw_bars(axes: Axes, comparison: Comparison, contenders: Sequence[Contender]) -> None:
    places = np.arange(len(contenders))
    colours = [scheduler_colour(contender.run.scheduler) for contender in contenders]
    hatches = [HATCHES[contender.twin % len(HATCHES)] for contender in contenders]
    bars = axes.barh(places, comparison.ratios, 0.72, color=colours, hatch=hatches, edgecolor="white")
    texts = zip(comparison.ratios, comparison.values_s, strict=True)
    labels = [f"{ratio:.2f}× ({said(value_s)})" for ratio, value_s in texts]
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    axes.bar_label(bars, labels, padding=4, size=8, color=INK, bbox=paper)
    axes.axvline(1.0, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0.5)
    axes.set_yticks(places, [contender.label for contender in contenders])
    axes.set_ylim(len(contenders) - 0.45, -0.55)
    axes.set_xlim(0, 1.75 * max(comparison.ratios))
    axes.set_title(comparison.metric, size=10, color=INK, loc="left")
    plain(axes)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
