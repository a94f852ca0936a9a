"""Does the agent that places trials learn? How long populations take, how sure it is, update by update."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rota.config.bind import facts
from rota.core.errors import InputError
from rota.core.facts import parsed
from rota.figures.colours import FAINT, INK, allocation_colour
from rota.figures.durations import said
from rota.figures.learned import FACTS, Made, rolling
from rota.figures.learned_objective import WINDOW, Line, limits
from rota.figures.page import footer, new_page, plain
from rota.learning.placement.goal import Goal, time_to
from rota.learning.placement.history import HISTORY, Row, read_history
from rota.learning.placement.outcome import AGENT

HEIGHT_IN = 4.4
AGAIN = "learn it again: rota learn config/learn/place.toml"


class PlacementLearned(NamedTuple):
    """One agent as figures see it: how it learned; no weights."""

    folder: Path
    command: str
    """That learned it."""
    rows: list[Row]
    goal: Goal = "makespan"


class Learning(NamedTuple):
    """What is to be drawn, with updates in place of episodes."""

    ratio: Line
    entropy: Line
    window: int
    """Of the rolling means, in updates."""


def read_placement_learned(folder: Path) -> PlacementLearned | None:
    """An agent; None if it does not say how it learned."""
    if not (folder / HISTORY).is_file():
        return None
    path = folder / FACTS
    try:
        read = parsed(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {AGAIN}") from None
    found = facts(_Facts, read, path, AGAIN, others=True)
    cases = facts(_Cases, found.config.get("cases", {}), path, AGAIN, others=True)
    rows = read_history(folder)
    made = facts(Made, found.provenance, path, AGAIN, others=True)
    return PlacementLearned(folder, made.command, rows, cases.goal) if rows else None


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the file of an agent says."""

    provenance: dict[str, object]
    config: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Cases:
    """What it says of the cases that it learned on."""

    goal: Goal = "makespan"


def learning(rows: Sequence[Row]) -> Learning:
    """Of all updates."""
    window = max(1, round(WINDOW * len(rows)))
    return Learning(_line(rows, "ratio", window), _line(rows, "entropy", window), window)


def _line(rows: Sequence[Row], measure: str, window: int) -> Line:
    updates, values = [row.update for row in rows], [float(getattr(row, measure)) for row in rows]
    return Line(np.array(updates, float), np.array(values), *rolling(updates, values, window))


def placement_learning_figure(agent: PlacementLearned, drawn_by: str) -> Figure:
    """The ratio above, the entropy below; `drawn_by` is the command that draws it."""
    drawn = learning(agent.rows)
    figure = new_page(
        "Does the agent learn to place trials?",
        subject(agent),
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


def subject(agent: PlacementLearned) -> str:
    """How much of what, in which time."""
    decisions = sum(row.decisions for row in agent.rows)
    seconds = said(agent.rows[-1].seconds)
    return f"{agent.folder}: {len(agent.rows):,} updates, {decisions:,} decisions, {seconds}"


def _say(axes: Axes, text: str) -> None:
    axes.set_title(text, size=8.5, color=FAINT, loc="left")


def _draw(axes: Axes, line: Line) -> None:
    colour = allocation_colour(AGENT)
    axes.plot(line.episodes, line.values, color=colour, alpha=0.3, linewidth=0.8)
    axes.plot(line.smooth_episodes, line.smooth, color=colour, linewidth=1.8)
    axes.set_ylim(*limits([line]))
    plain(axes, grid="y")
    axes.tick_params(labelcolor=INK)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
