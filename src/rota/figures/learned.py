"""Figures of agents: how they were learned, and the accuracies that they reach."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from rota.config.bind import facts
from rota.core.arrays import Floats
from rota.core.grouped import grouped
from rota.figures.page import INK, key_below, new_page, pages, plain
from rota.learning.files import HISTORY, HistoryRow, agents_below, read_history
from rota.learning.outcome import KIND, Evaluation, EvaluationRow
from rota.policies.agents import FACTS, KINDS, read_facts
from rota.recordings.library import models

SCENARIOS = ("early", "early-middle", "middle", "middle-late", "late")
"""Scenarios of the original work, in order of time."""


@dataclass(frozen=True, slots=True)
class LearnedStage:
    """A stage of learning of an agent."""

    trees: tuple[str, ...]
    """Names of its trees: `convnet2/early` …"""
    episodes: int
    temperature: float

    def said(self, *, models: bool) -> str:
        """Return `early`, `early + late`, or the number of scenarios; with `models`, name their models."""
        if len(self.trees) > 2:
            of = (
                f" of {', '.join(dict.fromkeys(tree.split('/')[0] for tree in self.trees))}" if models else ""
            )
            return f"{len(self.trees)} scenarios{of}"
        return " + ".join(self.trees if models else (tree.split("/")[-1] for tree in self.trees))


@dataclass(frozen=True, slots=True)
class DrawnAgent:
    """An agent and its history, without weights."""

    folder: Path
    network: str
    seed: int
    stages: tuple[LearnedStage, ...]
    started_from: str
    """Folder of another agent that it started from; empty if it had new weights."""
    command: str
    history: tuple[HistoryRow, ...]

    @property
    def name(self) -> str:
        """The folder without the seed: equal for agents that differ in their seed only."""
        return without_seed(str(self.folder), self.seed)

    def of_stage(self, stage: int) -> list[HistoryRow]:
        """Return the history of one stage."""
        return [row for row in self.history if row.stage == stage]


def read_learned(folder: Path) -> DrawnAgent:
    """Read an agent and its history."""
    path, again, found = folder / FACTS, KINDS[KIND].again, read_facts(folder, KIND)
    about = facts(_FigureAbout, found.about, path, again, others=True)
    return DrawnAgent(
        folder,
        found.network,
        about.seed,
        tuple(facts(LearnedStage, stage, path, again, others=True) for stage in about.stages),
        about.started_from,
        found.command,
        tuple(read_history(folder, HistoryRow)),
    )


@dataclass(frozen=True, slots=True)
class _FigureAbout:
    seed: int
    stages: tuple[dict[str, object], ...]
    started_from: str


def agents_in(folder: Path) -> list[DrawnAgent]:
    """Return all complete agents with a history that change networks, in a folder and below it."""
    return [read_learned(each) for each in agents_below(folder, KIND) if (each / HISTORY).is_file()]


def alike(agents: Iterable[DrawnAgent]) -> list[list[DrawnAgent]]:
    """Return groups of agents that differ in their seed only, by seed."""
    groups = grouped((agent.name, agent) for agent in agents)
    return [sorted(group, key=lambda agent: agent.seed) for group in groups.values()]


def several_models(agents: Iterable[DrawnAgent]) -> bool:
    """Whether scenarios must be named with their model."""
    trees = (tree for agent in agents for stage in agent.stages for tree in stage.trees)
    return len({tree.split("/")[0] for tree in trees}) > 1


def without_seed(folder: str, seed: object) -> str:
    """Return the folder that an agent shares with those of other seeds."""
    path = PurePath(folder)
    return str(path.parent if path.name == f"seed{seed}" else path)


def rolling(episodes: Sequence[int], values: Sequence[float], window: int) -> tuple[Floats, Floats]:
    """Return positions and rolling means over `window` episodes, from when there were so many."""
    window = max(1, window)
    ends, found = np.array(episodes, float), np.array(values, float)
    lengths = np.diff(ends, prepend=0.0)
    sums, drawn = np.cumsum(found * lengths), np.cumsum(lengths)
    first = np.searchsorted(ends, ends - window, side="right")  # whose end is within the window
    before, drawn_before = np.r_[0.0, sums][first], np.r_[0.0, drawn][first]
    whole = ends >= min(window, ends[-1])
    return ends[whole], ((sums - before) / (drawn - drawn_before))[whole]


def in_time(scenarios: Iterable[str]) -> list[str]:
    """Return scenarios, each once, in order of time; others after those of the original work."""
    found = dict.fromkeys(scenarios)
    known = {name: at for at, name in enumerate(SCENARIOS)}
    return sorted(found, key=lambda name: known.get(name, len(known)))


def percent(value: float, position: object = None) -> str:
    """Return `62.5%`, with no more digits than needed."""
    return f"{100 * value:.4g}%"


class EvaluatedTree(NamedTuple):
    """A recorded tree in which agents were evaluated."""

    model: str
    scenario: str
    seed: int
    """Seed of the recording."""

    @property
    def label(self) -> str:
        """The scenario, with the seed of the recording if it is not 0."""
        return self.scenario + (f"\nseed {self.seed}" if self.seed else "")


class AgentGroup(NamedTuple):
    """Agents that are drawn together: of one configuration, or all folds of a leave-one-out evaluation."""

    name: str
    rows: dict[EvaluatedTree, dict[int, EvaluationRow]]
    """Evaluations by tree, in order of time, and by seed of the agent."""

    @property
    def seeds(self) -> list[int]:
        """The seeds of the agents."""
        return sorted({seed for rows in self.rows.values() for seed in rows})

    @property
    def models(self) -> list[str]:
        """The models of the trees, each once."""
        return list(dict.fromkeys(place.model for place in self.rows))

    def of_model(self, model: str) -> dict[EvaluatedTree, dict[int, EvaluationRow]]:
        """Return the evaluations in the trees of one model."""
        return {place: rows for place, rows in self.rows.items() if place.model == model}


def agent_groups(evaluations: Iterable[Evaluation]) -> list[AgentGroup]:
    """Return groups of agents; configurations without a common scenario form one group."""
    groups: dict[str, dict[EvaluatedTree, dict[int, EvaluationRow]]] = {}
    evaluations = list(evaluations)
    called = iter(models([row.agent for each in evaluations for row in each.rows]))
    for each in evaluations:
        seed = int(each.about.get("seed", 0))
        rows = groups.setdefault(without_seed(each.agent, seed), {})
        for row in each.rows:
            place = EvaluatedTree(next(called), row.agent.scenario, row.agent.seed)
            rows.setdefault(place, {})[seed] = row
    if len(groups) > 1 and _apart(list(groups.values())):
        name = PurePath(next(iter(groups))).parent.name
        return [
            AgentGroup(
                name, _ordered({place: row for rows in groups.values() for place, row in rows.items()})
            )
        ]
    return [AgentGroup(PurePath(name).name, _ordered(rows)) for name, rows in groups.items()]


def _apart(groups: Sequence[dict[EvaluatedTree, dict[int, EvaluationRow]]]) -> bool:
    places = [place for rows in groups for place in rows]
    return len(set(places)) == len(places)


def _ordered(
    rows: dict[EvaluatedTree, dict[int, EvaluationRow]],
) -> dict[EvaluatedTree, dict[int, EvaluationRow]]:
    models = list(dict.fromkeys(place.model for place in rows))
    times = in_time(place.scenario for place in rows)
    order = sorted(rows, key=lambda each: (models.index(each.model), times.index(each.scenario), each.seed))
    return {place: rows[place] for place in order}


COLOURS = {
    "never": "#d1495b",
    "random": "#b9b9b9",
    "best fixed": "#e7aa5c",
    "agent": "#0072b2",
    "oracle": "#00a66e",
}
"""Colours of what is compared, in this order."""
NAMES = {
    "never": "changes nothing",
    "random": "random (mean of 10)",
    "best fixed": "best fixed sequence",
    "agent": "agent",
    "oracle": "oracle",
}
NOTHING_EVALUATED = "nothing was evaluated; give agents and recordings: rota evaluate"
BAR, UNSEEN = 0.17, "////"
ACROSS, MOST = 2, 8
"""Number of panels across a page, and on it."""
COLUMN_IN, BESIDE_IN = 1.05, 1.0
HEIGHT_IN, LEGEND_IN = 3.0, 0.45
LEAST_IN = 7.0
STEP = 0.05
"""Axes begin at a multiple of this."""


class ScenarioColumn(NamedTuple):
    """One scenario: means over the agents."""

    place: EvaluatedTree
    seen: bool
    accuracies: dict[str, float]
    """Accuracies by name, as in COLOURS; NaN where there is none."""
    least: float
    """Smallest accuracy of the agents."""
    most: float
    headroom: float
    ranks: tuple[int, ...]
    """Rank of each agent."""
    of: int

    @property
    def said(self) -> str:
        """The text above the bars."""
        low, high = min(self.ranks), max(self.ranks)
        rank = f"{low}" if low == high else f"{low}–{high}"
        return f"rank {rank} of {self.of}\nheadroom {self.headroom:.2f}"


class AccuracyPanel(NamedTuple):
    """The accuracies of one model."""

    model: str
    title: str
    columns: list[ScenarioColumn]


def panels(evaluations: Sequence[Evaluation]) -> list[AccuracyPanel]:
    """Return the panels to be drawn."""
    found = agent_groups(evaluations)
    return [_panel(group, model, named=len(found) > 1) for group in found for model in group.models]


def _panel(group: AgentGroup, model: str, *, named: bool) -> AccuracyPanel:
    columns = [_column(place, list(rows.values())) for place, rows in group.of_model(model).items()]
    headroom = np.mean([column.headroom for column in columns])
    agents = len(group.seeds)
    means = f" ({agents} agents)" if agents > 1 else ""
    name = f"{group.name}\n" if named else ""
    return AccuracyPanel(model, f"{name}{model}: mean headroom {headroom:.2f}{means}", columns)


def _column(place: EvaluatedTree, rows: Sequence[EvaluationRow]) -> ScenarioColumn:
    reached = [row.agent.accuracy for row in rows]
    accuracies = {
        "never": [row.others.never for row in rows],
        "random": [row.others.random for row in rows],
        "best fixed": [math.nan if row.others.fixed is None else row.others.fixed for row in rows],
        "agent": reached,
        "oracle": [row.others.oracle for row in rows],
    }
    return ScenarioColumn(
        place,
        all(row.seen for row in rows),
        {name: float(np.mean(values)) for name, values in accuracies.items()},
        min(reached),
        max(reached),
        float(np.mean([row.agent.headroom for row in rows])),
        tuple(row.agent.rank for row in rows),
        rows[0].agent.of,
    )


def limits(columns: Sequence[ScenarioColumn]) -> tuple[float, float]:
    """Return limits from a multiple of 5 % below all bars to above the texts."""
    found = [value for each in columns for value in (each.least, *each.accuracies.values())]
    least, most = np.nanmin(found), np.nanmax(found)
    low = max(0.0, (math.ceil(round(least / STEP, 6)) - 1) * STEP)
    return low, float(most + 0.2 * (most - low))


def accuracy_figures(evaluations: Sequence[Evaluation], footer: Sequence[str]) -> Iterator[Figure]:
    """Yield a page, or several if there are many panels."""
    return pages(panels(evaluations), MOST, lambda some: _page(some, footer), NOTHING_EVALUATED)


def _page(found: Sequence[AccuracyPanel], footer: Sequence[str]) -> Figure:
    across = min(ACROSS, len(found))
    down = -(-len(found) // across)
    width_in = BESIDE_IN + COLUMN_IN * max(len(panel.columns) for panel in found)
    figure = new_page(
        "How close does the agent come to the best that can be done?",
        "accuracy at the end of the budget; headroom: 0 is the mean of all sequences, 1 the best (oracle)",
        footer,
        width_in=max(LEAST_IN, width_in * across),
        height_in=HEIGHT_IN * down + LEGEND_IN,
    )
    grid = figure.add_gridspec(down + 1, across, height_ratios=[HEIGHT_IN] * down + [LEGEND_IN])
    for at, panel in enumerate(found):
        same = [column for each in found if each.model == panel.model for column in each.columns]
        _draw(figure.add_subplot(grid[at // across, at % across]), panel, limits(same))
    _legend(figure.add_subplot(grid[down, :]), [column for panel in found for column in panel.columns])
    return figure


def _draw(axes: Axes, panel: AccuracyPanel, seen: tuple[float, float]) -> None:
    for at, column in enumerate(panel.columns):
        _draw_bars(axes, at, column)
    labels = [column.place.label + ("" if column.seen else "\nunseen") for column in panel.columns]
    plain(axes, grid="y")
    axes.set_ylim(*seen)
    axes.set_xticks(range(len(labels)), labels, size=8)
    axes.set_xlim(-0.55, len(labels) - 0.45)
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(percent)
    axes.set_ylabel(f"accuracy (axis from {percent(seen[0])})", size=9)
    axes.set_title(panel.title, loc="left", size=9.5, color=INK)


def _draw_bars(axes: Axes, at: int, column: ScenarioColumn) -> None:
    for number, (name, accuracy) in enumerate(column.accuracies.items()):
        where = at + (number - 2) * BAR
        hatch = UNSEEN if name == "agent" and not column.seen else ""
        axes.bar(
            where, accuracy, 0.92 * BAR, color=COLOURS[name], hatch=hatch, edgecolor="white", linewidth=0
        )
        if name == "agent" and column.most > column.least:
            axes.plot([where] * 2, [column.least, column.most], color=INK, linewidth=1.2)
    above: dict[str, Any] = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center"}
    axes.annotate(column.said, (at, column.accuracies["oracle"]), **above, size=6.8, color=COLOURS["agent"])


def _legend(axes: Axes, columns: Sequence[ScenarioColumn]) -> None:
    patches = []
    for name, colour in COLOURS.items():
        if name != "agent" or any(column.seen for column in columns):
            patches.append(Patch(color=colour, label=NAMES[name]))
        if name == "agent" and not all(column.seen for column in columns):
            label = "agent, where it has not learned"
            patches.append(Patch(facecolor=colour, edgecolor="white", hatch=UNSEEN, label=label))
    key_below(axes, patches, ncols=3)
