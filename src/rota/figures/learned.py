"""Learned agents as figures see them: what they learned, stage by stage, and how that went; no weights."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from rota.core.errors import InputError
from rota.core.table import Floats
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
        found = json.loads(path.read_text("utf-8"))
        about = found["about"]
        return Learned(
            folder,
            str(found["network"]),
            int(about["seed"]),
            tuple(map(_stage, about["stages"])),
            str(about["started_from"]),
            str(found["provenance"]["command"]),
            tuple(read_history(folder)),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: cannot be read ({error!r}); {AGAIN}") from None


def _stage(found: dict[str, Any]) -> Stage:
    return Stage(tuple(found["trees"]), int(found["episodes"]), float(found["temperature"]))


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
