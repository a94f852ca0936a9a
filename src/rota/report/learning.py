"""How agents learned: curves of those that change networks, and of those that place trials."""

from collections.abc import Sequence
from statistics import median

import numpy as np

from rota.figures import learned_objective, placement_learning
from rota.figures.durations import said
from rota.figures.learned import Learned
from rota.figures.learned_objective import Panel, panels
from rota.figures.placement_learning import PlacementLearned
from rota.learning.placement.goal import time_to
from rota.learning.placement.outcome import AGENT
from rota.report import looks
from rota.report.blocks import Axis, Block, Glance, Line, Section, chart
from rota.report.compact import number, rounded, thinned

POINTS, FAINT_POINTS = 300, 200


def learning_section(at: int, name: str, agents: Sequence[Learned]) -> Section:
    """Of agents that change networks."""
    found = panels(agents)
    count = "one agent" if len(agents) == 1 else f"{len(agents)} agents, a colour per seed"
    episodes = sum(stage.episodes for agent in agents for stage in agent.stages)
    return Section(
        id=f"learning-{at}",
        kind="learning",
        title=f"Learning when and where to grow: {name}",
        about=f"{count}; {episodes:,} episodes in all; strong lines are rolling means",
        glance=glance(found, len(agents)),
        blocks=[block for panel in found for block in curves(panel)],
        commands=tuple(dict.fromkeys(agent.command for agent in agents)),
    )


def glance(found: Sequence[Panel], count: int) -> Glance:
    """From what to what the accuracy rose, on average over all agents."""
    smooth = [track.accuracy.smooth for panel in found for track in panel.tracks]
    ends = [(each[~np.isnan(each)][0], each[~np.isnan(each)][-1]) for each in smooth]
    first, last = (float(np.mean(each)) for each in zip(*ends, strict=True))
    rose = "rises" if last > first else "goes"
    who = "the agent" if count == 1 else f"{count} agents"
    return Glance(who, looks.agent(0), f"learned: the accuracy drawn {rose} from {first:.1%} to {last:.1%}")


def curves(panel: Panel) -> list[Block]:
    """The accuracy that is drawn, and the objective."""
    x = Axis("episodes")
    stages = "; ".join(f"from {stage.at:,} on: {stage.label}" for stage in panel.stages[1:])
    title = panel.title.replace("\n", ", ")
    return [
        chart(
            f"Accuracy: {title}", x, Axis("accuracy drawn", "share"), _lines(panel, "accuracy"), note=stages
        ),
        chart(f"Objective: {title}", x, Axis("objective"), _lines(panel, "objective"), note=stages),
    ]


def _lines(panel: Panel, measure: str) -> list[Line]:
    lines = []
    for at, track in enumerate(panel.tracks):
        found: learned_objective.Line = getattr(track, measure)
        lines += line_of(f"seed {track.seed}", looks.agent(at), found)
    return lines


def line_of(name: str, colour: looks.Colour, line: learned_objective.Line) -> list[Line]:
    """All that was measured, faintly, and its rolling mean."""
    kept, smooth = thinned(len(line.values), FAINT_POINTS), thinned(len(line.smooth), POINTS)
    return [
        Line(name, colour, rounded(line.episodes[kept]), rounded(line.values[kept], 4), faint=True),
        Line(name, colour, rounded(line.smooth_episodes[smooth]), rounded(line.smooth[smooth])),
    ]


def placement_section(at: int, agent: PlacementLearned) -> Section:
    """Of an agent that places trials."""
    drawn = placement_learning.learning(agent.rows)
    decisions = sum(row.decisions for row in agent.rows)
    usual = median(row.ratio for row in agent.rows)  # cases differ more than what is learned makes of them
    colour = looks.allocation(AGENT)
    says = (
        f"learned to place trials from {decisions:,} decisions; meanwhile populations took "
        f"{number(usual, 4)} times the lower bound (median)"
    )
    return Section(
        id=f"placement-{at}",
        kind="learning",
        title=f"Learning to place trials: {agent.folder.name}",
        about=f"{len(agent.rows):,} updates, {decisions:,} decisions, {said(agent.rows[-1].seconds)}",
        glance=Glance(AGENT, colour, says),
        blocks=[
            chart(
                "How long populations take while it learns",
                Axis("updates"),
                Axis(f"{time_to(agent.goal)} ÷ lower bound"),
                line_of(AGENT, colour, drawn.ratio),
                note="Populations are drawn anew for each update, and differ; 1 is perfect.",
            ),
            chart(
                "How unsure it is",
                Axis("updates"),
                Axis("entropy (nats)"),
                line_of(AGENT, colour, drawn.entropy),
                note="0 if it always does the same.",
            ),
        ],
        commands=(agent.command,),
    )
