"""What growing gains in growth trees: the ends of paths, by when the network first changes."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rota.core.arrays import Floats
from rota.core.grouped import grouped
from rota.core.text import aligned
from rota.recordings.growth import GrowthChoices, GrowthTree
from rota.recordings.tree import Prefix

Row = Sequence[str]


class FirstChangeGain(NamedTuple):
    """Paths with as many changes, the first at the same boundary."""

    changes: int
    first: int
    """Boundary of the first change, from 0."""
    gains: Floats
    """By tree: mean accuracy at the end of these paths − that of the path that changes nothing."""


def ends(tree: GrowthTree) -> dict[Prefix, float]:
    """Return path → accuracy at its end; that of a failed training counts as 0."""
    return {path: _counted(tree.nodes[path].accuracy) for path in tree.leaves()}


def _counted(accuracy: float) -> float:
    return 0.0 if math.isnan(accuracy) else accuracy


def first_change(choices: GrowthChoices, path: Prefix) -> int | None:
    """Return the boundary at which a path first changes the network; None if it never does."""
    return next((at for at in range(len(path)) if choices.changes(path[: at + 1])), None)


def gains(trees: Sequence[GrowthTree]) -> list[FirstChangeGain]:
    """Return the gains over trees of the same choices, by number of changes and the first boundary."""
    choices = trees[0].choices
    firsts = ((first_change(choices, path), path) for path in trees[0].leaves())
    groups = grouped(((len(choices.changes(path)), at), path) for at, path in firsts if at is not None)
    found = [(ends(tree), tree.never) for tree in trees]
    return [
        FirstChangeGain(
            *key,
            np.array([np.mean([end[path] for path in paths]) - end[never] for end, never in found], float),
        )
        for key, paths in sorted(groups.items())
    ]


def by_network(trees: Iterable[GrowthTree]) -> dict[tuple[str, str, GrowthChoices], list[GrowthTree]]:
    """Return model, data set and choices → the complete trees of them, in their order."""
    return grouped(((tree.model, tree.data, tree.choices), tree) for tree in trees if not tree.missing())


def seed_deviation(trees: Iterable[GrowthTree]) -> float:
    """Return the standard deviation between seeds of an accuracy at the end; NaN without two of a setting.

    It is that of the path that changes nothing, pooled over settings of the hyper-parameters.
    """
    groups = grouped(
        (tuple(sorted(tree.hyper.items())), _counted(tree.nodes[tree.never].accuracy)) for tree in trees
    )
    several = [group for group in groups.values() if len(group) > 1]
    degrees = sum(len(group) - 1 for group in several)
    return math.sqrt(sum(np.var(group) * len(group) for group in several) / degrees) if degrees else math.nan


HEADER = (
    *("model", "data", "trees", "nodes", "settings", "seeds", "steps"),
    *("never", "best", "rank of never", "another seed", "failed"),
)


def rows(trees: Sequence[GrowthTree]) -> list[Row]:
    """Return a header and a row per model and data set: means over trees, of accuracies at the end."""
    return [HEADER, *(_row(*key, group) for key, group in by_network(trees).items())]


def table(trees: Sequence[GrowthTree]) -> str:
    """Return these rows as text."""
    return "\n".join(aligned(rows(trees), left=2))


def _row(model: str, data: str, choices: GrowthChoices, trees: Sequence[GrowthTree]) -> Row:
    found = [ends(tree) for tree in trees]
    never = [end[tree.never] for end, tree in zip(found, trees, strict=True)]
    ranks = [1 + sum(a > own for a in end.values()) for end, own in zip(found, never, strict=True)]
    failed = sum(math.isnan(node.accuracy) for tree in trees for node in tree.nodes.values())
    deviation = seed_deviation(trees)
    return (
        model,
        data or "?",
        f"{len(trees)}",
        f"{choices.nodes}",
        f"{len({tuple(sorted(tree.hyper.items())) for tree in trees})}",
        f"{len({tree.seed for tree in trees})}",
        f"{max(node.steps for tree in trees for node in tree.nodes.values()):,}",
        f"{np.mean(never):.1%}",
        f"{np.mean([max(end.values()) for end in found]):.1%}",
        f"{np.mean(ranks):.1f}/{len(found[0])}",
        "–" if math.isnan(deviation) else f"±{deviation:.1%}",
        f"{failed}",
    )
