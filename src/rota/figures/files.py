"""The figures of what was recorded, learned and evaluated, as files; each is given when it is written."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from rota.core.atomic import written
from rota.figures.learned import agents_in
from rota.figures.learned_accuracy import accuracy_figures
from rota.figures.learned_objective import objective_figure
from rota.figures.learned_probabilities import probabilities_figures
from rota.figures.learned_transfer import panels, transfer_figure
from rota.figures.page import save
from rota.figures.recordings import figures
from rota.learning.outcome import FILE, Evaluation, read_evaluations
from rota.recordings.library import read_library

SCRATCH, TRANSFER = "scratch", "transfer"
"""The families that are compared."""


def draw_all(results: Path, out: Path, command: str) -> Iterator[Path]:
    """Whatever is there besides runs; `command` is the one that draws it."""
    if (results / "recordings").is_dir():
        yield from draw_recordings(results / "recordings", out / "recordings")
    if (results / "learn").is_dir():
        yield from draw_learned(results / "learn", out / "learn", command)
    for file in sorted((results / "evaluate").rglob(FILE)):
        evaluations, evaluated_by = read_evaluations(file.parent)
        place = out / "evaluate" / file.parent.relative_to(results / "evaluate")
        yield from draw_evaluations(evaluations, place, evaluated_by)


def draw_recordings(folder: Path, out: Path) -> Iterator[Path]:
    """What was recorded."""
    for name, verb, draw in figures(read_library(folder)):
        file = out / f"{name}.png"
        yield _drawn(draw(f"rota recordings {verb} {folder} --figure {file}"), file)


def draw_learned(folder: Path, out: Path, command: str) -> Iterator[Path]:
    """How agents learned: a sheet for each family, and what transfer does for them."""
    families = {each.name: agents_in(each) for each in sorted(folder.iterdir()) if each.is_dir()}
    for name, agents in families.items():
        if any(agent.history for agent in agents):
            yield _drawn(objective_figure(agents, str(folder / name), command), out / name / "objective.png")
    pair = families.get(SCRATCH, []), families.get(TRANSFER, [])
    if panels(*pair):
        yield _drawn(transfer_figure(*pair, command), out / TRANSFER / "jump-start.png")


def draw_evaluations(evaluations: Sequence[Evaluation], out: Path, command: str) -> Iterator[Path]:
    """How good agents are, and how sure; `command` is the one that evaluated them."""
    footer = (f"figure: {command} --figures {out}",)
    yield from _pages(accuracy_figures(evaluations, footer), out / "accuracy.png")
    yield from _pages(probabilities_figures(evaluations, footer), out / "probabilities.png")


def _pages(found: Iterable[Figure], file: Path) -> Iterator[Path]:
    """The second page has a 2 in its name."""
    for number, figure in enumerate(found, 1):
        yield _drawn(figure, file if number == 1 else file.with_stem(f"{file.stem}-{number}"))


def _drawn(figure: Figure, file: Path) -> Path:
    with written(file) as stream:
        save(figure, stream)
    return file
