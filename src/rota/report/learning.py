"""Sections of a report about learning and decisions of agents."""

from collections.abc import Sequence
from pathlib import Path, PurePath
from statistics import median

import numpy as np

from rota.core.arrays import Floats
from rota.figures import learned_objective, placement
from rota.figures.learned import DrawnAgent
from rota.figures.learned_objective import ObjectivePanel, ProbabilityStrip, panels, strips
from rota.figures.page import said
from rota.figures.placement import PlacementLearned
from rota.learning.outcome import Evaluation, EvaluationRow
from rota.learning.placement.cases import time_to
from rota.learning.placement.outcome import AGENT, SHUFFLED, PlacementComparison, against_best
from rota.recordings.library import models
from rota.report import blocks, verdict
from rota.report.blocks import Block, ChartAxis, ChartLine, Glance, Head, Section, TableCell, chart, table
from rota.report.timelines import number, rounded, thinned

UNSEEN = " (unseen)"


def evaluation_section(at: int, evaluations: Sequence[Evaluation], command: str, folder: Path) -> Section:
    """Return the section of evaluations of agents that change networks."""
    rows = [row for each in evaluations for row in each.rows]
    count = "one agent" if len(evaluations) == 1 else f"{len(evaluations)} agents"
    return Section(
        id=f"evaluation-{at}",
        kind="decisions of agents",
        title=f"What agents decide: {folder.name}",
        about=f"{count} in {len(rows) // len(evaluations)} recorded scenarios, in each of which every "
        "sequence of decisions was trained to its end",
        glance=decisions_glance(rows, count=len(evaluations)),
        blocks=[scenarios(evaluations), *map(heat, strips(evaluations))],
        commands=(command,),
    )


def decisions_glance(rows: Sequence[EvaluationRow], count: int) -> Glance:
    """Return how often agents found the best sequence, and their mean headroom."""
    first = sum(row.agent.rank == 1 for row in rows)
    headroom = sum(row.agent.headroom for row in rows) / len(rows)
    says = f"found the best sequence in {first} of {len(rows)} scenarios"
    if count > 1:
        says = f"found the best sequence in {first} of {len(rows)} cases"
    others = f"headroom {headroom:.2f} on average (0: the mean of all sequences, 1: the best)"
    return Glance("the agent" if count == 1 else f"{count} agents", blocks.agent(0), says, others)


def scenarios(evaluations: Sequence[Evaluation]) -> Block:
    """Return a table with a line per scenario and agent, with baselines."""
    heads = [
        Head("scenario"),
        Head("agent"),
        Head("rank", "Of the agent's sequence among all; 1 is the best", "least"),
        Head("headroom", "0: as good as the mean of all sequences; 1: as good as the best", "most"),
        Head("accuracy", "That its network reaches in the end"),
        Head("never", "If the network is left as it is"),
        Head("random", "The mean of ten sequences that were drawn"),
        Head("fixed", "The one sequence that is best on average where the agent has learned"),
        Head("oracle", "The best of all sequences"),
        Head("what it does", "Decision by decision"),
    ]
    found = [(row, PurePath(each.agent).name) for each in evaluations for row in each.rows]
    called = models([row.agent for row, _ in found])
    rows = [_scenario(row, model, by) for model, (row, by) in zip(called, found, strict=True)]
    if len(evaluations) == 1:
        heads, rows = [heads[0], *heads[2:]], [[row[0], *row[2:]] for row in rows]
    return table("Scenario by scenario", heads, rows, [])


def _scenario(row: EvaluationRow, model: str, by: str) -> list[TableCell]:
    agent, others, seen = row
    seed = f", seed {agent.seed}" if agent.seed else ""
    name = f"{model} {agent.scenario}{seed}{'' if seen else UNSEEN}"
    return [
        TableCell(name, name),
        TableCell(by, by),
        TableCell(agent.rank, f"{agent.rank} of {agent.of}"),
        TableCell(agent.headroom, f"{agent.headroom:.2f}"),
        *map(_share, (agent.accuracy, others.never, others.random, others.fixed, others.oracle)),
        TableCell(", ".join(agent.changes), ", ".join(agent.changes)),
    ]


def _share(value: float | None) -> TableCell:
    return TableCell(value, "–" if value is None else f"{value:.2%}")


def heat(strip: ProbabilityStrip) -> Block:
    """Return the probability of each action at each decision."""
    return {
        "type": "heat",
        "title": f"How sure the agent is: {strip.title}",
        "note": "Probability of each action at each decision, in percent; framed: what it does.",
        "actions": strip.actions,
        "maps": [
            {
                "label": cell.label,
                "probabilities": cell.probabilities.round(3).tolist(),
                "chosen": list(cell.chosen),
                "rank": cell.rank,
                "of": cell.of,
            }
            for cell in strip.cells
        ],
    }


def placement_comparison_section(at: int, found: PlacementComparison, command: str, folder: Path) -> Section:
    """Return the section of an agent that places trials, compared with the rules."""
    ratios = [float(found.ratios(name).mean()) for name in found.names]
    standings = verdict.Standings(found.names, ratios)
    best = found.names[standings.best]
    bars = verdict.bars(standings, list(map(blocks.allocation, found.names)), "{:.3f}".format)
    says = f"takes {min(ratios):.3f} times as long as the lower bound, on average"
    return Section(
        id=f"comparison-{at}",
        kind="an agent that places trials",
        title=f"Placing trials, the agent and the rules: {folder.name}",
        about=f"{against_best(found)}.",
        glance=Glance(best, blocks.allocation(best), says, verdict.others(standings), bars, won=True),
        blocks=[placements(found)],
        commands=(command,),
    )


def placements(found: PlacementComparison) -> Block:
    """Return a table with a line per allocation, a column per dispatch cost."""
    costs, measured = found.dispatches, time_to(found.goal).capitalize()
    heads = [
        Head("allocation"),
        Head("all", f"{measured} by lower bound: the mean over all cases", "least"),
        *(
            Head(f"dispatch {cost:g}", f"Where a dispatch costs {cost:g} intervals", "least")
            for cost in costs
        ),
        Head("worst case", "", "least"),
        Head("takes longer than the agent", "On average over the cases"),
    ]
    rows = [
        _placement(
            name, [found.ratios(name), *(found.at(cost).ratios(name) for cost in costs)],
            None if name == AGENT else found.longer(name),
        )
        for name in found.names
    ]  # fmt: skip
    shuffled = [found.shuffled, *(found.at(cost).shuffled for cost in costs)]
    rows.append(_placement(SHUFFLED, shuffled, found.shuffling_costs))
    colours = [blocks.allocation(name) for name in found.names] + [["#999999", "#999999"]]
    return table(f"{measured} ÷ lower bound", heads, rows, colours)


def _placement(name: str, ratios: Sequence[Floats], more: float | None) -> list[TableCell]:
    worst = float(ratios[0].max())
    return [
        TableCell(name, name),
        *(TableCell(float(each.mean()), f"{each.mean():.3f}") for each in ratios),
        TableCell(worst, f"{worst:.3f}"),
        TableCell(more, "" if more is None else f"{round(more, 3) + 0.0:+.1%}"),
    ]


POINTS, FAINT_POINTS = 300, 200


def learning_section(at: int, name: str, agents: Sequence[DrawnAgent]) -> Section:
    """Return the section of the learning of agents that change networks."""
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


def glance(found: Sequence[ObjectivePanel], count: int) -> Glance:
    """Return the first and the last accuracy, on average over all agents."""
    smooth = [track.accuracy.smooth for panel in found for track in panel.tracks]
    ends = [(each[~np.isnan(each)][0], each[~np.isnan(each)][-1]) for each in smooth]
    first, last = (float(np.mean(each)) for each in zip(*ends, strict=True))
    rose = "rises" if last > first else "goes"
    name = "the agent" if count == 1 else f"{count} agents"
    return Glance(name, blocks.agent(0), f"learned: the accuracy drawn {rose} from {first:.1%} to {last:.1%}")


def curves(panel: ObjectivePanel) -> list[Block]:
    """Return charts of the accuracy that is drawn, and of the objective."""
    x = ChartAxis("episodes")
    stages = "; ".join(f"from {stage.at:,} on: {stage.label}" for stage in panel.stages[1:])
    title = panel.title.replace("\n", ", ")
    return [
        chart(
            f"Accuracy: {title}",
            x,
            ChartAxis("accuracy drawn", "share"),
            _lines(panel, "accuracy"),
            note=stages,
        ),
        chart(f"Objective: {title}", x, ChartAxis("objective"), _lines(panel, "objective"), note=stages),
    ]


def _lines(panel: ObjectivePanel, measure: str) -> list[ChartLine]:
    lines = []
    for at, track in enumerate(panel.tracks):
        found: learned_objective.ObjectiveLine = getattr(track, measure)
        lines += line_of(f"seed {track.seed}", blocks.agent(at), found)
    return lines


def line_of(name: str, colour: blocks.Colour, line: learned_objective.ObjectiveLine) -> list[ChartLine]:
    """Return all measurements as a faint line, and their rolling mean."""
    kept, smooth = thinned(len(line.values), FAINT_POINTS), thinned(len(line.smooth), POINTS)
    return [
        ChartLine(name, colour, rounded(line.episodes[kept]), rounded(line.values[kept], 4), faint=True),
        ChartLine(name, colour, rounded(line.smooth_episodes[smooth]), rounded(line.smooth[smooth])),
    ]


def placement_section(at: int, agent: PlacementLearned) -> Section:
    """Return the section of the learning of an agent that places trials."""
    drawn = placement.learning(agent.rows)
    decisions = sum(row.decisions for row in agent.rows)
    usual = median(row.ratio for row in agent.rows)  # cases differ more than what is learned makes of them
    colour = blocks.allocation(AGENT)
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
                ChartAxis("updates"),
                ChartAxis(f"{time_to(agent.goal)} ÷ lower bound"),
                line_of(AGENT, colour, drawn.ratio),
                note="Populations are drawn anew for each update, and differ; 1 is perfect.",
            ),
            chart(
                "How unsure it is",
                ChartAxis("updates"),
                ChartAxis("entropy (nats)"),
                line_of(AGENT, colour, drawn.entropy),
                note="0 if it always does the same.",
            ),
        ],
        commands=(agent.command,),
    )
