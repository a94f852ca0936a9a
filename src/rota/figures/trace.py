"""Figure of a trace: arrivals, durations, gang sizes and models of its jobs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, PercentFormatter

from rota.core.arrays import Floats
from rota.figures.page import DAY_S, HOUR_S, MINUTE_S, log_durations
from rota.workload.describe import Description, WorkloadShare, describe
from rota.workload.jobs import Workload

JOBS, GPU_TIME = "#0072b2", "#e69f00"
"""Colours of jobs and of GPU time; distinct to colour-blind readers and in print."""

STRETCHES = {
    MINUTE_S: "minute", 10 * MINUTE_S: "10 min", HOUR_S: "hour",
    6 * HOUR_S: "6 h", DAY_S: "day", 7 * DAY_S: "week",
}  # fmt: skip
"""Bin lengths for counting arrivals, and their names."""
MOST_BARS = 130
MOST_MODELS = 10


class Arrivals(NamedTuple):
    """The number of jobs that arrived in each bin of time."""

    edges: Floats
    """Edges of the bins, in the unit of the axis."""
    unit: str
    jobs: Floats
    per: str
    """Name of a bin."""


class TraceDurations(NamedTuple):
    """The share of jobs, and of GPU time, in jobs no longer than each duration."""

    seconds: Floats
    of_jobs: Floats
    of_gpu_time: Floats


def arrivals(jobs: Workload) -> Arrivals:
    """Count arrivals in the shortest bins that do not need too many bars."""
    since_s = jobs.submit_s - jobs.submit_s[0]
    last_s = float(since_s[-1])
    bin_s = next((length_s for length_s in STRETCHES if last_s / length_s <= MOST_BARS), last_s / MOST_BARS)
    edges_s = np.arange(int(last_s // bin_s) + 2, dtype=np.float64) * bin_s
    unit_s, unit = (DAY_S, "days") if last_s > 2 * DAY_S else (HOUR_S, "hours")
    counts = np.histogram(since_s, edges_s)[0].astype(np.float64)
    per = STRETCHES.get(bin_s, f"{bin_s / DAY_S:.0f} days")
    return Arrivals(np.asarray(edges_s / unit_s, np.float64), unit, counts, per)


def durations(jobs: Workload) -> TraceDurations:
    """Return the shares of jobs and of GPU time by duration, in seconds."""
    order = np.argsort(jobs.duration_s, kind="stable")
    gpu_time = np.cumsum((jobs.gpus * jobs.solo_s)[order])
    of_jobs = np.arange(1, len(jobs) + 1) / len(jobs)
    return TraceDurations(np.maximum(jobs.duration_s[order], 1e-3), of_jobs, gpu_time / gpu_time[-1])


def gangs(described: Description) -> list[WorkloadShare]:
    """Return the gang sizes; all fractions of a GPU together."""
    whole = [share for share in described.gang_sizes if float(share.name) >= 1.0]
    parts = [share for share in described.gang_sizes if float(share.name) < 1.0]
    return [_together("below 1", parts), *whole] if parts else whole


def models(described: Description) -> list[WorkloadShare]:
    """Return the models with most GPU time; the rest together."""
    if len(described.models) <= MOST_MODELS:
        return list(described.models)
    first, rest = described.models[: MOST_MODELS - 1], described.models[MOST_MODELS - 1 :]
    return [*first, _together(f"{len(rest)} others", rest)]


def trace_figure(jobs: Workload) -> Figure:
    """Draw four panels: arrivals, durations, gang sizes and models."""
    described = describe(jobs)
    layout = ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1)
    figure = Figure(figsize=(11, 7.5), layout=layout)
    (top_left, top_right), (bottom_left, bottom_right) = figure.subplots(2, 2)
    figure.suptitle(f"{described.name}: {described.jobs:,} jobs, {described.gpu_hours:,.0f} GPU-hours")
    _draw_arrivals(top_left, arrivals(jobs))
    _draw_durations(top_right, durations(jobs))
    _draw_gangs(bottom_left, gangs(described), described)
    _draw_models(bottom_right, models(described))
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_arrivals(axes: Axes, data: Arrivals) -> None:
    axes.stairs(data.jobs, data.edges, fill=True, color=JOBS)
    axes.set(title="Arrivals", xlabel=f"time since the first job ({data.unit})")
    axes.set(ylabel=f"jobs per {data.per}", xlim=(0, data.edges[-1]))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")


def _draw_durations(axes: Axes, data: TraceDurations) -> None:
    axes.step(data.seconds, data.of_jobs, where="post", color=JOBS, label="of jobs")
    axes.step(data.seconds, data.of_gpu_time, where="post", color=GPU_TIME, label="of GPU time")
    log_durations(axes, data.seconds[0] / 1.5, data.seconds[-1] * 1.5)
    axes.set(title="Durations", xlabel="duration", ylabel="share in jobs at most this long", ylim=(0, 1.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", frameon=False)


def _draw_gangs(axes: Axes, shares: Sequence[WorkloadShare], described: Description) -> None:
    places = np.arange(len(shares))
    of_jobs = [share.jobs / described.jobs for share in shares]
    of_gpu_time = [share.gpu_hours / described.gpu_hours for share in shares]
    axes.bar(places - 0.2, of_jobs, 0.4, color=JOBS, label="of jobs")
    axes.bar(places + 0.2, of_gpu_time, 0.4, color=GPU_TIME, label="of GPU time")
    axes.set_xticks(places, [share.name for share in shares])
    axes.set(title="Gang sizes", xlabel="GPUs a job asks for", ylabel="share of all")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.legend(frameon=False)


def _draw_models(axes: Axes, shares: Sequence[WorkloadShare]) -> None:
    bars = axes.barh([share.name for share in shares], [share.gpu_hours for share in shares], color=GPU_TIME)
    axes.bar_label(bars, [f"{share.gpu_hours:,.0f}" for share in shares], padding=3)
    axes.invert_yaxis()
    axes.margins(x=0.2)
    axes.set(title="Models", xlabel="GPU-hours")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _together(name: str, shares: Sequence[WorkloadShare]) -> WorkloadShare:
    return WorkloadShare(name, sum(share.jobs for share in shares), sum(share.gpu_hours for share in shares))
