"""Adaptation trees: every sequence of changes to a network during training, and its outcome.

Sequences with the same beginning were trained once up to where they part. A *prefix* is the beginning of a
sequence: () until the first decision, (2,) from action 2 until the second, and so on. Growth trees, in which
only some changes are allowed, are in `growth.py`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

from rota.core.errors import InputError
from rota.core.table import Table
from rota.recordings.folder import CsvSheet, Provenance, facts_of, read_about, write_recording

SHAPE = "tree"
POINTS = "points.csv"
NOTHING = "nothing"
"""The action that leaves the network as it is."""
MOST_ACTIONS, MOST_DECISIONS, MOST_SEQUENCES = 1_000, 30, 1_000_000
"""Limits of a tree, as each of its sequences is looked at."""

Prefix = tuple[int, ...]

COLUMNS = {
    "sequence": "",
    "epoch": "",
    "at_s": "s",
    "steps": "",
    "loss": "",
    "accuracy": "",
    "test_accuracy": "",
}


class EpochPoint(NamedTuple):
    """The measurements at the end of an epoch."""

    epoch: int
    at_s: float
    """Seconds since the start of training."""
    steps: int
    """Steps since the start of training."""
    loss: float
    accuracy: float
    test_accuracy: float = math.nan
    """NaN where it was not measured."""


@dataclass(frozen=True)
class Tree:
    """All sequences of one model in one scenario, from one seed."""

    model: str
    data: str
    scenario: str
    seed: int
    budget_s: float
    start_s: float
    """Seconds until the first decision."""
    decisions: int
    """Number of decisions in each sequence."""
    actions: tuple[str, ...]
    """Actions of a decision, with `nothing`; sequences hold indices into this."""
    curves: Mapping[Prefix, tuple[EpochPoint, ...]]
    """Prefix → points from its last change until the next decision, or the end of the budget."""
    provenance: Provenance
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further facts, as plain values."""

    def __post_init__(self) -> None:
        name = f"tree {self.model} {self.scenario}"
        if NOTHING not in self.actions or len(set(self.actions)) != len(self.actions):
            raise InputError(
                f"{name}: actions {self.actions}: expected distinct ones, among them {NOTHING!r}"
            )
        sequences = len(self.actions) ** min(self.decisions, MOST_DECISIONS + 1)
        if self.decisions > MOST_DECISIONS or sequences > MOST_SEQUENCES:
            found = f"{self.decisions} decisions between {len(self.actions)} actions"
            raise InputError(f"{name}: {found}: expected at most {MOST_SEQUENCES:,} sequences")
        if not (self.decisions >= 1 and 0.0 <= self.start_s <= self.budget_s < math.inf):
            found = f"{self.decisions} decisions from {self.start_s} s of {self.budget_s} s"
            raise InputError(f"{name}: {found}: expected one or more that begin within the budget")
        for prefix, points in self.curves.items():
            if len(prefix) > self.decisions or not all(0 <= a < len(self.actions) for a in prefix):
                raise InputError(f"{name}: {prefix} is not the beginning of a sequence of these actions")
            if not points or any(b.at_s < a.at_s for a, b in pairwise(points)):
                raise InputError(f"{name}: {prefix}: expected one or more points in the order of time")
            if not all(0.0 <= p.at_s < math.inf and p.epoch >= 0 and p.steps >= 0 for p in points):
                raise InputError(f"{name}: {prefix}: expected times, epochs and steps of 0 or more")
        object.__setattr__(
            self, "curves", dict(sorted(self.curves.items(), key=lambda item: (len(item[0]), item[0])))
        )

    @cached_property
    def all_sequences(self) -> tuple[Prefix, ...]:
        """Every possible sequence, in order."""
        return tuple(product(range(len(self.actions)), repeat=self.decisions))

    def sequences(self) -> tuple[Prefix, ...]:
        """Return the sequences that were trained to the end, with all their prefixes."""
        return tuple(each for each in self.all_sequences if all(p in self.curves for p in beginnings(each)))

    def missing(self) -> tuple[Prefix, ...]:
        """Return the prefixes that were not recorded, shorter ones first."""
        every = sorted(
            {p for each in self.all_sequences for p in beginnings(each)}, key=lambda p: (len(p), p)
        )
        return tuple(prefix for prefix in every if prefix not in self.curves)

    @property
    def never(self) -> Prefix:
        """The sequence that changes nothing."""
        return (self.actions.index(NOTHING),) * self.decisions

    def left_s(self, sequence: Sequence[int]) -> tuple[float, ...]:
        """Return the seconds left before each decision of a sequence."""
        prefixes = list(beginnings(sequence))[:-1]
        return tuple(self.budget_s - self._end(prefix).at_s for prefix in prefixes)

    def accuracy(self, sequence: Sequence[int]) -> float:
        """Return the accuracy at the end of a sequence."""
        return self._end(sequence).accuracy

    def accuracies(self) -> dict[Prefix, float]:
        """Return recorded sequence → accuracy at its end."""
        return {sequence: self.accuracy(sequence) for sequence in self.sequences()}

    @cached_property
    def ranks(self) -> dict[Prefix, int]:
        """Recorded sequence → rank: 1 for the most accurate; equals share a rank, failures come last."""
        found = {each: -math.inf if math.isnan(a) else a for each, a in self.accuracies().items()}
        best = sorted(found.values(), reverse=True)
        first = {accuracy: rank for rank, accuracy in reversed(list(enumerate(best, 1)))}
        return {sequence: first[accuracy] for sequence, accuracy in found.items()}

    def _end(self, prefix: Sequence[int]) -> EpochPoint:
        points = self.curves.get(tuple(prefix))
        if points is None:
            which = written_as(prefix) or "the start"
            raise InputError(f"tree {self.model} {self.scenario}: {which} was not recorded; record it first")
        return points[-1]


def beginnings(sequence: Sequence[int]) -> Iterator[Prefix]:
    """Yield the prefixes from () to the whole sequence."""
    return (tuple(sequence[:length]) for length in range(len(sequence) + 1))


def in_order(tree: Tree) -> tuple[str, str, float, str, int]:
    """Return the sort key of trees: models by name, their scenarios by time."""
    return tree.model, tree.data, tree.start_s / tree.budget_s, tree.scenario, tree.seed


def written_as(prefix: Sequence[int]) -> str:
    """Return a prefix as text: `0-3-1`; empty for ()."""
    return "-".join(map(str, prefix))


def folder_name(tree: Tree) -> str:
    """Return the folder's name: `ConvNet2-early-seed0`."""
    name = f"{tree.model}-{tree.scenario}-seed{tree.seed}"
    if "/" in name or name.startswith("."):
        raise InputError(f"{name!r} cannot be the name of a folder; name the model differently")
    return name


def write_tree(folder: Path, tree: Tree) -> None:
    """Write a tree, complete or not, or replace the one that is there."""
    rows = ((written_as(prefix), *point) for prefix, points in tree.curves.items() for point in points)
    write_recording(
        folder, SHAPE, facts_of(tree, _TreeFacts), tree.provenance, {POINTS: CsvSheet(COLUMNS, rows)}
    )


def read_tree(folder: Path) -> Tree:
    """Return the tree in a folder."""
    about = read_about(folder, SHAPE)
    table, what = about.table(POINTS), about.facts(_TreeFacts)
    table.require(list(COLUMNS))
    return Tree(**facts_of(what, _TreeFacts), curves=_curves(table), provenance=about.provenance)


@dataclass(frozen=True, slots=True)
class _TreeFacts:
    """The facts on a tree in `recording.json`."""

    model: str
    data: str
    scenario: str
    seed: int
    budget_s: float
    start_s: float
    decisions: int
    actions: tuple[str, ...]
    details: dict[str, object]


def _curves(table: Table) -> dict[Prefix, tuple[EpochPoint, ...]]:
    prefixes = prefixes_in(table)
    whole = [table.wholes(name).astype(int).tolist() for name in ("epoch", "steps")]
    at_s = table.numbers("at_s").tolist()
    others = [table.floats(name).tolist() for name in ("loss", "accuracy", "test_accuracy")]
    points = map(EpochPoint, whole[0], at_s, whole[1], *others)
    rows = zip(prefixes, points, strict=True)
    curves: dict[Prefix, tuple[EpochPoint, ...]] = {}
    for prefix, together in groupby(rows, key=lambda row: row[0]):
        curves[prefix] = curves.get(prefix, ()) + tuple(point for _, point in together)
    return curves


def prefixes_in(table: Table) -> list[Prefix]:
    """Return the prefix in each row of the column `sequence`."""
    prefixes = []
    for row, text in enumerate(table.optional("sequence")):
        parts = text.split("-") if text else []
        if not all(part.isdecimal() for part in parts):
            raise table.wrong("sequence", row, "whole numbers joined by '-'")
        prefixes.append(tuple(map(int, parts)))
    return prefixes
