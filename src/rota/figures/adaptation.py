"""Does it pay to change the network while it trains? Every sequence of changes against changing nothing."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.figures.colours import FAINT, INK
from rota.figures.page import new_page, origins, plain
from rota.recordings.gain import Gain, Noise, by_model, by_scenario, gain, noise
from rota.recordings.tree import Tree

NEVER, ADAPTING = "#d1495b", "#0072b2"
PANEL_IN, HEIGHT_IN = 5.2, 4.0


class Column(NamedTuple):
    """One tree."""

    label: str
    gain: Gain
    spread: Floats
    """Where in the column each sequence is drawn, so that equal ones can be told apart."""
    noise: Noise | None
    """Of this scenario; None if it was recorded from one seed only."""


class Panel(NamedTuple):
    """One model."""

    model: str
    columns: list[Column]


def panels(trees: Sequence[Tree]) -> list[Panel]:
    """What is to be drawn."""
    found = []
    for model, group in by_model(trees).items():
        noises = {scenario: noise(trees) for scenario, trees in by_scenario(group).items()}
        columns = [_column(gain(tree), noises[tree.scenario]) for tree in group]
        found.append(Panel(model, columns))
    return found


def _column(found: Gain, noise: Noise | None) -> Column:
    percent = found.start_s / found.budget_s
    seed = f"\nseed {found.seed}" if found.seed else ""
    spread = np.random.default_rng(0).uniform(-0.22, 0.22, len(found.adapting))
    return Column(f"{found.scenario}\nfrom {percent:.0%} on{seed}", found, spread, noise)


def adaptation_figure(trees: Sequence[Tree], drawn_by: str) -> Figure:
    """A panel per model; `drawn_by` is the command that draws it."""
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


def _draw(axes: Axes, panel: Panel, *, first: bool) -> None:
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


def _title(panel: Panel) -> str:
    better = sum(column.gain.mean > column.gain.never for column in panel.columns)
    return f"{panel.model}: adapting is better on average in {better} of {len(panel.columns)} trees"
