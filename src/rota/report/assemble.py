"""Assemble a report: find results, build sections, write one HTML page."""

import base64
import hashlib
import html
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any

from rota import __version__
from rota.core.errors import InputError
from rota.core.grouped import grouped
from rota.figures.grid_runs import by_grid, large
from rota.figures.groups import groups
from rota.figures.learned import DrawnAgent, alike, read_learned
from rota.figures.placement import read_placement_learned
from rota.figures.population import population_groups
from rota.learning.files import EVALUATION, HISTORY, is_agent, kind_of_evaluation
from rota.learning.joint.evaluate import read_joint_comparison
from rota.learning.outcome import read_evaluations
from rota.learning.placement.outcome import read_comparison
from rota.policies.agents import KINDS, kind_of
from rota.report import verdict
from rota.report.blocks import Section
from rota.report.fidelity import fidelity_sections
from rota.report.grid import population_grid_section, trace_grid_section
from rota.report.jobs import jobs_section
from rota.report.joint import joint_comparison_section
from rota.report.learning import (
    evaluation_section,
    learning_section,
    placement_comparison_section,
    placement_section,
)
from rota.report.populations import population_section
from rota.results.folder import PopulationFolder, RunFolder
from rota.results.population.run import read_population
from rota.results.run import read_head, read_run

MAKE = "make some first: rota simulate --out DIR, rota run, rota learn, or rota evaluate --out DIR"
INSIDE = {"tensorboard", "checkpoints", "stages"}
"""Folders without results."""


@dataclass(slots=True)
class Found:
    """Folders by kind of result, each once, in the order in which they were found."""

    jobs: list[Path] = field(default_factory=list)
    populations: list[Path] = field(default_factory=list)
    agents: dict[str, list[Path]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    """Agents with a history, by kind."""
    evaluations: dict[str, list[Path]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    """Evaluations of agents, by kind."""
    incomplete: list[Path] = field(default_factory=list)
    """Runs that were begun and are not complete."""

    @property
    def anything(self) -> bool:
        """Whether there is any complete result."""
        learned = *self.agents.values(), *self.evaluations.values()
        return any((self.jobs, self.populations, *learned))


def find(paths: Iterable[Path]) -> Found:
    """Search folders and those below them. Raises InputError if one has no results."""
    found, seen = Found(), set[Path]()
    for path in paths:
        if not path.is_dir():
            what = "is not a folder" if path.exists() else "is not there"
            raise InputError(f"{path}: {what}; give folders of results")
        here = Found()
        _look(path, here, set())
        if not here.anything:
            _refuse(path, here)
        _look(path, found, seen)
    return found


def _refuse(path: Path, here: Found) -> None:
    if here.incomplete:
        raise InputError(f"{here.incomplete[0]}: not a complete run; let it end, or make it again")
    raise InputError(f"{path}: no results in it; {MAKE}")


def _look(path: Path, found: Found, seen: set[Path]) -> None:
    """Add the results in a folder and below it; a run has no results below it."""
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    _look_at_learning(path, found)
    if _look_at_run(path, found):
        return
    try:
        below = sorted(entry.name for entry in os.scandir(path) if entry.is_dir())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    for name in below:
        if name not in INSIDE and not name.startswith("."):
            _look(path / name, found, seen)


def _look_at_run(path: Path, found: Found) -> bool:
    """Add a run; returns whether there is one."""
    population, jobs = PopulationFolder(path), RunFolder(path)
    if population.complete():
        found.populations.append(path)
    elif jobs.begun and jobs.complete():
        found.jobs.append(path)
    elif (jobs.begun or population.begun) and not is_agent(path):
        found.incomplete.append(path)
    else:
        return False
    return True


def _look_at_learning(path: Path, found: Found) -> None:
    file = path / EVALUATION
    if file.is_file():
        found.evaluations[_known(kind_of_evaluation(file))].append(path)
    if is_agent(path) and (path / HISTORY).is_file():
        found.agents[_known(kind_of(path))].append(path)


def _known(kind: str | None) -> str:
    """Return a kind of agent; the first if there is none such, whose reader says what is wrong."""
    return kind if kind in KINDS else next(iter(KINDS))


Tick = Callable[[str], object]


def sections(found: Found, tick: Tick = lambda name: None) -> Iterator[Section]:
    """Yield the sections, a single one for each large grid; `tick` gets the name of each run in progress."""
    heads = [read_head(path) for path in found.jobs]
    populations = [read_population(path) for path in found.populations]
    for number, runs in enumerate(by_grid(heads)):
        yield trace_grid_section(number, runs)
    for number, repeated in enumerate(by_grid(populations)):
        yield population_grid_section(number, repeated)
    left_out = {run.folder.path for run in large(heads)} | {run.folder.path for run in large(populations)}
    jobs = [read_run(path) for path in found.jobs if path not in left_out]
    populations = [run for run in populations if run.folder.path not in left_out]
    for number, group in enumerate(groups(jobs)):
        yield jobs_section(number, group, tick)
    for at, each in enumerate(population_groups(populations)):
        yield population_section(at, each, tick)
    yield from fidelity_sections([*jobs, *populations])
    for kind, evaluated in EVALUATED.items():
        yield from (evaluated(number, path) for number, path in enumerate(found.evaluations[kind]))
    for kind, learned in LEARNED.items():
        yield from learned(found.agents[kind])


def families(agents: Sequence[DrawnAgent]) -> list[tuple[str, list[DrawnAgent]]]:
    """Return agents by parent folder, with its name; a single one has the name of its own folder."""
    found = grouped((str(PurePath(group[0].name).parent), group) for group in alike(agents))
    return [
        (
            PurePath(folder if len(groups) > 1 else groups[0][0].name).name,
            [a for group in groups for a in group],
        )
        for folder, groups in found.items()
    ]


def _learned(paths: Sequence[Path]) -> Iterator[Section]:
    agents = [agent for path in paths if (agent := read_learned(path)).history]
    for number, (name, family) in enumerate(families(agents)):
        yield learning_section(number, name, family)


def _placement_learned(paths: Sequence[Path]) -> Iterator[Section]:
    for number, path in enumerate(paths):
        if learned := read_placement_learned(path):
            yield placement_section(number, learned)


EVALUATED: dict[str, Callable[[int, Path], Section]] = {
    "adaptation": lambda number, path: evaluation_section(number, *read_evaluations(path), path),
    "placement": lambda number, path: placement_comparison_section(number, *read_comparison(path), path),
    "joint": lambda number, path: joint_comparison_section(number, *read_joint_comparison(path), path),
}
"""Kind of agents → section of an evaluation in a folder."""
LEARNED = {"adaptation": _learned, "placement": _placement_learned}
"""Kind of agents → sections of how those in several folders learned."""


SCRIPTS = (
    "format.js", "unpack.js", "table.js", "chart.js", "shares.js", "heat.js",
    "scene.js", "paint.js", "tell.js", "letters.js", "timeline.js", "page.js",
)  # fmt: skip
"""Parts of the one script, in this order."""


def page(title: str, command: str, sections: Sequence[Section]) -> str:
    """Return the whole page; its content security policy allows our script only, and no requests."""
    script = "\n".join(_part(name) for name in SCRIPTS)
    style = _part("page.css")
    values = {
        "TITLE": html.escape(title),
        "POLICY": (
            f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:"
        ),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": embedded(_data(title, command, sections)),
    }
    text = _part("page.html")
    return "".join(values.get(part, part) for part in text.split("@@"))


def embedded(data: Any) -> str:
    """Return JSON that cannot end the element it is in, whatever names it has."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _data(title: str, command: str, sections: Sequence[Section]) -> dict[str, Any]:
    return {
        "title": title,
        "command": command,
        "version": __version__,
        "lede": verdict.tally([section.glance.winner for section in sections if section.glance.won]),
        "sections": [section.record() for section in sections],
    }


def _part(name: str) -> str:
    return (files("rota.report") / "page" / name).read_text("utf-8")


def _digest(text: str) -> str:
    """Return the digest by which a browser trusts an element."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
