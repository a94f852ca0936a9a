"""The accuracy of every trial of a population over time, with the points at which networks grew."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from rota.core.population.events import Event, Grown, Reported
from rota.figures.groups import DrawnFigure, Options
from rota.figures.page import INK, legend, new_page, plain, unit_for
from rota.figures.population import PopulationGroup
from rota.results.population.run import PopulationRecord

MOST_TRIALS = 64
"""Most trials whose lines can be told apart."""


@dataclass(slots=True)
class TrialCurve:
    """The reports of one trial, and when its network grew."""

    trial: int
    at_s: list[float] = field(default_factory=list)
    began_s: list[float] = field(default_factory=list)
    metric: list[float] = field(default_factory=list)
    grown: list[tuple[float, float, str]] = field(default_factory=list)
    """Time, metric of the last report, and change."""


def trial_curves(events: Sequence[Event]) -> list[TrialCurve]:
    """Return the curve of each trial that reported a metric, by its number."""
    found: dict[int, TrialCurve] = {}
    for event in events:
        if isinstance(event, Reported) and not math.isnan(event.metric):
            curve = found.setdefault(event.trial, TrialCurve(event.trial))
            curve.at_s.append(event.at_s)
            curve.began_s.append(event.began_s)
            curve.metric.append(event.metric)
        elif isinstance(event, Grown) and event.trial in found:
            curve = found[event.trial]
            curve.grown.append((event.at_s, curve.metric[-1], event.change))
    return [found[trial] for trial in sorted(found)]


def is_shown(run: PopulationRecord) -> bool:
    """Return whether trials are shown one by one: where networks grow, or a deadline ends the run."""
    summary = run.summary
    few = len(summary.repetitions[0].began) <= MOST_TRIALS
    return few and (summary.has_deadline or summary.growth != "never")


def sheets(groups: Sequence[PopulationGroup], options: Options) -> Iterator[DrawnFigure]:
    """Draw a figure per run; with `quick`, of the first run of a group only."""
    for group in groups:
        for run in group.runs[: 1 if options.quick else None]:
            curves = trial_curves(run.events(run.summary.repetitions[0].seed)) if is_shown(run) else []
            if curves:
                figure = draw_trials(curves, run, group.title, group.footer(options.command))
                yield DrawnFigure(f"{group.name}/trials-{run.summary.allocation}", figure)


NEVER, GREW = "#9aa3ad", "#d1006c"


def draw_trials(
    curves: Sequence[TrialCurve], run: PopulationRecord, subject: str, foot: Sequence[str]
) -> Figure:
    """Draw a line per trial; a triangle is where a network grew."""
    summary = run.summary
    end_s = summary.repetitions[0].makespan_s
    unit, unit_s = unit_for(end_s)
    figure = new_page(
        f"Every trial over time: {summary.allocation}, growth {summary.growth}",
        f"{subject}; first seed; a dot is a report; lines are flat while a trial waits",
        foot,
        width_in=9.0,
    )
    axes = figure.add_subplot()
    best = max(curves, key=lambda curve: curve.metric[-1])
    for curve in curves:
        _draw_trial(axes, curve, unit_s, summary.sign, chosen=curve is best)
    if summary.has_deadline:
        axes.axvline(end_s / unit_s, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set(xlim=(0, 1.04 * end_s / unit_s))
    axes.set(xlabel=f"time ({unit})", ylabel=summary.metric_name)
    if summary.in_percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    plain(axes, grid="xy")
    legend(axes, handles=_legend(curves, best, deadline=summary.has_deadline))
    return figure


def _draw_trial(axes: Axes, curve: TrialCurve, unit_s: float, sign: float, *, chosen: bool) -> None:
    at, metric = np.array(curve.at_s) / unit_s, sign * np.array(curve.metric)
    colour = GREW if curve.grown else NEVER
    width = 2.2 if chosen else 0.9
    alpha = 1.0 if chosen else 0.6
    waits = np.ravel(np.column_stack([at[:-1], np.array(curve.began_s[1:]) / unit_s]))
    path = np.append(waits, at[-1]), np.append(np.repeat(metric[:-1], 2), metric[-1])
    axes.plot(*path, color=colour, linewidth=width, alpha=alpha)
    axes.plot(at, metric, "o", color=colour, markersize=3, alpha=alpha)
    axes.text(at[-1], metric[-1], f" {curve.trial}", size=6.5, color=INK, va="center")
    grown = [(at_s / unit_s, sign * value) for at_s, value, _ in curve.grown]
    if grown:
        axes.plot(*zip(*grown, strict=True), "^", color=GREW, markersize=7, markeredgecolor="white", zorder=4)


def _legend(curves: Sequence[TrialCurve], best: TrialCurve, *, deadline: bool) -> list[Line2D]:
    colour = GREW if best.grown else NEVER
    found = [Line2D([], [], color=colour, linewidth=2.2, label=f"trial {best.trial}: the best at the end")]
    if any(curve.grown for curve in curves):
        found.append(Line2D([], [], color=GREW, linewidth=0.9, label="a trial whose network grew"))
    if not all(curve.grown for curve in curves):
        found.append(Line2D([], [], color=NEVER, linewidth=0.9, label="a trial whose network did not"))
    if any(curve.grown for curve in curves):
        mark = Line2D(
            [], [], color=GREW, marker="^", markersize=7, linestyle="none", label="its network grows"
        )
        found.append(mark)
    if deadline:
        found.append(Line2D([], [], color=INK, linewidth=0.9, linestyle=(0, (4, 3)), label="deadline"))
    return found
