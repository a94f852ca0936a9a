"""What there is in folders: runs of jobs, populations, agents, and what was evaluated."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rota.core.errors import InputError
from rota.figures.learned import FACTS
from rota.learning.history import FILE as HISTORY
from rota.learning.outcome import FILE as EVALUATION
from rota.learning.placement.agents import is_placement_agent
from rota.learning.placement.outcome import is_comparison
from rota.results.folder import RunFolder
from rota.results.population.folder import PopulationFolder

MAKE = "make some first: rota simulate --out DIR, rota run, rota learn, or rota evaluate --out DIR"
INSIDE = {"tensorboard", "checkpoints", "stages"}
"""Folders in which there are no results."""


@dataclass(slots=True)
class Found:
    """Folders by what is in them, each once, in the order in which they were found."""

    jobs: list[Path] = field(default_factory=list)
    populations: list[Path] = field(default_factory=list)
    agents: list[Path] = field(default_factory=list)
    """That change networks, and say how they learned."""
    placement_agents: list[Path] = field(default_factory=list)
    """That place trials, and say how they learned."""
    evaluations: list[Path] = field(default_factory=list)
    """Of agents that change networks."""
    comparisons: list[Path] = field(default_factory=list)
    """Of agents that place trials with rules."""
    incomplete: list[Path] = field(default_factory=list)
    """Runs that were begun and are not complete."""

    @property
    def anything(self) -> bool:
        learned = self.agents, self.placement_agents, self.evaluations, self.comparisons
        return any((self.jobs, self.populations, *learned))


def find(paths: Iterable[Path]) -> Found:
    """Look into folders, and those in them; an error if one has nothing to show."""
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
    """Note what is in a folder and below; a run has no results below it."""
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
    """Whether a run is there."""
    population, jobs = PopulationFolder(path), RunFolder(path)
    if population.complete():
        found.populations.append(path)
    elif jobs.begun and jobs.complete():
        found.jobs.append(path)
    elif (jobs.begun or population.begun) and not (path / FACTS).is_file():
        found.incomplete.append(path)
    else:
        return False
    return True


def _look_at_learning(path: Path, found: Found) -> None:
    file = path / EVALUATION
    if file.is_file():
        (found.comparisons if is_comparison(file) else found.evaluations).append(path)
    if (path / FACTS).is_file() and (path / HISTORY).is_file():
        (found.placement_agents if is_placement_agent(path) else found.agents).append(path)
