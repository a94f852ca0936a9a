"""Leave one out: learn from all trees but some, and see what the agent does there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rota.core.errors import ConfigError
from rota.learning.config import LearnConfig
from rota.learning.problem import name_of
from rota.learning.runs import Run, plan, wanted
from rota.recordings.tree import Tree

By = Literal["scenario", "model", "tree"]
"""What is left out: a scenario of all models, all of a model, or one scenario of one model."""


@dataclass(frozen=True, slots=True)
class Fold:
    """One that is left out."""

    name: str
    learned_from: tuple[Tree, ...]
    left_out: tuple[Tree, ...]
    runs: tuple[Run, ...]
    """One for each seed of the agent."""


def folds(config: LearnConfig, trees: Sequence[Tree], by: By, out: Path) -> list[Fold]:
    """Each is left out once."""
    trees = wanted(trees, config)
    keys = [_key(tree, by) for tree in trees]
    names = list(dict.fromkeys(keys))
    if len(names) < 2:
        raise ConfigError(f"--leave-out {by}: there is only {names[0]}; give recordings of two or more")
    found = []
    for name in names:
        known = tuple(tree for tree, key in zip(trees, keys, strict=True) if key != name)
        rest = tuple(tree for tree, key in zip(trees, keys, strict=True) if key == name)
        folder = out / f"without-{name.replace('/', '-')}"
        runs = plan(replace(config, stages=("*",), models=()), known, out, folder)
        found.append(Fold(name, known, rest, tuple(runs)))
    return found


def _key(tree: Tree, by: By) -> str:
    return {"scenario": tree.scenario, "model": tree.model.lower(), "tree": name_of(tree)}[by]
