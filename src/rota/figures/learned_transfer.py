"""Figure of transfer: learning that starts from another scenario, against learning from scratch."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.core.grouped import grouped
from rota.figures.learned import DrawnAgent, in_time, percent, rolling, several_models
from rota.figures.page import INK, footer, legend, new_page, plain

ACROSS = 3
WIDTH_IN, HEIGHT_IN = 4.6, 2.6
ALONE_IN = 8.0
WINDOW = 0.1
"""Window of a rolling mean, and of the start, as a share of the shortest stage on the target."""
GUTTER = 0.2
"""Share of the width left of the first episode, for the jump-start."""
JUMP = "#d1495b"
ARROW = {"arrowstyle": "->", "color": JUMP, "lw": 1.6, "shrinkA": 0, "shrinkB": 0}


class TransferCurve(NamedTuple):
    """The accuracy that agents draw on the target: a rolling mean, averaged over their seeds."""

    episodes: Floats
    accuracy: Floats
    temperature: float
    """Initial temperature; NaN from scratch."""
    jump: float
    """Accuracy of its first point above that of learning from scratch."""


class TransferPanel(NamedTuple):
    """One source and one target."""

    title: str
    window: int
    """Window of the rolling means, in episodes."""
    scratch: TransferCurve
    transfers: list[TransferCurve]
    """Transfers by temperature; the jump-start of the first is marked."""


Target = tuple[str, tuple[str, ...]]
"""A network, and the trees of the last stage."""


def panels(scratch: Sequence[DrawnAgent], transfers: Sequence[DrawnAgent]) -> list[TransferPanel]:
    """Return a panel for every source and target that was also learned from scratch."""
    new = (agent for agent in scratch if len(agent.stages) == 1 and not agent.started_from)
    alone = grouped((_target(agent), agent) for agent in new)
    models = several_models([*scratch, *transfers])
    known = ((_target(agent), source(agent, models=models), agent) for agent in transfers)
    ways = grouped(((target, before), agent) for target, before, agent in known if target in alone and before)
    order = in_time(_name(target) for target in alone)
    keys = sorted(ways, key=lambda key: (order.index(_name(key[0])), key))
    return [_panel(f"{key[1]} → {_stage(alone[key[0]], models)}", alone[key[0]], ways[key]) for key in keys]


def _target(agent: DrawnAgent) -> Target:
    return agent.network, agent.stages[-1].trees


def _name(target: Target) -> str:
    return target[1][0].split("/")[-1]


def _stage(agents: Sequence[DrawnAgent], models: bool) -> str:
    return agents[0].stages[-1].said(models=models)


def source(agent: DrawnAgent, *, models: bool = False) -> str:
    """Return what an agent learned before its last stage, `early → late`; empty if nothing."""
    before = [PurePath(agent.started_from).name] if agent.started_from else []
    return " → ".join([*before, *(stage.said(models=models) for stage in agent.stages[:-1])])


def _panel(title: str, scratch: Sequence[DrawnAgent], transfers: Sequence[DrawnAgent]) -> TransferPanel:
    window = max(1, round(WINDOW * min(agent.stages[-1].episodes for agent in (*scratch, *transfers))))
    base = _curve(scratch, window, np.nan, 0.0)
    in_order = sorted(transfers, key=lambda agent: agent.stages[-1].temperature)
    by_temperature = grouped((agent.stages[-1].temperature, agent) for agent in in_order)
    start = float(base.accuracy[0])
    curves = [_curve(group, window, each, start) for each, group in by_temperature.items()]
    return TransferPanel(title, window, base._replace(jump=0.0), curves)


def _curve(agents: Sequence[DrawnAgent], window: int, temperature: float, start: float) -> TransferCurve:
    """Return the mean over agents, at the episodes of the first."""
    lines = [_line(agent, window) for agent in agents]
    where = lines[0][0]
    mean = np.mean([np.interp(where, *line) for line in lines], axis=0)
    return TransferCurve(where, mean, temperature, float(mean[0]) - start)


def _line(agent: DrawnAgent, window: int) -> tuple[Floats, Floats]:
    rows = agent.of_stage(len(agent.stages) - 1)
    return rolling([row.episodes for row in rows], [row.accuracy for row in rows], window)


def transfer_figure(scratch: Sequence[DrawnAgent], transfers: Sequence[DrawnAgent], drawn_by: str) -> Figure:
    """Draw a panel per source and target; `drawn_by` is the command that draws it."""
    found = panels(scratch, transfers)
    if not found:
        raise InputError("no transfer to a scenario that was also learned from scratch; learn both first")
    across = min(ACROSS, len(found))
    down = -(-len(found) // across)
    figure = new_page(
        "Does it help to have learned another scenario before?",
        _subject(scratch, transfers),
        footer(drawn_by, list(dict.fromkeys(agent.command for agent in (*scratch, *transfers)))),
        width_in=max(ALONE_IN, WIDTH_IN * across),
        height_in=HEIGHT_IN * down,
    )
    for at, panel in enumerate(found):
        axes = figure.add_subplot(down, across, at + 1)
        _draw(axes, panel, first=at % across == 0, last=at + across >= len(found))
    return figure


def _subject(scratch: Sequence[DrawnAgent], transfers: Sequence[DrawnAgent]) -> str:
    seeds = len({agent.seed for agent in (*scratch, *transfers)})
    means = f"means of {seeds} agents" if seeds > 1 else "one agent each"
    return f"accuracy of the episodes drawn on the target, by the temperature of the first draws; {means}"


def _draw(axes: Axes, panel: TransferPanel, *, first: bool, last: bool) -> None:
    end = max(float(curve.episodes[-1]) for curve in panel.transfers)
    shades = colormaps["plasma"](np.linspace(0.05, 0.8, len(panel.transfers)))
    axes.plot(panel.scratch.episodes, panel.scratch.accuracy, color=INK, linewidth=2.2, label="from scratch")
    for curve, shade in zip(panel.transfers, shades, strict=True):
        label = f"{curve.temperature:g}: {said(curve.jump)}"
        axes.plot(curve.episodes, curve.accuracy, color=shade, linewidth=1.4, label=label)
    axes.set_title(panel.title, loc="left", size=9.5, color=INK)
    plain(axes, grid="y")
    _see(axes, panel, end)
    _mark(axes, panel, end)
    if first:
        axes.set_ylabel(f"accuracy, mean of {panel.window:,} episodes", size=8)
    if last:
        axes.set_xlabel("episodes on the target", size=8)
    legend(
        axes, "temperature: jump-start\n(points of accuracy)", bbox_to_anchor=(1.0, 1.03), handlelength=1.4,
        fontsize=7.5, title_fontsize=7.5,
    )  # fmt: skip


def _see(axes: Axes, panel: TransferPanel, end: float) -> None:
    """Set limits to the transfers, with room on the left for the jump-start."""
    values = [curve.accuracy[curve.episodes <= end] for curve in (panel.scratch, *panel.transfers)]
    low, high = float(np.concatenate(values).min()), float(np.concatenate(values).max())
    room = 0.08 * (high - low) or 0.01
    axes.set_ylim(low - room, high + room)
    axes.set_xticks([tick for tick in MaxNLocator(4).tick_values(0, end) if 0 <= tick <= end])
    axes.set_xlim(-GUTTER * end, 1.02 * end)
    axes.tick_params(labelsize=8)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(percent)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _mark(axes: Axes, panel: TransferPanel, end: float) -> None:
    """Draw an arrow from the first point from scratch to that of the transfer, with its length."""
    start, jump = float(panel.scratch.accuracy[0]), panel.transfers[0].jump
    at = -0.02 * end
    axes.annotate("", (at, start + jump), (at, start), arrowprops=ARROW)
    axes.plot([at, panel.window], [start] * 2, color=JUMP, linewidth=0.7, linestyle=(0, (2, 2)))
    axes.plot([at, panel.window], [start + jump] * 2, color=JUMP, linewidth=0.7, linestyle=(0, (2, 2)))
    axes.text(
        2.2 * at, start + jump / 2, said(jump), size=8, weight="bold", color=JUMP, ha="right", va="center"
    )


def said(jump: float) -> str:
    """Return a jump-start in percentage points."""
    return f"{100 * jump:+.1f}"
