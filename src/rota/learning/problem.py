"""A recorded tree as tables: an episode is a row of each.

There are as many rows as sequences. `states` says what is seen before each decision of a sequence, `steps`
what is done then, and `accuracies` what it leads to; so drawing a thousand episodes is one look-up.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.core.errors import InputError
from rota.core.sight import Sight
from rota.core.table import Floats
from rota.learning.rebuilt import actions_of, seen_in
from rota.recordings.folder import complete
from rota.recordings.store import entries
from rota.recordings.tree import SHAPE, Prefix, Tree, beginnings, read_tree, written_as

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One tree: what is seen, what can be done, and how well each sequence ends."""

    tree: Tree
    sights: tuple[Sight, ...]
    """One for each beginning of a sequence that a decision follows on."""
    sequences: tuple[Prefix, ...]
    states: Places
    """Sequence and decision → position in `sights`."""
    steps: Places
    """Sequence and decision → action."""
    accuracies: Floats
    """Of each sequence; 0 if its training failed."""

    @property
    def name(self) -> str:
        """`convnet2/early`."""
        return name_of(self.tree)

    @property
    def label(self) -> str:
        """`convnet2/early seed 1`: other seeds of a tree have the same name."""
        return f"{self.name} seed {self.tree.seed}"


def name_of(tree: Tree) -> str:
    """What it is called in configurations and tables."""
    return f"{tree.model.lower()}/{tree.scenario}"


def problem_of(tree: Tree) -> Problem:
    """The tables of a tree, all of which must have been recorded."""
    _check_whole(tree)
    seen, actions = seen_in(tree), actions_of(tree)
    places = {made: at for at, made in enumerate(seen)}
    left_s = {
        made: left
        for sequence in tree.all_sequences
        for made, left in zip(beginnings(sequence), tree.left_s(sequence), strict=False)
    }
    sights = tuple(
        Sight(structure, blocks, left_s[made], tree.budget_s, actions, made)
        for made, (structure, blocks) in seen.items()
    )
    sequences = tree.all_sequences
    states = [[places[made] for made in list(beginnings(each))[:-1]] for each in sequences]
    accuracies = [tree.accuracy(each) for each in sequences]
    return Problem(
        tree,
        sights,
        sequences,
        np.array(states, np.intp),
        np.array(sequences, np.intp),
        np.array([0.0 if math.isnan(each) else each for each in accuracies]),
    )


def _check_whole(tree: Tree) -> None:
    missing = tree.missing()
    if missing:
        ends = [written_as(each) for each in missing if len(each) == tree.decisions]
        which = ", ".join(ends[:8]) + (f" and {len(ends) - 8} more" if len(ends) > 8 else "")
        raise InputError(
            f"tree {tree.model} {tree.scenario} seed {tree.seed}: {len(ends)} of {len(tree.all_sequences)} "
            f"sequences are missing ({which}); record them first, or leave this tree out"
        )


def read_trees(paths: Iterable[Path]) -> list[Tree]:
    """All trees in these folders, by model, scenario and seed; anything damaged is an error."""
    found: dict[Path, Tree] = {}
    for path in paths:
        before = len(found)
        if complete(path):
            found[path.resolve()] = read_tree(path)
            continue
        for entry in entries(path):
            if entry.about is None and entry.shape == SHAPE:
                raise InputError(entry.problem)
            if entry.shape == SHAPE:
                found[entry.folder.resolve()] = read_tree(entry.folder)
        if len(found) == before:
            raise InputError(f"{path}: no tree recording in it; make some with: bash scripts/record.sh")
    return sorted(found.values(), key=_order)


def _order(tree: Tree) -> tuple[Any, ...]:
    return tree.model, tree.data, tree.start_s / tree.budget_s, tree.scenario, tree.seed


def describe_problems(problems: Sequence[Problem]) -> str:
    """`10 trees of convnet2, convnet3`."""
    models = ", ".join(dict.fromkeys(problem.tree.model for problem in problems))
    return f"{len(problems)} tree{'s' if len(problems) > 1 else ''} of {models}"
