"""Figure of schedulers compared on worlds: ratios by family, completion times by contention."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rota.figures.page import legend, plain, scheduler_colour
from rota.results.world_ratios import MeasuredRatio, WorldResult


def bench_figure(results: Sequence[WorldResult], ratios: Sequence[MeasuredRatio]) -> Figure:
    """Draw average completion times ÷ those of tiresias by family, and ÷ the time alone by contention."""
    own = [each for each in ratios if each.baseline == "tiresias" and each.measure == "avg_jct_s"]
    parts = [part for part in dict.fromkeys(each.part for each in own) if not part.startswith("contention")]
    names = sorted(
        dict.fromkeys(each.scheduler for each in own),
        key=lambda name: next(each.mean for each in own if (each.scheduler, each.part) == (name, "all")),
    )
    height = max(3.2, 0.9 + 0.17 * len(parts) * (len(names) + 1))
    figure = Figure(figsize=(11.0, height), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    labels, places = [], []
    for at, part in enumerate(parts):
        for number, name in enumerate(names):
            (each,) = (one for one in own if (one.scheduler, one.part) == (name, part))
            place = at * (len(names) + 1) + number
            ends = (
                [[0.0], [0.0]] if math.isnan(each.low) else [[each.mean - each.low], [each.high - each.mean]]
            )
            colour = scheduler_colour(name)
            left.errorbar([each.mean], [place], xerr=ends, fmt="o", ms=4, color=colour, capsize=2)
            labels.append(f"{part} ({each.worlds}): {name}" if number == 0 else name)
            places.append(place)
    left.axvline(1.0, color="0.5", lw=0.8)
    left.set_yticks(places, labels, fontsize=7)
    left.invert_yaxis()
    left.set(title="Average JCT ÷ tiresias, 95 % over worlds", xlabel="ratio (log scale)", xscale="log")
    ticks = [tick for tick in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0) if _within(left, tick)]
    left.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    left.minorticks_off()
    levels = sorted({each.contention for each in results})
    for name in names:
        means = [
            float(np.exp(np.mean([
                math.log(each.avg_jct_s / each.alone_s)
                for each in results if each.scheduler == name and each.contention == level
            ])))
            for level in levels
        ]  # fmt: skip
        right.plot(levels, means, marker="o", ms=4, color=scheduler_colour(name), label=name)
    right.set(title="Average JCT ÷ time alone", xlabel="contention (fifo with backfill)", xticks=levels)
    right.set_yscale("log")
    high = [tick for tick in (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0) if _within(right, tick, "y")]
    right.set_yticks(high, [f"{tick:g}" for tick in high])
    right.minorticks_off()
    for axes in (left, right):
        plain(axes)
        axes.grid(alpha=0.3)
    legend(right)
    return figure


def _within(axes: Axes, value: float, along: str = "x") -> bool:
    low, high = axes.get_xlim() if along == "x" else axes.get_ylim()
    return bool(low <= value <= high)
