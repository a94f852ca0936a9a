"""Learned agents as figures see them: what they learned, stage by stage, and how that went; no weights."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np

from rota.config.bind import facts
from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.core.facts import parsed
from rota.learning.history import FILE as HISTORY
from rota.learning.history import Row, read_history
from rota.learning.placement.agents import is_placement_agent

FACTS = "agent.json"
SCENARIOS = ("early", "early-middle", "middle", "middle-late", "late")
"""Those of the original work, in order of time."""
AGAIN = "learn it again: rota learn"


class Stage(NamedTuple):
    """What an agent learned before the next stage."""

    trees: tuple[str, ...]
    """`convnet2/early` …"""
    episodes: int
    temperature: float

    def said(self, *, models: bool) -> str:
        """`early`, `early + late`, or how many there are; `models` says whether to name theirs."""
        if len(self.trees) > 2:
            of = (
                f" of {', '.join(dict.fromkeys(tree.split('/')[0] for tree in self.trees))}" if models else ""
            )
            return f"{len(self.trees)} scenarios{of}"
        return " + ".join(self.trees if models else (tree.split("/")[-1] for tree in self.trees))


@dataclass(frozen=True, slots=True)
class Learned:
    """One agent."""

    folder: Path
    network: str
    seed: int
    stages: tuple[Stage, ...]
    started_from: str
    """The folder of another agent; empty if it began with fresh weights."""
    command: str
    history: tuple[Row, ...]

    @property
    def name(self) -> str:
        """The same for agents that differ in their seed only."""
        return without_seed(str(self.folder), self.seed)

    def of_stage(self, stage: int) -> list[Row]:
        """How one stage went."""
        return [row for row in self.history if row.stage == stage]


def read_learned(folder: Path) -> Learned:
    """An agent, and how it learned."""
    path = folder / FACTS
    try:
        read = parsed(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {AGAIN}") from None
    found = facts(_Facts, read, path, AGAIN, others=True)
    about = facts(_About, found.about, path, AGAIN, others=True)
    stages = [facts(_Stage, stage, path, AGAIN, others=True) for stage in about.stages]
    return Learned(
        folder,
        found.network,
        about.seed,
        tuple(Stage(each.trees, each.episodes, each.temperature) for each in stages),
        about.started_from,
        facts(Made, found.provenance, path, AGAIN, others=True).command,
        tuple(read_history(folder)),
    )


@dataclass(frozen=True, slots=True)
class Made:
    """What the file of an agent says of where it comes from, as far as figures say it."""

    command: str


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the file of an agent says."""

    network: str
    about: dict[str, object]
    provenance: dict[str, object]


@dataclass(frozen=True, slots=True)
class _About:
    """What it says of how the agent was learned."""

    seed: int
    stages: tuple[dict[str, object], ...]
    started_from: str


@dataclass(frozen=True, slots=True)
class _Stage:
    trees: tuple[str, ...]
    episodes: int
    temperature: float


def agents_in(folder: Path) -> list[Learned]:
    """All complete agents that change networks, in a folder and those in it, that say how they learned."""
    folders = [path.parent for path in sorted(folder.rglob(FACTS)) if (path.parent / HISTORY).is_file()]
    return [read_learned(each) for each in folders if not is_placement_agent(each)]


def alike(agents: Iterable[Learned]) -> list[list[Learned]]:
    """Agents that differ in their seed only are together, by seed."""
    groups: dict[str, list[Learned]] = {}
    for agent in agents:
        groups.setdefault(agent.name, []).append(agent)
    return [sorted(group, key=lambda agent: agent.seed) for group in groups.values()]


def several_models(agents: Iterable[Learned]) -> bool:
    """Whether scenarios must be named with their model."""
    trees = (tree for agent in agents for stage in agent.stages for tree in stage.trees)
    return len({tree.split("/")[0] for tree in trees}) > 1


def without_seed(folder: str, seed: object) -> str:
    """The folder that an agent shares with those of other seeds."""
    path = PurePath(folder)
    return str(path.parent if path.name == f"seed{seed}" else path)


def rolling(episodes: Sequence[int], values: Sequence[float], window: int) -> tuple[Floats, Floats]:
    """Means over the last `window` episodes, at least one, from when there were so many; where, and what."""
    window = max(1, window)
    ends, found = np.array(episodes, float), np.array(values, float)
    lengths = np.diff(ends, prepend=0.0)
    sums, drawn = np.cumsum(found * lengths), np.cumsum(lengths)
    first = np.searchsorted(ends, ends - window, side="right")  # whose end is within the window
    before, drawn_before = np.r_[0.0, sums][first], np.r_[0.0, drawn][first]
    whole = ends >= min(window, ends[-1])
    return ends[whole], ((sums - before) / (drawn - drawn_before))[whole]


def in_time(scenarios: Iterable[str]) -> list[str]:
    """Each once, in order of time; those with names of their own after the others, as they come."""
    found = dict.fromkeys(scenarios)
    known = {name: at for at, name in enumerate(SCENARIOS)}
    return sorted(found, key=lambda name: known.get(name, len(known)))


def percent(value: float, position: object = None) -> str:
    """`62.5%`, as axes write it: with no more digits than it takes."""
    return f"{100 * value:.4g}%"
