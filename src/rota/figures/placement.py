"""Figures of placement agents: how they learned, and how they compare with rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from rota.config.bind import facts
from rota.core.arrays import Floats
from rota.figures.learned import percent, rolling
from rota.figures.learned_objective import WINDOW, ObjectiveLine, limits
from rota.figures.page import (
    ALLOCATIONS,
    FAINT,
    HATCHES,
    INK,
    allocation_colour,
    footer,
    in_palette,
    key_below,
    new_page,
    plain,
    rows,
    said,
)
from rota.learning.files import HISTORY, PlacementHistoryRow, read_history
from rota.learning.placement.cases import Goal, time_to
from rota.learning.placement.outcome import AGENT, BEHIND, KIND, SHUFFLED, ComparedRow, PlacementComparison
from rota.policies.agents import FACTS, KINDS, read_facts

HEIGHT_IN = 4.4


class PlacementLearned(NamedTuple):
    """A placement agent and its history, without weights."""

    folder: Path
    command: str
    """Command that learned it."""
    rows: list[PlacementHistoryRow]
    goal: Goal = "makespan"


class Learning(NamedTuple):
    """The lines to be drawn, with updates in place of episodes."""

    ratio: ObjectiveLine
    entropy: ObjectiveLine
    window: int
    """Window of the rolling means, in updates."""


def read_placement_learned(folder: Path) -> PlacementLearned | None:
    """Read an agent and its history; None if there is no history."""
    if not (folder / HISTORY).is_file():
        return None
    found = read_facts(folder, KIND)
    again = KINDS[KIND].again
    cases = facts(_Cases, found.config.get("cases", {}), folder / FACTS, again, others=True)
    history = read_history(folder, PlacementHistoryRow)
    return PlacementLearned(folder, found.command, history, cases.goal) if history else None


@dataclass(frozen=True, slots=True)
class _Cases:
    goal: Goal = "makespan"


def learning(rows: Sequence[PlacementHistoryRow]) -> Learning:
    """Return the lines of all updates."""
    window = max(1, round(WINDOW * len(rows)))
    return Learning(_line(rows, "ratio", window), _line(rows, "entropy", window), window)


def _line(rows: Sequence[PlacementHistoryRow], measure: str, window: int) -> ObjectiveLine:
    updates, values = [row.update for row in rows], [float(getattr(row, measure)) for row in rows]
    return ObjectiveLine(np.array(updates, float), np.array(values), *rolling(updates, values, window))


def placement_learning_figure(agent: PlacementLearned, drawn_by: str) -> Figure:
    """Draw the ratio above, the entropy below; `drawn_by` is the command that draws it."""
    drawn = learning(agent.rows)
    figure = new_page(
        "Does the agent learn to place trials?",
        learning_subject(agent),
        footer(drawn_by, [agent.command]),
        height_in=HEIGHT_IN,
    )
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    _draw(upper, drawn.ratio)
    _draw(lower, drawn.entropy)
    upper.set_ylim(bottom=min(1.0, float(drawn.ratio.values.min())))
    lower.set_ylim(bottom=0.0)
    upper.set_ylabel(f"{time_to(agent.goal)} ÷ lower bound")
    lower.set_ylabel("entropy (nats)")
    mean = f"; strong lines: rolling mean over {drawn.window} updates" if drawn.window > 1 else ""
    _say(upper, f"while it learns, on populations drawn anew for each update{mean}")
    _say(lower, "how unsure it is: 0 if it always does the same")
    lower.set_xlabel("updates")
    lower.set_xlim(0, agent.rows[-1].update + 0.5)
    lower.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
    return figure


def learning_subject(agent: PlacementLearned) -> str:
    """Return the number of updates and decisions, and the time they took."""
    decisions = sum(row.decisions for row in agent.rows)
    seconds = said(agent.rows[-1].seconds)
    return f"{agent.folder}: {len(agent.rows):,} updates, {decisions:,} decisions, {seconds}"


def _say(axes: Axes, text: str) -> None:
    axes.set_title(text, size=8.5, color=FAINT, loc="left")


def _draw(axes: Axes, line: ObjectiveLine) -> None:
    colour = allocation_colour(AGENT)
    axes.plot(line.episodes, line.values, color=colour, alpha=0.3, linewidth=0.8)
    axes.plot(line.smooth_episodes, line.smooth, color=colour, linewidth=1.8)
    axes.set_ylim(*limits([line]))
    plain(axes, grid="y")
    axes.tick_params(labelcolor=INK)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


PANEL_IN, BESIDE_IN, LEAST_IN = 2.5, 1.4, 9.6
BAR_IN, CASES_IN, LEGEND_IN = 0.26, 2.4, 0.35
LEVEL = 0.0005
"""Difference below which the agent and a rule are level."""
TICKS = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
COARSE = (1.0, 2.0, 5.0, 10.0, 50.0, 200.0, 1000.0)
MOST_TICKS = 5
LEAST_VIEW = 1.2
"""Smallest end of the axis of ratios."""


class AllocationTimes(NamedTuple):
    """The times ÷ lower bound of one allocation."""

    name: str
    mean: float
    least: float
    most: float
    """Range over single cases."""


class Duel(NamedTuple):
    """One case: the agent against the best rule."""

    behind: float
    """Extra time of the agent, as a share; below 0 if it is ahead."""
    rule: str
    """The best rule."""

    @property
    def winner(self) -> str:
        """The one that is ahead; empty if they are level."""
        return AGENT if self.behind < -LEVEL else self.rule if self.behind > LEVEL else ""


class PlacementPanel(NamedTuple):
    """One dispatch cost."""

    dispatch: float
    taken: list[AllocationTimes]
    """Times in the order of the colours; the agent with shuffled weights last."""
    duels: list[Duel]
    """Cases from where the agent is furthest ahead to where it is furthest behind."""

    @property
    def title(self) -> str:
        """The title in figures: what a dispatch costs."""
        return (
            f"a dispatch costs {percent(self.dispatch)}\nof an interval"
            if self.dispatch
            else "dispatch is free"
        )

    @property
    def score(self) -> str:
        """The counts, `ahead in 50, level in 3, behind in 7`, and the extremes."""
        winners = [duel.winner for duel in self.duels]
        ahead, level = winners.count(AGENT), winners.count("")
        behind = len(winners) - ahead - level
        parts = [f"ahead in {ahead}", f"level in {level}" if level else "", f"behind in {behind}"]
        extremes = f"from {self.duels[0].behind:+.1%} to {self.duels[-1].behind:+.1%}"
        return f"{', '.join(filter(None, parts))}\n{extremes}"


def panels(found: PlacementComparison) -> list[PlacementPanel]:
    """Return the panels to be drawn, by dispatch cost."""
    return [_panel(cost, found.at(cost)) for cost in found.dispatches]


def _panel(dispatch: float, found: PlacementComparison) -> PlacementPanel:
    taken = [_taken(name, found.ratios(name)) for name in in_palette(found.names, ALLOCATIONS)]
    duels = sorted(map(_duel, found.tried))
    return PlacementPanel(dispatch, [*taken, _taken(SHUFFLED, found.shuffled)], duels)


def _taken(name: str, ratios: Floats) -> AllocationTimes:
    return AllocationTimes(name, float(ratios.mean()), float(ratios.min()), float(ratios.max()))


def _duel(tried: ComparedRow) -> Duel:
    rules = {name: ratio for name, ratio in tried.ratios.items() if name != AGENT}
    return Duel(tried.behind, min(rules, key=rules.__getitem__))


def placement_comparison_figure(found: PlacementComparison, foot: Sequence[str]) -> Figure:
    """Draw a column per dispatch cost: bars of all allocations above, the agent's cases below."""
    drawn = panels(found)
    above_in = 0.8 + BAR_IN * len(drawn[0].taken)
    figure = new_page(
        title(found),
        comparison_subject(found),
        foot,
        width_in=max(LEAST_IN, BESIDE_IN + PANEL_IN * len(drawn)),
        height_in=above_in + CASES_IN + LEGEND_IN,
    )
    grid = figure.add_gridspec(3, len(drawn), height_ratios=[above_in, CASES_IN, LEGEND_IN])
    furthest = max(each.most for panel in drawn for each in panel.taken)
    upper = lower = None
    for column, panel in enumerate(drawn):
        upper = figure.add_subplot(grid[0, column], sharey=upper)
        lower = figure.add_subplot(grid[1, column], sharey=lower)
        _draw_taken(upper, panel, furthest, first=column == 0)
        upper.set_xlabel(f"{time_to(found.goal)} ÷ lower bound")
        upper.xaxis.label.set(size=8.5)
        _draw_duels(lower, panel, first=column == 0)
    _legend(figure.add_subplot(grid[2, :]), drawn)
    return figure


def title(found: PlacementComparison) -> str:
    """Return how much longer the agent takes than the best rules."""
    behind = float(found.behind.mean())
    if abs(behind) < LEVEL:
        said = "as long as"
    else:
        said = f"{abs(behind):.1%} {'less' if behind < 0 else 'more'} time than"
    return f"Placing trials: the agent takes {said} the best rule of each case, on average"


def comparison_subject(found: PlacementComparison) -> str:
    """Return the range of the cases."""
    slots, trials = ([getattr(each, name) for each in found.tried] for name in ("slots", "trials"))
    spread = max(each.spread for each in found.tried)
    return (
        f"{len(found.tried)} cases it has not learned from: {_span(trials)} trials on {_span(slots)} slots, "
        f"the fastest up to {spread:.0f}× as fast as the slowest"
    )


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def _draw_taken(axes: Axes, panel: PlacementPanel, furthest: float, *, first: bool) -> None:
    """Draw bars from the lower bound on: the logarithm of a ratio has a length."""
    for place, each in enumerate(panel.taken):
        shuffled = each.name == SHUFFLED
        look: dict[str, Any] = {"hatch": HATCHES[1], "edgecolor": "white", "linewidth": 0} if shuffled else {}
        colour = allocation_colour(AGENT if shuffled else each.name)
        axes.barh(place, each.mean - 1.0, 0.72, left=1.0, color=colour, **look)
        axes.plot([each.least, each.most], [place, place], color=INK, linewidth=0.9)
        axes.annotate(
            f"{each.mean:.2f}",
            (each.most, place),
            xytext=(4, 0),
            textcoords="offset points",
            size=8,
            color=INK,
            va="center_baseline",
        )
    high = max(furthest, LEAST_VIEW)
    axes.set_xscale("log")
    axes.set_xlim(1.0, high**1.28)  # with room for what is written
    ticks = ratio_ticks(high)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    rows(axes, [each.name for each in panel.taken], grid="x")
    axes.set_title(panel.title, size=9.5, color=INK, loc="left")
    axes.tick_params(axis="y", labelleft=first)


def ratio_ticks(high: float) -> list[float]:
    """Return the marks of the axis of ratios: fewer if there were too many."""
    found = [tick for tick in TICKS if tick <= high]
    return found if len(found) <= MOST_TICKS else [tick for tick in COARSE if tick <= high]


def _draw_duels(axes: Axes, panel: PlacementPanel, *, first: bool) -> None:
    places = np.arange(len(panel.duels))
    colours = [allocation_colour(duel.winner) if duel.winner else FAINT for duel in panel.duels]
    axes.bar(places, [duel.behind for duel in panel.duels], 0.86, color=colours)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.axhline(BEHIND, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_xlim(-0.7, len(panel.duels) - 0.3)
    axes.set_xticks([])
    axes.set_title(panel.score, size=9, color=INK, loc="left")
    axes.set_xlabel("cases, sorted")
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:+.4g}%" if value else "0%")
    plain(axes, grid="y")
    axes.spines["bottom"].set_visible(False)
    axes.xaxis.label.set(size=8.5)
    axes.tick_params(axis="y", labelleft=first)
    if first:
        axes.set_ylabel("the agent takes longer (+) or\nless (-) than the best rule")
        axes.yaxis.label.set(size=8.5)


def _legend(axes: Axes, drawn: Sequence[PlacementPanel]) -> None:
    winners = {duel.winner for panel in drawn for duel in panel.duels}
    names = [each.name for each in drawn[0].taken if each.name in winners]
    handles = [Patch(color=allocation_colour(name), label=f"{name} is ahead") for name in names]
    lines = "above: means, thin lines from the best case to the worst"
    about = f"{lines} · below: a bar per case, dashed at {BEHIND:+.0%}"
    look = {"title": about, "title_fontsize": 8, "alignment": "left", "borderpad": 0}
    key_below(axes, handles, ncols=len(handles), **look)
