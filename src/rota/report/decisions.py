"""What agents decide: where that ranks, what others would have reached, and how sure they are."""

from collections.abc import Sequence
from pathlib import Path, PurePath

from rota.core.arrays import Floats
from rota.figures.learned_probabilities import Strip, strips
from rota.learning.outcome import Evaluation, Row
from rota.learning.placement.goal import time_to
from rota.learning.placement.outcome import AGENT, Comparison
from rota.learning.placement.report import SHUFFLED, against_best
from rota.recordings.models import models
from rota.report import looks, verdict
from rota.report.blocks import Block, Cell, Glance, Head, Section, table

UNSEEN = " (unseen)"


def evaluation_section(at: int, evaluations: Sequence[Evaluation], command: str, folder: Path) -> Section:
    """Of agents that change networks."""
    rows = [row for each in evaluations for row in each.rows]
    count = "one agent" if len(evaluations) == 1 else f"{len(evaluations)} agents"
    return Section(
        id=f"evaluation-{at}",
        kind="decisions of agents",
        title=f"What agents decide: {folder.name}",
        about=f"{count} in {len(rows) // len(evaluations)} recorded scenarios, in each of which every "
        "sequence of decisions was trained to its end",
        glance=glance(rows, count=len(evaluations)),
        blocks=[scenarios(evaluations), *map(heat, strips(evaluations))],
        commands=(command,),
    )


def glance(rows: Sequence[Row], count: int) -> Glance:
    """How often it found the best sequence, and how far it is from that on average."""
    first = sum(row.agent.rank == 1 for row in rows)
    headroom = sum(row.agent.headroom for row in rows) / len(rows)
    says = f"found the best sequence in {first} of {len(rows)} scenarios"
    if count > 1:
        says = f"found the best sequence in {first} of {len(rows)} cases"
    others = f"headroom {headroom:.2f} on average (0: the mean of all sequences, 1: the best)"
    return Glance("the agent" if count == 1 else f"{count} agents", looks.agent(0), says, others)


def scenarios(evaluations: Sequence[Evaluation]) -> Block:
    """A line per scenario and agent: how good that is, and what others would have reached."""
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


def _scenario(row: Row, model: str, by: str) -> list[Cell]:
    agent, others, seen = row
    seed = f", seed {agent.seed}" if agent.seed else ""
    name = f"{model} {agent.scenario}{seed}{'' if seen else UNSEEN}"
    return [
        Cell(name, name),
        Cell(by, by),
        Cell(agent.rank, f"{agent.rank} of {agent.of}"),
        Cell(agent.headroom, f"{agent.headroom:.2f}"),
        *map(_share, (agent.accuracy, others.never, others.random, others.fixed, others.oracle)),
        Cell(", ".join(agent.changes), ", ".join(agent.changes)),
    ]


def _share(value: float | None) -> Cell:
    return Cell(value, "–" if value is None else f"{value:.2%}")


def heat(strip: Strip) -> Block:
    """The probability of each action at each decision."""
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


def placement_comparison_section(at: int, found: Comparison, command: str, folder: Path) -> Section:
    """Of an agent that places trials, beside the rules."""
    ratios = [float(found.ratios(name).mean()) for name in found.names]
    contest = verdict.Contest(found.names, ratios)
    best = found.names[contest.best]
    bars = [
        (found.names[i], looks.allocation(found.names[i]), ratios[i], f"{ratios[i]:.3f}")
        for i in contest.by_value
    ]
    says = f"takes {min(ratios):.3f} times as long as the lower bound, on average"
    return Section(
        id=f"comparison-{at}",
        kind="an agent that places trials",
        title=f"Placing trials, the agent and the rules: {folder.name}",
        about=f"{against_best(found)}.",
        glance=Glance(best, looks.allocation(best), says, verdict.others(contest), bars, won=True),
        blocks=[placements(found)],
        commands=(command,),
    )


def placements(found: Comparison) -> Block:
    """A line per allocation, a column per dispatch cost."""
    costs, measured = found.dispatches, time_to(found.goal).capitalize()
    heads = [
        Head("allocation"),
        Head("all", f"{measured} by lower bound: the mean over all cases", "least"),
        *(
            Head(f"dispatch {cost:g}", f"Where handing a list over costs {cost:g} intervals", "least")
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
    colours = [looks.allocation(name) for name in found.names] + [["#999999", "#999999"]]
    return table(f"{measured} ÷ lower bound", heads, rows, colours)


def _placement(name: str, ratios: Sequence[Floats], more: float | None) -> list[Cell]:
    worst = float(ratios[0].max())
    return [
        Cell(name, name),
        *(Cell(float(each.mean()), f"{each.mean():.3f}") for each in ratios),
        Cell(worst, f"{worst:.3f}"),
        Cell(more, "" if more is None else f"{round(more, 3) + 0.0:+.1%}"),
    ]
