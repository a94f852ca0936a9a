"""Growth trees: training in intervals, with a choice of changes to the network at each boundary between two.

The root is the first interval. Each node has a child for every choice that is allowed after it: to change
nothing, or one of some changes, as long as there were fewer than a limit. So a node is named by the choices
that lead to it, its *prefix*: () is the root, (3, 0) follows from action 3 at the first boundary and action 0
at the second. Each node has been trained once, from where its parent ended.

An adaptation tree (`tree.py`) is the case without a limit, in which a node may have several epochs.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.core.network import Layer, Structure
from rota.core.table import Table
from rota.recordings.folder import CsvSheet, Provenance, read_about, write_recording
from rota.recordings.tree import (
    MOST_DECISIONS,
    NOTHING,
    Prefix,
    Tree,
    prefixes_in,
    read_tree,
    written_as,
)
from rota.recordings.tree import SHAPE as ADAPTATION

SHAPE = "growth"
NODES, LAYERS = "nodes.csv", "structures.csv"
MOST_NODES = 2_000_000
"""Limit of a tree; an adaptation tree, with its limit of sequences, has no more."""
MOST_ACCURACY = 1e9
"""Limit of a metric, which need not be a share."""
UNKNOWN = -1
"""Structure of a node where none was recorded."""

NODE_COLUMNS = {
    "sequence": "",
    "steps": "",
    "structure": "",
    "seconds": "s",
    "loss": "",
    "accuracy": "",
    "test_accuracy": "",
}
LAYER_COLUMNS = {"structure": "", "layer": "", "kind": "", "sizes": "", "after": "", "blocks": ""}


@dataclass(frozen=True)
class GrowthChoices:
    """The changes that are allowed at each boundary."""

    decisions: int
    """Number of boundaries in a path; it has one interval more."""
    actions: tuple[str, ...]
    """Actions, with `nothing`; prefixes hold indices into this."""
    most_changes: int
    """Number of boundaries of a path at which something may change."""
    order: tuple[str, ...] = ()
    """The changes of a path in the order in which they are made; if empty, each may be any."""

    def __post_init__(self) -> None:
        if NOTHING not in self.actions or len(set(self.actions)) != len(self.actions):
            raise InputError(f"actions {self.actions}: expected distinct ones, among them {NOTHING!r}")
        if not 0 <= self.most_changes <= self.decisions or not 1 <= self.decisions <= MOST_DECISIONS:
            found = f"{self.decisions} boundaries, {self.most_changes} with a change"
            raise InputError(
                f"{found}: expected 1 to {MOST_DECISIONS} boundaries, and no more changes than those"
            )
        wrong = [each for each in self.order if each not in self.actions or each == NOTHING]
        if wrong:
            raise InputError(f"order: {wrong[0]!r} is not one of the changes in {self.actions}")
        if self.order and len(self.order) < self.most_changes:
            raise InputError(
                f"order: has {len(self.order)} changes; expected one for each of the {self.most_changes}"
            )
        if self.nodes > MOST_NODES:
            raise InputError(f"a tree of {self.nodes:,} nodes; expected at most {MOST_NODES:,}")

    @cached_property
    def nodes(self) -> int:
        """The number of nodes of a tree."""
        kinds = 1 if self.order else len(self.actions) - 1
        depths, changes = range(self.decisions + 1), range(self.most_changes + 1)
        return sum(comb(depth, count) * kinds**count for depth in depths for count in changes)

    def changes(self, prefix: Prefix) -> Prefix:
        """Return the actions of a prefix without those that change nothing."""
        return tuple(action for action in prefix if self.actions[action] != NOTHING)

    def allowed(self, prefix: Prefix) -> tuple[int, ...]:
        """Return the actions that may follow a prefix; none at the end of a path."""
        if len(prefix) >= self.decisions:
            return ()
        made = len(self.changes(prefix))
        may = self.actions if made < self.most_changes else (NOTHING,)
        if self.order and made < self.most_changes:
            may = (self.order[made], NOTHING)
        return tuple(at for at, action in enumerate(self.actions) if action in may)

    def prefixes(self) -> Iterator[Prefix]:
        """Yield the prefix of every node, shorter ones first."""
        level: list[Prefix] = [()]
        while level:
            yield from level
            level = [(*prefix, action) for prefix in level for action in self.allowed(prefix)]

    def check(self, prefix: Prefix) -> None:
        """Raise unless a prefix is that of a node."""
        for length, action in enumerate(prefix):
            if action not in self.allowed(prefix[:length]):
                raise InputError(f"{written_as(prefix)}: is not a node of a tree of these choices")


class GrowthNode(NamedTuple):
    """The measurements at the end of an interval; all are NaN if its training failed."""

    steps: int
    """Steps since the start of training."""
    structure: int
    """Position of the network in the tree's `structures`; -1 if it was not recorded."""
    loss: float
    """Mean loss over the steps of the interval."""
    accuracy: float
    """Accuracy on the validation split."""
    test_accuracy: float = math.nan
    """NaN if it was not measured."""
    seconds: float = math.nan
    """Seconds of this interval, if each was timed; otherwise NaN, and steps × seconds per step counts."""


@dataclass(frozen=True)
class RecordedStructure:
    """A network that occurs in a tree."""

    structure: Structure
    blocks: tuple[tuple[int, ...], ...]
    """Layers of each block that can grow, as positions in the structure."""
    step_s: float
    """Seconds per step on the recording machine."""


@dataclass(frozen=True, eq=False)
class GrowthTable:
    """A complete tree as arrays, by node; 0 is the root, and parents precede their children."""

    prefixes: tuple[Prefix, ...]
    parent: NDArray[np.int64]
    """Node before each; -1 for the root."""
    child: NDArray[np.int64]
    """Node that follows from each action, nodes × actions; -1 where that is not allowed."""
    steps: NDArray[np.int64]
    """Steps of the interval."""
    seconds: Floats
    """Seconds of the interval on the recording machine."""
    structure: NDArray[np.int64]
    loss: Floats
    accuracy: Floats
    test_accuracy: Floats


@dataclass(frozen=True)
class GrowthTree:
    """All paths of one model on one data set, with given hyper-parameters, from one seed."""

    model: str
    data: str
    seed: int
    hyper: Mapping[str, float]
    """Hyper-parameters by name: `lr`, `momentum`, `batch_size`; empty if they are not known."""
    choices: GrowthChoices
    nodes: Mapping[Prefix, GrowthNode]
    structures: tuple[RecordedStructure, ...]
    provenance: Provenance
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further facts, as plain values."""

    def __post_init__(self) -> None:
        most = len(self.structures)
        if not all(0.0 <= each.step_s < math.inf for each in self.structures):
            raise InputError(f"{self.name}: expected seconds per step of 0 or more for each structure")
        for prefix, node in self.nodes.items():
            try:
                self.choices.check(prefix)
            except InputError as error:
                raise InputError(f"{self.name}: {error}") from None
            if node.steps < 0 or not UNKNOWN <= node.structure < most:
                found = f"{node.steps} steps, structure {node.structure}"
                raise InputError(
                    f"{self.name}: {said(prefix)}: {found}: expected steps of 0 or more, and one of the "
                    f"{most} structures"
                )
            if abs(node.accuracy) > MOST_ACCURACY or abs(node.test_accuracy) > MOST_ACCURACY:
                raise InputError(f"{self.name}: {said(prefix)}: expected accuracies up to {MOST_ACCURACY:g}")
            before = self.nodes.get(prefix[:-1])
            if prefix and before is not None and node.steps < before.steps:
                raise InputError(f"{self.name}: {said(prefix)}: ends before the interval before it")
        ordered = sorted(self.nodes.items(), key=lambda item: (len(item[0]), item[0]))
        object.__setattr__(self, "nodes", dict(ordered))

    @property
    def name(self) -> str:
        """The tree in messages: `growth tree convnet2 on digits, lr=0.01, seed 0`."""
        hyper = "".join(f", {key}={value:.12g}" for key, value in self.hyper.items())
        return f"growth tree {self.model} on {self.data or 'unknown data'}{hyper}, seed {self.seed}"

    def missing(self) -> tuple[Prefix, ...]:
        """Return the prefixes of the nodes that were not recorded, shorter ones first."""
        return tuple(prefix for prefix in self.choices.prefixes() if prefix not in self.nodes)

    def check_whole(self) -> None:
        """Raise unless every node was recorded; the message names those that are missing."""
        missing = self.missing()
        if missing:
            which = ", ".join(map(said, missing[:8])) + (
                f" and {len(missing) - 8} more" if len(missing) > 8 else ""
            )
            raise InputError(
                f"{self.name}: {len(missing)} of {self.choices.nodes} nodes are missing ({which}); "
                "record them first, or leave this tree out"
            )

    def node(self, prefix: Prefix) -> GrowthNode:
        """Return the node with a prefix; raise if it was not recorded."""
        if prefix not in self.nodes:
            raise InputError(f"{self.name}: {said(prefix)} was not recorded; record it first")
        return self.nodes[prefix]

    def steps(self, prefix: Prefix) -> int:
        """Return the number of steps of an interval."""
        return self.node(prefix).steps - (self.node(prefix[:-1]).steps if prefix else 0)

    def seconds(self, prefix: Prefix) -> float:
        """Return the seconds of an interval on the recording machine; NaN if they were not measured."""
        node = self.node(prefix)
        if not math.isnan(node.seconds) or node.structure == UNKNOWN:
            return node.seconds
        return self.steps(prefix) * self.structures[node.structure].step_s

    def leaves(self) -> tuple[Prefix, ...]:
        """Return the recorded ends of paths."""
        return tuple(prefix for prefix in self.nodes if len(prefix) == self.choices.decisions)

    @property
    def never(self) -> Prefix:
        """The path that changes nothing."""
        return (self.choices.actions.index(NOTHING),) * self.choices.decisions

    def table(self) -> GrowthTable:
        """Return the tree as arrays; raise if a node is missing."""
        self.check_whole()
        prefixes = tuple(self.choices.prefixes())
        at = {prefix: number for number, prefix in enumerate(prefixes)}
        child = np.full((len(prefixes), len(self.choices.actions)), -1, np.int64)
        for prefix, number in at.items():
            for action in self.choices.allowed(prefix):
                child[number, action] = at[*prefix, action]
        nodes = [self.nodes[prefix] for prefix in prefixes]
        return GrowthTable(
            prefixes,
            np.array([at[prefix[:-1]] if prefix else -1 for prefix in prefixes], np.int64),
            child,
            np.array([self.steps(prefix) for prefix in prefixes], np.int64),
            np.array([self.seconds(prefix) for prefix in prefixes], float),
            np.array([node.structure for node in nodes], np.int64),
            np.array([node.loss for node in nodes], float),
            np.array([node.accuracy for node in nodes], float),
            np.array([node.test_accuracy for node in nodes], float),
        )


def said(prefix: Prefix) -> str:
    """Return a node in messages: `0-3`, or `the root`."""
    return written_as(prefix) or "the root"


def in_growth_order(tree: GrowthTree) -> tuple[object, ...]:
    """Return the sort key of trees: data sets, models, hyper-parameters, seeds."""
    return tree.data, tree.model, tuple(tree.hyper.items()), tree.seed


def of_adaptation(tree: Tree) -> GrowthTree:
    """Return an adaptation tree as a growth tree: each prefix is a node, without a limit of changes.

    Its nodes have the times that were recorded, and no structures.
    """
    nodes = {}
    for prefix, points in tree.curves.items():
        end = points[-1]
        before = tree.curves[prefix[:-1]][-1].at_s if prefix and prefix[:-1] in tree.curves else 0.0
        nodes[prefix] = GrowthNode(
            end.steps, UNKNOWN, end.loss, end.accuracy, end.test_accuracy, max(end.at_s - before, 0.0)
        )
    choices = GrowthChoices(tree.decisions, tree.actions, tree.decisions)
    details = {**tree.details, "scenario": tree.scenario, "budget_s": tree.budget_s, "start_s": tree.start_s}
    return GrowthTree(tree.model, tree.data, tree.seed, {}, choices, nodes, (), tree.provenance, details)


def write_growth_tree(folder: Path, tree: GrowthTree) -> None:
    """Write a tree, complete or not, or replace the one that is there."""
    what = _GrowthTreeFacts(
        model=tree.model,
        data=tree.data,
        seed=tree.seed,
        hyper=dict(tree.hyper),
        choices=tree.choices,
        blocks=len(tree.structures[0].blocks) if tree.structures else 0,
        step_s=tuple(each.step_s for each in tree.structures),
        details=dict(tree.details),
    )
    nodes = (
        (written_as(prefix), node.steps, node.structure, node.seconds, *node[2:5])
        for prefix, node in tree.nodes.items()
    )
    layers = (row for number, each in enumerate(tree.structures) for row in _layer_rows(number, each))
    sheets = {NODES: CsvSheet(NODE_COLUMNS, nodes), LAYERS: CsvSheet(LAYER_COLUMNS, layers)}
    write_recording(folder, SHAPE, asdict(what), tree.provenance, sheets)


def read_growth_tree(folder: Path) -> GrowthTree:
    """Return the tree in a folder, which may also be an adaptation tree."""
    about = read_about(folder)
    if about.shape == ADAPTATION:
        return of_adaptation(read_tree(folder))
    about = read_about(folder, SHAPE)
    what = about.facts(_GrowthTreeFacts)
    nodes, layers = about.table(NODES), about.table(LAYERS)
    nodes.require(list(NODE_COLUMNS))
    layers.require(list(LAYER_COLUMNS))
    return GrowthTree(
        model=what.model,
        data=what.data,
        seed=what.seed,
        hyper=what.hyper,
        choices=what.choices,
        nodes=_nodes(nodes),
        structures=_structures(layers, what),
        provenance=about.provenance,
        details=what.details,
    )


@dataclass(frozen=True, slots=True)
class _GrowthTreeFacts:
    """The facts on a growth tree in `recording.json`."""

    model: str
    data: str
    seed: int
    hyper: dict[str, float]
    choices: GrowthChoices
    blocks: int
    """Number of blocks of each structure."""
    step_s: tuple[float, ...]
    """Seconds per step of each structure."""
    details: dict[str, object]


def _nodes(table: Table) -> dict[Prefix, GrowthNode]:
    steps = table.wholes("steps").astype(int).tolist()
    structures = table.wholes("structure", at_least=UNKNOWN).astype(int).tolist()
    names = ("loss", "accuracy", "test_accuracy", "seconds")
    columns = [table.floats(name).tolist() for name in names]
    nodes: dict[Prefix, GrowthNode] = {}
    for row, (prefix, *values) in enumerate(
        zip(prefixes_in(table), steps, structures, *columns, strict=True)
    ):
        if prefix in nodes:
            raise table.wrong("sequence", row, "a new one: there is a line with it already")
        nodes[prefix] = GrowthNode(*values)
    return nodes


def _layer_rows(number: int, recorded: RecordedStructure) -> Iterator[tuple[int | str, ...]]:
    structure = recorded.structure
    for at, layer in enumerate(structure.layers):
        sizes = " ".join(f"{name}={value}" for name, value in layer.sizes)
        after = " ".join(str(tail) for tail, head in structure.edges if head == at)
        blocks = " ".join(str(block) for block, layers in enumerate(recorded.blocks) if at in layers)
        yield number, at, layer.kind, sizes, after, blocks


def _structures(table: Table, what: _GrowthTreeFacts) -> tuple[RecordedStructure, ...]:
    count, blocks = len(what.step_s), what.blocks
    layers: list[list[Layer]] = [[] for _ in what.step_s]
    edges: list[list[tuple[int, int]]] = [[] for _ in what.step_s]
    members: list[list[list[int]]] = [[[] for _ in range(blocks)] for _ in what.step_s]
    numbers = table.wholes("structure").astype(int).tolist()
    positions = table.wholes("layer").astype(int).tolist()
    kinds, sizes = table.texts("kind"), table.optional("sizes")
    after, inside = _lists(table, "after"), _lists(table, "blocks")
    for row, number in enumerate(numbers):
        if number >= count:
            raise table.wrong("structure", row, f"one of the {count} structures")
        if positions[row] != len(layers[number]):
            raise table.wrong("layer", row, f"the next layer of the structure, {len(layers[number])}")
        if any(block >= blocks for block in inside[row]):
            raise table.wrong("blocks", row, f"some of the {blocks} blocks")
        at = positions[row]
        layers[number].append(Layer(kinds[row], _sizes(table, row, sizes[row])))
        edges[number] += [(tail, at) for tail in after[row]]
        for block in inside[row]:
            members[number][block].append(at)
    return tuple(
        RecordedStructure(
            Structure(
                tuple(layers[number]), tuple(sorted(edges[number], key=lambda edge: (edge[1], edge[0])))
            ),
            tuple(map(tuple, members[number])),
            step_s,
        )
        for number, step_s in enumerate(what.step_s)
    )


def _sizes(table: Table, row: int, text: str) -> tuple[tuple[str, int], ...]:
    pairs = [part.partition("=") for part in text.split()]
    if not all(name and value.isascii() and value.isdecimal() for name, _, value in pairs):
        raise table.wrong("sizes", row, "names and whole numbers, such as in=3 out=32")
    return tuple((name, int(value)) for name, _, value in pairs)


def _lists(table: Table, column: str) -> list[list[int]]:
    found = []
    for row, text in enumerate(table.optional(column)):
        if not all(part.isascii() and part.isdecimal() for part in text.split()):
            raise table.wrong(column, row, "whole numbers with blanks between them")
        found.append([int(part) for part in text.split()])
    return found
