"""Figures of recorded trees: every sequence of changes, and its accuracy."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.core.grouped import grouped
from rota.figures.page import FAINT, INK, new_page, origins, plain
from rota.recordings.describe import Gain, Noise, by_model, by_scenario, gain, noise
from rota.recordings.tree import Tree

ROW_IN, AROUND_IN = 0.3, 1.5
ABSENT = "not recorded"


class ScenarioStrip(NamedTuple):
    """One scenario and seed: a cell per sequence."""

    label: str
    said: str
    """Text at the end of the row."""
    accuracies: Floats
    """Accuracy of each sequence; NaN if it is missing or failed."""
    best: int
    """Position of the best; -1 if there is none."""


class TreeBlock(NamedTuple):
    """All trees of one model with the same actions."""

    model: str
    data: str
    actions: tuple[str, ...]
    decisions: int
    never: int
    """Position of the sequence that changes nothing."""
    strips: list[ScenarioStrip]

    @property
    def height_in(self) -> float:
        """Height of the block in inches."""
        return AROUND_IN + ROW_IN * len(self.strips)


def tree_blocks(trees: Sequence[Tree]) -> list[TreeBlock]:
    """Return a block per model, data set and set of actions; scenarios that only others have are rows too."""
    groups = grouped(((tree.model, tree.data, tree.actions, tree.decisions), tree) for tree in trees)
    scenarios = dict.fromkeys(tree.scenario for tree in trees)
    return [_block(group, list(scenarios)) for group in groups.values()]


def draw_trees(figure: Figure, place: SubplotSpec, block: TreeBlock) -> Axes:
    """Draw a row per scenario, a cell per sequence, shaded by its accuracy; return the axes."""
    axes = figure.add_subplot(place)
    values = np.array([strip.accuracies for strip in block.strips])
    scale = Normalize(*_limits(values))
    image = axes.imshow(np.ma.masked_invalid(values), cmap="viridis", norm=scale, aspect="auto")
    _mark_missing(axes, values)
    for row, strip in enumerate(block.strips):
        if strip.best >= 0:
            axes.plot(strip.best, row, "o", color="#d1495b", markersize=5, markeredgecolor="white")
    _draw_borders(axes, block)
    _label(axes, block)
    bar = figure.colorbar(image, ax=axes, pad=0.02, fraction=0.03, aspect=12)
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    bar.ax.tick_params(labelsize=8, colors=INK, color=FAINT)
    bar.outline.set_visible(False)
    bar.ax.set_title("accuracy", size=8, color=INK, loc="left")
    return axes


def _block(trees: Sequence[Tree], scenarios: Sequence[str]) -> TreeBlock:
    first = trees[0]
    strips = []
    for scenario in scenarios:
        found = [tree for tree in trees if tree.scenario == scenario]
        strips += [_strip(tree) for tree in found]
        if not found:
            nothing = np.full(len(first.all_sequences), math.nan)
            strips.append(ScenarioStrip(scenario, ABSENT, nothing, -1))
    never = first.all_sequences.index(first.never)
    return TreeBlock(first.model, first.data, first.actions, first.decisions, never, strips)


def _strip(tree: Tree) -> ScenarioStrip:
    found = tree.accuracies()
    accuracies = np.array([found.get(sequence, math.nan) for sequence in tree.all_sequences])
    known = np.flatnonzero(~np.isnan(accuracies))
    best = int(known[np.argmax(accuracies[known])]) if len(known) else -1
    missing = len(tree.all_sequences) - len(found)
    parts = [f"best {accuracies[best]:.1%}"] if best >= 0 else []
    if tree.never in found:
        parts.append(f"never {found[tree.never]:.1%} (rank {tree.ranks[tree.never]})")
    parts += [f"{missing} missing"] if missing else []
    label = f"{tree.scenario} ({tree.start_s:.3g} s), seed {tree.seed}"
    return ScenarioStrip(label, " · ".join(parts), accuracies, best)


def _limits(values: Floats) -> tuple[float, float]:
    """Return the range of colours; failures far below the rest are clipped."""
    known = values[~np.isnan(values)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(np.percentile(known, 2)), float(known.max())
    return (low, high) if high > low else (low - 0.01, high + 0.01)


def _mark_missing(axes: Axes, values: Floats) -> None:
    for row, column in np.argwhere(np.isnan(values)).tolist():
        cell = Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="white", edgecolor="#aaaaaa")
        cell.set(hatch="////", linewidth=0)
        axes.add_patch(cell)


def _draw_borders(axes: Axes, block: TreeBlock) -> None:
    """Draw borders between rows, and thicker ones between sequences with different first changes."""
    count = len(block.actions) ** block.decisions
    for row in range(1, len(block.strips)):
        axes.axhline(row - 0.5, color="white", linewidth=2)
    for level, width in ((1, 2.5), (2, 0.9)):
        if level < block.decisions:
            size = len(block.actions) ** (block.decisions - level)
            for edge in range(size, count, size):
                axes.axvline(edge - 0.5, color="white", linewidth=width)
    frame = Rectangle(
        (block.never - 0.45, -0.47), 0.9, len(block.strips) - 0.06, fill=False, edgecolor="#d1495b"
    )
    axes.add_patch(frame)


def _label(axes: Axes, block: TreeBlock) -> None:
    rows = range(len(block.strips))
    axes.set_yticks(rows, [strip.label for strip in block.strips], size=9, color=INK)
    right = axes.secondary_yaxis("right")
    right.set_yticks(rows, [strip.said for strip in block.strips], size=8, color=INK)
    size = len(block.actions) ** (block.decisions - 1)
    middles = [size * number + (size - 1) / 2 for number in range(len(block.actions))]
    firsts = [f"{number}: {action}" for number, action in enumerate(block.actions)]
    axes.set_xticks(middles, firsts, size=8, color=INK)
    for each in (axes, right):
        each.tick_params(length=0)
        each.spines[:].set_visible(False)
    zeros, last = "-".join("0" * block.decisions), "-".join([str(len(block.actions) - 1)] * block.decisions)
    about = f"first of {block.decisions} changes; cells from {zeros} to {last} (framed: never change)"
    axes.set_xlabel(f"{about}; ● best of its row; hatched: missing or failed", size=8, color=FAINT)
    axes.set_title(f"{block.model} on {block.data or 'unknown data'}", size=10, color=INK, loc="left")


NEVER, ADAPTING = "#d1495b", "#0072b2"
PANEL_IN, HEIGHT_IN = 5.2, 4.0


class TreeColumn(NamedTuple):
    """The accuracies of one tree."""

    label: str
    gain: Gain
    spread: Floats
    """Horizontal offset of each sequence, so that equal ones can be told apart."""
    noise: Noise | None
    """Noise of this scenario; None if it was recorded with one seed only."""


class TreePanel(NamedTuple):
    """The trees of one model."""

    model: str
    columns: list[TreeColumn]


def panels(trees: Sequence[Tree]) -> list[TreePanel]:
    """Return the panels to be drawn."""
    found = []
    for model, group in by_model(trees).items():
        noises = {scenario: noise(trees) for scenario, trees in by_scenario(group).items()}
        columns = [_column(gain(tree), noises[tree.scenario]) for tree in group]
        found.append(TreePanel(model, columns))
    return found


def _column(found: Gain, noise: Noise | None) -> TreeColumn:
    percent = found.start_s / found.budget_s
    seed = f"\nseed {found.seed}" if found.seed else ""
    spread = np.random.default_rng(0).uniform(-0.22, 0.22, len(found.adapting))
    return TreeColumn(f"{found.scenario}\nfrom {percent:.0%} on{seed}", found, spread, noise)


def adaptation_figure(trees: Sequence[Tree], drawn_by: str) -> Figure:
    """Draw a panel per model; `drawn_by` is the command that draws it."""
    found = panels(trees)
    if not found:
        raise InputError("no complete tree to draw; record one first: rota record config/record/quick.toml")
    widths = [max(PANEL_IN, 0.95 * len(panel.columns)) for panel in found]
    figure = new_page(
        "Does it pay to grow a network while it trains?",
        "all sequences of changes, by when there is room to grow",
        (f"figure: {drawn_by}", *origins(tree.provenance for tree in trees)),
        width_in=sum(widths),
        height_in=HEIGHT_IN,
    )
    grid = figure.add_gridspec(1, len(found), width_ratios=widths)
    for at, panel in enumerate(found):
        _draw(figure.add_subplot(grid[0, at]), panel, first=at == 0)
    return figure


def _draw(axes: Axes, panel: TreePanel, *, first: bool) -> None:
    for at, column in enumerate(panel.columns):
        found = column.gain
        axes.plot(at + column.spread, found.adapting, ".", color=ADAPTING, alpha=0.45, markersize=5)
        axes.plot([at - 0.3, at + 0.3], [found.mean] * 2, color=ADAPTING, linewidth=2)
        if column.noise:
            axes.errorbar(at, found.never, column.noise.whole, color=NEVER, capsize=4, linewidth=1.2)
        axes.plot(at, found.never, "D", color=NEVER, markersize=6, markeredgecolor="white")
    axes.plot([], [], ".", color=ADAPTING, label="changes something")
    axes.plot([], [], color=ADAPTING, linewidth=2, label="their mean")
    noisy = any(column.noise for column in panel.columns)
    label = "changes nothing" + (", ± another seed where there is one" if noisy else "")
    axes.plot([], [], "D", color=NEVER, label=label)
    axes.set_xticks(range(len(panel.columns)), [column.label for column in panel.columns])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title(_title(panel), loc="left", size=10, color=INK)
    if first:
        axes.set_ylabel("validation accuracy at the end of the budget")
    plain(axes, grid="y")
    axes.tick_params(axis="x", labelsize=8)
    axes.legend(fontsize=8, frameon=False, labelcolor=FAINT)


def _title(panel: TreePanel) -> str:
    better = sum(column.gain.mean > column.gain.never for column in panel.columns)
    return f"{panel.model}: adapting is better on average in {better} of {len(panel.columns)} trees"
