"""Figures of learning: the objective over episodes, and the probabilities of actions."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.patches import Rectangle
from matplotlib.ticker import EngFormatter, MaxNLocator

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.figures.learned import (
    NOTHING_EVALUATED,
    AgentGroup,
    DrawnAgent,
    EvaluatedTree,
    agent_groups,
    alike,
    percent,
    rolling,
    several_models,
)
from rota.figures.page import FAINT, INK, footer, new_page, pages, plain
from rota.learning.outcome import Evaluation, EvaluationRow

ACROSS = 4
WIDTH_IN, HEIGHT_IN = 3.4, 3.0
ALONE_IN = 7.0
"""Smallest width of a page: its title must fit."""
WINDOW = 0.05
"""Window of a rolling mean, as a share of the episodes of a stage."""
FAR = (0.005, 0.995)
"""Quantiles beyond which values are not drawn."""
SEEDS = ("#0072b2", "#d55500", "#00a66e", "#cc79a7", "#626262")


class ObjectiveLine(NamedTuple):
    """One measure of one agent, all stages behind each other."""

    episodes: Floats
    values: Floats
    smooth_episodes: Floats
    """Positions of the rolling mean; NaN between stages, where the line is broken."""
    smooth: Floats


class Track(NamedTuple):
    """The objective and the accuracy of one agent."""

    seed: int
    objective: ObjectiveLine
    accuracy: ObjectiveLine


class Begin(NamedTuple):
    """The start of a stage, in episodes."""

    at: int
    label: str


class ObjectivePanel(NamedTuple):
    """Agents that differ in their seed only."""

    title: str
    stages: list[Begin]
    tracks: list[Track]


def panels(agents: Sequence[DrawnAgent]) -> list[ObjectivePanel]:
    """Return the panels of agents with a history."""
    groups = alike(agent for agent in agents if agent.history)
    found = zip(titles([group[0] for group in groups]), groups, strict=True)
    return [
        ObjectivePanel(title, _begins(group[0]), [_track(agent) for agent in group]) for title, group in found
    ]


def titles(agents: Sequence[DrawnAgent]) -> list[str]:
    """Return what each agent learned, `early → late, temperature 10`; else the names of folders."""
    said = [_learned(agent, models=several_models(agents)) for agent in agents]
    if len(set(said)) == len(said):
        return said
    return [PurePath(agent.name).name.replace(",", "\n") for agent in agents]


def _learned(agent: DrawnAgent, *, models: bool) -> str:
    last = agent.stages[-1].temperature
    said = " → ".join(stage.said(models=models) for stage in agent.stages)
    return said + (f", temperature {last:g}" if last > 1 else "")


def _begins(agent: DrawnAgent) -> list[Begin]:
    found, at = [], 0
    for stage in agent.stages:
        found.append(Begin(at, stage.said(models=False)))
        at += stage.episodes
    return found


def _track(agent: DrawnAgent) -> Track:
    return Track(agent.seed, _line(agent, "objective"), _line(agent, "accuracy"))


def _line(agent: DrawnAgent, measure: str) -> ObjectiveLine:
    parts = []
    for number, begin in enumerate(_begins(agent)):
        rows = agent.of_stage(number)
        if not rows:
            continue
        ends, values = [row.episodes for row in rows], [float(getattr(row, measure)) for row in rows]
        where, means = rolling(ends, values, round(WINDOW * ends[-1]))
        parts.append(
            ObjectiveLine(
                begin.at + np.array(ends, float),
                np.array(values),
                np.append(begin.at + where, np.nan),
                np.append(means, np.nan),
            )
        )
    return ObjectiveLine(*map(np.concatenate, zip(*parts, strict=True)))


def objective_figure(agents: Sequence[DrawnAgent], family: str, drawn_by: str) -> Figure:
    """Draw a panel per agent of a folder; `drawn_by` is the command that draws it."""
    found = panels(agents)
    if not found:
        raise InputError(f"{family}: no agent that says how it learned; learn one first: rota learn")
    across = min(ACROSS, len(found))
    down = -(-len(found) // across)
    figure = new_page(
        "Does the agent learn?",
        _subject(agents, family),
        footer(drawn_by, list(dict.fromkeys(agent.command for agent in agents))),
        width_in=max(ALONE_IN, WIDTH_IN * across),
        height_in=HEIGHT_IN * down,
    )
    grid = figure.add_gridspec(down, across)
    for at, panel in enumerate(found):
        place = grid[at // across, at % across].subgridspec(2, 1, hspace=0.0)
        upper = figure.add_subplot(place[0])
        lower = figure.add_subplot(place[1], sharex=upper)
        _draw(upper, lower, panel, first=at % across == 0)
    return figure


def _subject(agents: Sequence[DrawnAgent], family: str) -> str:
    count = f"{len(agents)} agents, a colour per seed" if len(agents) > 1 else "one agent"
    return f"{family}: {count}; strong lines: rolling mean over {WINDOW:.0%} of a stage"


def _draw(upper: Axes, lower: Axes, panel: ObjectivePanel, *, first: bool) -> None:
    _draw_lines(upper, [track.objective for track in panel.tracks])
    _draw_lines(lower, [track.accuracy for track in panel.tracks])
    upper.set_title(panel.title, size=8.5, color=INK, loc="left")
    upper.tick_params(labelbottom=False)
    for axes in (upper, lower):
        plain(axes, grid="y")
        axes.tick_params(labelsize=7.5)
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        _separate(axes, panel.stages)
    _name(lower, panel.stages)
    lower.yaxis.set_major_formatter(percent)
    lower.xaxis.set_major_formatter(EngFormatter(sep=""))
    lower.set_xlabel("episodes", size=8)
    if first:
        upper.set_ylabel("objective", size=8)
        lower.set_ylabel("accuracy drawn", size=8)


def _draw_lines(axes: Axes, lines: Sequence[ObjectiveLine]) -> None:
    for at, line in enumerate(lines):
        colour = SEEDS[at % len(SEEDS)]
        axes.plot(line.episodes, line.values, color=colour, alpha=0.18, linewidth=0.6)
        axes.plot(line.smooth_episodes, line.smooth, color=colour, linewidth=1.6)
    axes.set_ylim(*limits(lines))


def limits(lines: Sequence[ObjectiveLine]) -> tuple[float, float]:
    """Return limits without the few episodes far from all others."""
    found = [
        (*np.quantile(line.values, FAR), np.nanmin(line.smooth), np.nanmax(line.smooth)) for line in lines
    ]
    low, high = np.min(found), np.max(found)
    room = 0.08 * (high - low) or 0.01
    return float(low - room), float(high + room)


def _separate(axes: Axes, stages: Sequence[Begin]) -> None:
    for stage in stages[1:]:
        axes.axvline(stage.at, color=FAINT, linewidth=0.9, linestyle=(0, (3, 2)))


def _name(axes: Axes, stages: Sequence[Begin]) -> None:
    """Write the names of the stages at their beginnings, where the accuracy is still low."""
    for stage in stages:
        axes.annotate(
            stage.label,
            (stage.at, 0.0),
            xytext=(3, 3),
            textcoords="offset points",
            xycoords=("data", "axes fraction"),
            size=7.5,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8},
        )


MOST = 10
"""Largest number of rows on a page."""
NAMES_IN, CELL_IN = 1.1, 1.45
PROBABILITIES_HEIGHT_IN, LINE_IN = 0.85, 0.2
LEAST_IN = 6.5
SHADES = LinearSegmentedColormap.from_list("probability", ["#ffffff", "#77aadd", "#0b4f86"])
DARK = 0.6
"""Probability above which a number is written in white."""


class ProbabilityCell(NamedTuple):
    """One agent in one scenario."""

    label: str
    probabilities: Floats
    """Probability of each action at each decision."""
    chosen: tuple[int, ...]
    rank: int
    of: int


class ProbabilityStrip(NamedTuple):
    """One agent and one model."""

    title: str
    actions: list[str]
    cells: list[ProbabilityCell]

    @property
    def height_in(self) -> float:
        """Height of the strip in inches."""
        return PROBABILITIES_HEIGHT_IN + LINE_IN * len(self.actions)


def strips(evaluations: Sequence[Evaluation]) -> list[ProbabilityStrip]:
    """Return the strips to be drawn."""
    found = agent_groups(evaluations)
    return [
        _strip(group, model, seed, named=len(found) > 1)
        for group in found
        for model in group.models
        for seed in group.seeds
        if any(seed in rows for rows in group.of_model(model).values())
    ]


def _strip(group: AgentGroup, model: str, seed: int, *, named: bool) -> ProbabilityStrip:
    places = group.of_model(model)
    cells = [_cell(place, rows[seed]) for place, rows in places.items() if seed in rows]
    parts = [group.name] * named + [model] + [f"agent with seed {seed}"] * (len(group.seeds) > 1)
    every = [row for rows in places.values() for row in rows.values()]
    return ProbabilityStrip(", ".join(parts), action_names(every), cells)


def _cell(place: EvaluatedTree, row: EvaluationRow) -> ProbabilityCell:
    label = place.label.replace("\n", ", ") + ("" if row.seen else ", unseen")
    found = row.agent
    return ProbabilityCell(label, np.array(found.probabilities), found.sequence, found.rank, found.of)


def action_names(rows: Sequence[EvaluationRow]) -> list[str]:
    """Return the actions in words: as many as any scenario has."""
    names = [list(row.agent.actions) for row in rows]
    return max(names, key=len, default=[])


def probabilities_figures(evaluations: Sequence[Evaluation], footer: Sequence[str]) -> Iterator[Figure]:
    """Yield a page, or several if there are many agents."""
    return pages(strips(evaluations), MOST, lambda some: _page(some, footer), NOTHING_EVALUATED)


def _page(found: Sequence[ProbabilityStrip], footer: Sequence[str]) -> Figure:
    across = max(len(strip.cells) for strip in found)
    heights_in = [strip.height_in for strip in found]
    figure = new_page(
        "How sure is the agent, and of what?",
        "probability of each action, in percent, at each decision; framed: what it does",
        footer,
        width_in=max(LEAST_IN, NAMES_IN + CELL_IN * across),
        height_in=sum(heights_in),
    )
    grid = figure.add_gridspec(len(found), across, height_ratios=heights_in)
    for at, strip in enumerate(found):
        _draw_strip(figure, grid, at, strip, last=at == len(found) - 1)
    return figure


def _draw_strip(figure: Figure, grid: GridSpec, at: int, strip: ProbabilityStrip, *, last: bool) -> None:
    for number, cell in enumerate(strip.cells):
        axes = figure.add_subplot(grid[at, number])
        _draw_probabilities(axes, cell, strip.actions if number == 0 else [""] * len(strip.actions))
        if number == 0:
            _head(axes, strip.title)
        if last:
            axes.set_xlabel("decision", size=8, color=INK)


def _head(axes: Axes, text: str) -> None:
    where: dict[str, Any] = {"xycoords": "axes fraction", "xytext": (0, 24), "textcoords": "offset points"}
    axes.annotate(text, (0.0, 1.0), **where, size=9, weight="bold", color=INK).set_in_layout(False)


def _draw_probabilities(axes: Axes, cell: ProbabilityCell, names: Sequence[str]) -> None:
    chances = cell.probabilities.T
    axes.imshow(chances, cmap=SHADES, vmin=0.0, vmax=1.0, aspect="auto")
    for (action, decision), chance in np.ndenumerate(chances):
        colour = "white" if chance > DARK else INK
        axes.text(decision, action, f"{100 * chance:.0f}", size=7.5, color=colour, ha="center", va="center")
    for decision, action in enumerate(cell.chosen):
        corner = decision - 0.46, action - 0.44
        axes.add_patch(Rectangle(corner, 0.92, 0.88, fill=False, edgecolor="#d55500", linewidth=1.8))
    decisions = range(len(cell.chosen))
    axes.set_xticks(decisions, [str(decision + 1) for decision in decisions], size=7.5)
    axes.set_yticks(range(len(names)), names, size=8)
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_color(FAINT)
    axes.set_title(f"\n{cell.label}\nrank {cell.rank} of {cell.of}", size=8, color=INK, loc="left", pad=3)
