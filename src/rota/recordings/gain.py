"""Does it pay to change the network? The sequences of a tree against the one that changes nothing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rota.core.arrays import Floats
from rota.recordings.models import models
from rota.recordings.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class Gain:
    """One tree, summed up; accuracies at the end of the budget."""

    model: str
    scenario: str
    start_s: float
    budget_s: float
    seed: int
    never: float
    """Of the sequence that changes nothing."""
    adapting: Floats
    """Of all others."""
    best: tuple[str, ...]
    """The actions of the best of all."""

    @property
    def mean(self) -> float:
        """NaN if there are none."""
        return float(np.mean(self.adapting)) if len(self.adapting) else math.nan

    @property
    def top(self) -> float:
        return float(np.max(self.adapting, initial=self.never))

    @property
    def share_above(self) -> float:
        """Of the sequences that change something: how many end above the one that does not; NaN if none."""
        return float(np.mean(self.adapting > self.never)) if len(self.adapting) else math.nan


def gain(tree: Tree) -> Gain:
    """Sum up a tree; a failed training counts as an accuracy of 0."""
    found = {each: 0.0 if math.isnan(a) else a for each, a in tree.accuracies().items()}
    best = max(found, key=found.__getitem__)
    others = np.array([accuracy for sequence, accuracy in found.items() if sequence != tree.never])
    return Gain(
        tree.model,
        tree.scenario,
        tree.start_s,
        tree.budget_s,
        tree.seed,
        found[tree.never],
        others,
        tuple(tree.actions[action] for action in best),
    )


@dataclass(frozen=True, slots=True)
class Noise:
    """What another seed changes in the accuracy of one training run: standard deviations."""

    whole: float
    """All of it."""
    apart: float
    """Of it, what is not the same for all sequences of the tree: what a ranking suffers from."""


def noise(trees: Sequence[Tree]) -> Noise | None:
    """From trees that differ in their seeds only; None if there are no two such trees."""
    whole, apart = [], []
    for first, second in combinations(trees, 2):
        if first.seed != second.seed and but_for_seed(first) == but_for_seed(second):
            one, other = first.accuracies(), second.accuracies()
            differences = np.array([one[each] - other[each] for each in one if each in other])
            differences = differences[~np.isnan(differences)]
            whole.append(np.mean(differences**2) / 2)  # the variance of a difference is twice that of one run
            apart.append(np.var(differences) / 2)
    if not whole:
        return None
    return Noise(math.sqrt(np.mean(whole)), math.sqrt(np.mean(apart)))


def but_for_seed(tree: Tree) -> tuple[object, ...]:
    """Equal for trees that differ in their seeds only."""
    asked = tree.details.get("asked")
    return tree.model, tree.data, tree.start_s, tree.budget_s, tree.actions, tree.decisions, asked


def by_model(trees: Iterable[Tree]) -> dict[str, list[Tree]]:
    """Model → its complete trees in the order of time and seed; those of other data are another model."""
    groups: dict[str, list[Tree]] = {}
    whole = [tree for tree in trees if not tree.missing()]
    whole.sort(key=lambda tree: (tree.model, tree.data, tree.start_s, tree.seed))
    for model, tree in zip(models(whole), whole, strict=True):
        groups.setdefault(model, []).append(tree)
    return groups


def by_scenario(trees: Iterable[Tree]) -> dict[str, list[Tree]]:
    """Scenario → its trees, from all seeds; of one model."""
    groups: dict[str, list[Tree]] = {}
    for tree in trees:
        groups.setdefault(tree.scenario, []).append(tree)
    return groups


def table(trees: Iterable[Tree]) -> str:
    """A line per tree, and the noise of each scenario that has several seeds."""
    groups = by_model(trees)
    width = max([10, *map(len, groups)])
    heads = "seed   never  adapting (mean, best)   above never   best sequence"
    lines = [f"{'model':<{width}} {'scenario':<13} {heads}"]
    for model, group in groups.items():
        name = f"{model:<{width}}"
        for each in map(gain, group):
            lines.append(
                f"{name} {each.scenario:<13} {each.seed:>4}  {each.never:6.1%}  {_said(each.mean, '8.1%')}"
                f"  {each.top:6.1%}        {_said(each.share_above, '6.0%')}          {', '.join(each.best)}"
            )
        for scenario, alike in by_scenario(group).items():
            found = noise(alike)
            if found:
                lines.append(
                    f"{name} {scenario:<13} another seed changes an accuracy by ±{found.whole:.1%}, "
                    f"of which ±{found.apart:.1%} is not the same for all sequences"
                )
    return "\n".join(lines)


def _said(share: float, form: str) -> str:
    """A dash, as wide, for what is not known."""
    text = f"{share:{form}}"
    return f"{'–':>{len(text)}}" if math.isnan(share) else text
