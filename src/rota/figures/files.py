"""Draw figures of recordings, agents and evaluations to files; each file is yielded when it is written."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from rota.figures.joint import joint_figure
from rota.figures.learned import accuracy_figures, agents_in
from rota.figures.learned_objective import objective_figure, probabilities_figures
from rota.figures.learned_transfer import panels, transfer_figure
from rota.figures.page import PEN, Pen, footer
from rota.figures.placement import (
    placement_comparison_figure,
    placement_learning_figure,
    read_placement_learned,
)
from rota.figures.recordings import figures
from rota.figures.tune import sides_figure
from rota.learning.files import EVALUATION, agents_below, kind_of_evaluation
from rota.learning.joint.evaluate import JointComparison, read_joint_comparison
from rota.learning.outcome import Evaluation, read_evaluations
from rota.learning.placement.outcome import KIND as PLACEMENT
from rota.learning.placement.outcome import PlacementComparison, read_comparison
from rota.recordings.library import read_library
from rota.results.population.metrics import FILE as SIDES
from rota.results.population.metrics import Sides, read_sides

SCRATCH, TRANSFER = "scratch", "transfer"
"""Names of the families that are compared."""
AGAINST_TUNE = "compare-tune"
"""Name of the folder of that comparison, and of its figure."""


def draw_all(results: Path, out: Path, command: str, pen: Pen = PEN) -> Iterator[Path]:
    """Draw all results apart from runs; `command` is the one that draws them.

    Figures of recordings are always drawn at full resolution: they are kept in git.
    """
    if (results / "recordings").is_dir():
        fine = pen._replace(dots_per_in=PEN.dots_per_in)
        yield from draw_recordings(results / "recordings", out / "recordings", fine)
    if (results / "learn").is_dir():
        yield from draw_learned(results / "learn", out / "learn", command, pen)
    for file in sorted((results / "evaluate").rglob(EVALUATION)):
        where = out / "evaluate" / file.parent.relative_to(results / "evaluate")
        yield from EVALUATED.get(kind_of_evaluation(file) or "", _draw_evaluated)(file.parent, where, pen)
    if (results / AGAINST_TUNE / SIDES).is_file():
        yield from draw_sides(read_sides(results / AGAINST_TUNE), out, pen)


def _draw_evaluated(folder: Path, out: Path, pen: Pen) -> Iterator[Path]:
    evaluations, evaluated_by = read_evaluations(folder)
    yield from draw_evaluations(evaluations, out, evaluated_by, pen)


def _draw_compared(folder: Path, out: Path, pen: Pen) -> Iterator[Path]:
    found, evaluated_by = read_comparison(folder)
    yield from draw_comparison(found, out, evaluated_by, pen)


def _draw_joint(folder: Path, out: Path, pen: Pen) -> Iterator[Path]:
    found, evaluated_by = read_joint_comparison(folder)
    yield from draw_joint(found, out, evaluated_by, pen)


EVALUATED = {"adaptation": _draw_evaluated, "placement": _draw_compared, "joint": _draw_joint}
"""Kind of agents → function that draws an evaluation in a folder."""


def draw_recordings(folder: Path, out: Path, pen: Pen = PEN) -> Iterator[Path]:
    """Draw recordings."""
    for name, verb, draw in figures(read_library(folder)):
        file = out / f"{name}.png"
        yield from pen.draw(draw(f"rota recordings {verb} {folder} --figure {file}"), file)


def draw_learned(folder: Path, out: Path, command: str, pen: Pen = PEN) -> Iterator[Path]:
    """Draw how agents learned: a figure for each family, the effect of transfer, and placement agents."""
    families = {each.name: agents_in(each) for each in sorted(folder.iterdir()) if each.is_dir()}
    for name, agents in families.items():
        if any(agent.history for agent in agents):
            figure = objective_figure(agents, str(folder / name), command)
            yield from pen.draw(figure, out / name / "objective.png")
    pair = families.get(SCRATCH, []), families.get(TRANSFER, [])
    if panels(*pair):
        yield from pen.draw(transfer_figure(*pair, command), out / TRANSFER / "jump-start.png")
    for agent in agents_below(folder, PLACEMENT):
        yield from _draw_placement_agent(agent, out / agent.relative_to(folder), command, pen)


def _draw_placement_agent(agent: Path, out: Path, command: str, pen: Pen) -> Iterator[Path]:
    """Draw how a placement agent learned, and its comparison with rules, as far as they are there."""
    if learned := read_placement_learned(agent):
        yield from pen.draw(placement_learning_figure(learned, command), out / "learning.png")
    if kind_of_evaluation(agent / EVALUATION) == PLACEMENT:
        found, tried_by = read_comparison(agent)
        figure = placement_comparison_figure(found, footer(command, [tried_by]))
        yield from pen.draw(figure, out / "comparison.png")


def draw_evaluations(
    evaluations: Sequence[Evaluation], out: Path, command: str, pen: Pen = PEN
) -> Iterator[Path]:
    """Draw the accuracies and probabilities of agents; `command` is the one that evaluated them."""
    footer = (f"figure: {command} --figures {out}",)
    yield from _pages(accuracy_figures(evaluations, footer), out / "accuracy.png", pen)
    yield from _pages(probabilities_figures(evaluations, footer), out / "probabilities.png", pen)


def draw_comparison(found: PlacementComparison, out: Path, command: str, pen: Pen = PEN) -> Iterator[Path]:
    """Draw the comparison of a placement agent with rules; `command` is the one that compared them."""
    foot = (f"figure: {command} --figures {out}",)
    yield from pen.draw(placement_comparison_figure(found, foot), out / "comparison.png")


def draw_joint(found: JointComparison, out: Path, command: str, pen: Pen = PEN) -> Iterator[Path]:
    """Draw the comparison of a joint agent with rules; `command` is the one that compared them."""
    foot = (f"figure: {command} --figures {out}",)
    yield from pen.draw(joint_figure(found, foot), out / "comparison.png")


def draw_sides(sides: Sides, out: Path, pen: Pen = PEN) -> Iterator[Path]:
    """Draw the same population under rota and under Ray Tune."""
    yield from pen.draw(sides_figure(sides), out / f"{AGAINST_TUNE}.png")


def _pages(found: Iterable[Figure], file: Path, pen: Pen) -> Iterator[Path]:
    """Draw several pages; the second has a 2 in its name."""
    for number, figure in enumerate(found, 1):
        yield from pen.draw(figure, file if number == 1 else file.with_stem(f"{file.stem}-{number}"))
