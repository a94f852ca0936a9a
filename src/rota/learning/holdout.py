"""Leave one out: learn from all trees but some, and see what the agent does there."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rota.core.errors import ConfigError
from rota.learning.agent import read_agent
from rota.learning.config import LearnConfig
from rota.learning.learner import begin
from rota.learning.problem import is_among, name_of, names
from rota.learning.runs import Run, check_trees, plan_from, wanted
from rota.recordings.tree import Tree

By = Literal["scenario", "model", "tree"]
"""What is left out: a scenario of all models, all of a model, or one scenario of one model."""


@dataclass(frozen=True, slots=True)
class Fold:
    """One that is left out."""

    name: str
    left_out: tuple[Tree, ...]
    runs: tuple[Run, ...]
    """One for each seed of the agent."""


def folds(config: LearnConfig, trees: Sequence[Tree], by: By, out: Path) -> list[Fold]:
    """Each is left out once, and must be such that an agent can be evaluated there."""
    if config.stages != ("*",):
        raise ConfigError(f"stages: --leave-out {by} learns from all others at once; leave stages out")
    trees = wanted(trees, config)
    _check_start(config, trees)
    keys = _keys(trees, by)
    if len(set(keys)) < 2:
        raise ConfigError(f"--leave-out {by}: there is only {keys[0]}; give recordings of two or more")
    found = []
    for name in dict.fromkeys(keys):
        known = [tree for tree, key in zip(trees, keys, strict=True) if key != name]
        rest = tuple(tree for tree, key in zip(trees, keys, strict=True) if key == name)
        runs = plan_from(config, known, out, out / f"without-{name.replace('/', '-')}")
        check_trees(begin(runs[0].last.chain[0]), rest)
        found.append(Fold(name, rest, tuple(runs)))
    return found


def _check_start(config: LearnConfig, trees: Sequence[Tree]) -> None:
    """An agent that knows a tree cannot be learned on from as if it did not."""
    known = read_agent(config.start).learned_from if config.start else frozenset()
    for tree in trees:
        if is_among(tree, known):
            raise ConfigError(
                f"start: {config.start} has learned from {name_of(tree)}, which is left out here; "
                "leave start out, or give an agent that has not"
            )


def _keys(trees: Sequence[Tree], by: By) -> list[str]:
    """Trees with the same are left out together."""
    if by == "tree":
        return names(trees)
    return [tree.scenario if by == "scenario" else tree.model.lower() for tree in trees]
