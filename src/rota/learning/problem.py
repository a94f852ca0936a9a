"""Recorded trees as tables to learn from, and the structures of their networks."""

import hashlib
import json
import logging
import math
from collections.abc import Iterable, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.core.network import SHRINK, Change, Layer, Observation, Structure
from rota.recordings.library import CONTENTS, entries, models
from rota.recordings.tree import SHAPE, Prefix, Tree, beginnings, in_order, read_tree, written_as
from rota.training.data.catalogue import CATALOGUE
from rota.training.describe import with_blocks
from rota.training.models.registry import MODELS, build
from rota.training.net2net import NotGrowable, blocks, deepen, layer_in, widen

Places = NDArray[np.intp]
OTHERS = set(CONTENTS.values()) - {SHAPE}
"""Shapes of recordings that are skipped; one that is too damaged to tell is an error."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One tree as tables: observations, actions, and the accuracy of each sequence."""

    tree: Tree
    observations: tuple[Observation, ...]
    """An observation for each prefix that a decision follows."""
    sequences: tuple[Prefix, ...]
    states: Places
    """Position in `observations`, by sequence and decision."""
    steps: Places
    """Action, by sequence and decision."""
    accuracies: Floats
    """Accuracy of each sequence; 0 if its training failed, NaN if it was not trained."""

    @property
    def name(self) -> str:
        """The model and the scenario: `convnet2/early`."""
        return name_of(self.tree)

    @property
    def label(self) -> str:
        """The name with the seed of the recording: `convnet2/early seed 1`."""
        return f"{self.name} seed {self.tree.seed}"

    @property
    def digest(self) -> str:
        """A digest that is equal for trees that are the same to a learner."""
        return tree_digest(self.tree)

    @property
    def trained(self) -> "Problem":
        """The problem restricted to the sequences that were trained."""
        rows = np.flatnonzero(~np.isnan(self.accuracies))
        sequences = tuple(self.sequences[row] for row in rows)
        return Problem(
            self.tree,
            self.observations,
            sequences,
            self.states[rows],
            self.steps[rows],
            self.accuracies[rows],
        )


def name_of(tree: Tree) -> str:
    """Return the name of a tree in configurations and tables."""
    return f"{tree.model.lower()}/{tree.scenario}"


def names(trees: Sequence[Tree]) -> list[str]:
    """Return names that tell trees of several data sets apart: `convnet2-digits/early`."""
    return [f"{model.lower()}/{tree.scenario}" for model, tree in zip(models(trees), trees, strict=True)]


def tree_digest(tree: Tree) -> str:
    """Return a digest that is equal for trees that are the same to a learner."""
    facts = [tree.model, tree.data, tree.budget_s, tree.actions, tree.decisions]
    ends = [(made, points[-1].at_s, repr(points[-1].accuracy)) for made, points in tree.curves.items()]
    return hashlib.sha256(json.dumps([facts, ends]).encode()).hexdigest()[:16]


def origin_digest(tree: Tree) -> str:
    """Return a digest that is equal for a tree trained on demand and its recording."""
    facts = [tree.details.get("asked"), tree.scenario, tree.start_s, tree.seed]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def is_among(tree: Tree, digests: Set[str]) -> bool:
    """Whether a tree has one of these digests, of either kind."""
    return tree_digest(tree) in digests or origin_digest(tree) in digests


def problem_of(tree: Tree, *, partial: bool = False) -> Problem:
    """Return the tables of a tree. All of it must have been recorded, unless `partial`."""
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
    observations = tuple(
        Observation(structure, blocks, left_s[made], tree.budget_s, actions, made)
        for made, (structure, blocks) in seen.items()
    )
    sequences = tree.all_sequences
    states = [[places[made] for made in list(beginnings(each))[:-1]] for each in sequences]
    return Problem(
        tree,
        observations,
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
    """Read all trees in folders, by model, scenario and seed; duplicates count once, damage is an error."""
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


log = logging.getLogger(__name__)

Seen = tuple[Structure, tuple[tuple[int, ...], ...]]
"""A structure, and the layers of each block."""


def actions_of(tree: Tree) -> tuple[Change, ...]:
    """Return the possible changes at a decision of a recorded tree."""
    try:
        return tuple(map(Change.parse, tree.actions))
    except InputError as error:
        raise InputError(f"tree {tree.model} {tree.scenario}: {error}") from None


def seen_in(tree: Tree) -> dict[Prefix, Seen]:
    """Return the network before each decision, by prefix of actions."""
    asked = tree.details.get("asked") or {}
    size = asked.get("setup", {}).get("size")
    return _seen(tree.model, tree.data, size, actions_of(tree), tree.decisions)


@lru_cache(maxsize=32)
def _seen(
    model: str, data: str, size: int | None, actions: tuple[Change, ...], decisions: int
) -> dict[Prefix, Seen]:
    known = {name.replace("-", ""): name for name in MODELS}.get(model.lower().replace("-", ""))
    growth = {made: _growth(actions, made) for made in _prefixes(len(actions), decisions)}
    if known is None:
        log.warning("%s: not a model of rota's; each of its blocks is seen as one unknown layer", model)
        return {made: _stand_in(model, actions, grown) for made, grown in growth.items()}
    networks: dict[Prefix, nn.Module] = {(): _fresh(known, data, size)}
    for grown in growth.values():
        if grown not in networks:
            networks[grown] = _changed(networks[grown[:-1]], actions[grown[-1]], model)
    found = {grown: with_blocks(network) for grown, network in networks.items()}
    return {made: found[grown] for made, grown in growth.items()}


def _growth(actions: Sequence[Change], made: Prefix) -> Prefix:
    """Return the changes that remain: shrinking undoes the last growth, widening again does nothing."""
    grown: Prefix = ()
    for each in made:
        if actions[each] == SHRINK:
            grown = grown[:-1]
        elif actions[each].grows and not _is_so(actions[each], [actions[before] for before in grown]):
            grown = (*grown, each)
    return grown


def _is_so(change: Change, before: Sequence[Change]) -> bool:
    wide = max((each.width for each in before if each.block == change.block), default=-1)
    return change.kind == "widen" and wide >= change.width


def _prefixes(actions: int, decisions: int) -> list[Prefix]:
    """Return all prefixes that a decision can follow, shorter ones first."""
    return [made for length in range(decisions) for made in product(range(actions), repeat=length)]


def _fresh(model: str, data: str, size: int | None) -> nn.Module:
    if MODELS[model].task == "classification":
        found = CATALOGUE.get(data, CATALOGUE["cifar10"])
        channels, *pixels = found.shape
        return build(model, (channels, *([size] * 2 if size else pixels)), len(found.classes))
    from rota.training.device import device
    from rota.training.tasks import task_of

    task = task_of(model, device=device("cpu"))
    return build(model, task.inputs, task.outputs)


def _changed(network: nn.Module, change: Change, model: str) -> nn.Module:
    names = blocks(network)
    if change.block >= len(names):
        raise InputError(f"{change}: {model} has {len(names)} blocks, counted from 0; was it another model?")
    changed, name = deepcopy(network), names[change.block]
    try:
        if change.kind == "deepen":
            deepen(changed, name)
        else:
            widen(changed, layer_in(changed, name), change.width)
    except NotGrowable as error:
        raise InputError(f"{change}: not possible in {model} ({error}); was it another model?") from None
    return changed


def _stand_in(model: str, actions: Sequence[Change], growth: Prefix) -> Seen:
    """Return a chain of unknown layers named after the model, as many in each block as it has grown to."""
    count = 1 + max(0, *(change.block for change in actions))
    grown = [1 + sum(actions[each].block == block for each in growth) for block in range(count)]
    layers = [Layer(f"{model.lower()} {block}") for block, depth in enumerate(grown) for _ in range(depth)]
    ends = [sum(grown[: block + 1]) for block in range(count)]
    parts = tuple(tuple(range(end - depth, end)) for end, depth in zip(ends, grown, strict=True))
    return Structure(tuple(layers), tuple((at, at + 1) for at in range(len(layers) - 1))), parts
