"""A recorded tree as tables: an episode is a row of each.

There are as many rows as sequences. `states` says what is seen before each decision of a sequence, `steps`
what is done then, and `accuracies` what it leads to; so drawing a thousand episodes is one look-up.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.core.sight import Sight
from rota.learning.rebuilt import actions_of, seen_in
from rota.recordings.models import models
from rota.recordings.store import CONTENTS, entries
from rota.recordings.tree import SHAPE, Prefix, Tree, beginnings, in_order, read_tree, written_as

Places = NDArray[np.intp]
OTHERS = set(CONTENTS.values()) - {SHAPE}
"""Recordings that are passed by; what is too damaged to tell is not."""


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
    """Of each sequence; 0 if its training failed, NaN if it was never trained."""

    @property
    def name(self) -> str:
        """`convnet2/early`."""
        return name_of(self.tree)

    @property
    def label(self) -> str:
        """`convnet2/early seed 1`: other seeds of a tree have the same name."""
        return f"{self.name} seed {self.tree.seed}"

    @property
    def digest(self) -> str:
        """Equal for trees from which the same is learned, whatever they are called."""
        return tree_digest(self.tree)

    @property
    def trained(self) -> "Problem":
        """The same with nothing but the sequences that were trained."""
        rows = np.flatnonzero(~np.isnan(self.accuracies))
        sequences = tuple(self.sequences[row] for row in rows)
        return Problem(
            self.tree, self.sights, sequences, self.states[rows], self.steps[rows], self.accuracies[rows]
        )


def name_of(tree: Tree) -> str:
    """What it is called in configurations and tables."""
    return f"{tree.model.lower()}/{tree.scenario}"


def names(trees: Sequence[Tree]) -> list[str]:
    """What trees are called beside each other: `convnet2-digits/early` if some are of other data."""
    return [f"{model.lower()}/{tree.scenario}" for model, tree in zip(models(trees), trees, strict=True)]


def tree_digest(tree: Tree) -> str:
    """Equal for trees from which the same is learned."""
    facts = [tree.model, tree.data, tree.budget_s, tree.actions, tree.decisions]
    ends = [(made, points[-1].at_s, repr(points[-1].accuracy)) for made, points in tree.curves.items()]
    return hashlib.sha256(json.dumps([facts, ends]).encode()).hexdigest()[:16]


def origin_digest(tree: Tree) -> str:
    """Equal for a tree that is trained only as far as it is asked for, and what a recorder makes of it."""
    facts = [tree.details.get("asked"), tree.scenario, tree.start_s, tree.seed]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def is_among(tree: Tree, digests: Set[str]) -> bool:
    """Whether who has learned from trees of these digests, of either kind, has learned from this one."""
    return tree_digest(tree) in digests or origin_digest(tree) in digests


def problem_of(tree: Tree, *, partial: bool = False) -> Problem:
    """The tables of a tree, all of which must have been recorded, unless part of it will do."""
    if not partial:
        _check_whole(tree)
    ends = tree.accuracies()
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
    return Problem(
        tree,
        sights,
        sequences,
        np.array(states, np.intp),
        np.array(sequences, np.intp),
        np.array([_reached(ends[each]) if each in ends else math.nan for each in sequences]),
    )


def _reached(accuracy: float) -> float:
    return 0.0 if math.isnan(accuracy) else accuracy


def _check_whole(tree: Tree) -> None:
    whole = set(tree.sequences())
    ends = [written_as(each) for each in tree.all_sequences if each not in whole]
    if ends:
        which = ", ".join(ends[:8]) + (f" and {len(ends) - 8} more" if len(ends) > 8 else "")
        raise InputError(
            f"tree {tree.model} {tree.scenario} seed {tree.seed}: {len(ends)} of {len(tree.all_sequences)} "
            f"sequences are missing ({which}); record them first, or leave this tree out"
        )


def read_trees(paths: Iterable[Path]) -> list[Tree]:
    """All trees in these folders, by model, scenario and seed; copies count once, damage is an error."""
    folders = {folder.resolve(): folder for path in paths for folder in _tree_folders(path)}
    trees = map(read_tree, folders.values())
    return sorted(
        {(name_of(tree), tree.seed, tree_digest(tree)): tree for tree in trees}.values(), key=in_order
    )


def _tree_folders(path: Path) -> list[Path]:
    found = [entry for entry in entries(path) if entry.shape not in OTHERS]
    for entry in found:
        if entry.about is None:
            raise InputError(entry.problem)
    if not found:
        raise InputError(f"{path}: no tree recording in it; make some: rota record config/record/quick.toml")
    return [entry.folder for entry in found]
