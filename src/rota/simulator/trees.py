"""Simulated trials that walk along growth trees."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rota.core.cluster import Cluster, Slot
from rota.core.errors import InputError
from rota.core.network import NOTHING, Structure
from rota.core.population.events import Hyper
from rota.core.population.trees import TreeNodes, TreeOutcomes
from rota.core.population.view import Terms
from rota.recordings.devices import DeviceSpeeds
from rota.recordings.growth import UNKNOWN, GrowthTree, RecordedStructure
from rota.recordings.profile import Profiles
from rota.recordings.tree import Prefix

Network = tuple[Structure, tuple[tuple[int, ...], ...]]
GPUS = Path("results/recordings/profiles/gpus")
"""Measured speeds of GPUs."""
CPU = "cpu"
"""Device of slots whose speed is given."""
MODEL, SEED = "model", "seed"
"""Names of the network and the seed of a tree among the hyper-parameters of a trial."""


def hyper_of(tree: GrowthTree) -> Hyper:
    """Return the hyper-parameters of a trial on a tree, with its network and seed."""
    hyper = {name: int(value) if value == int(value) else value for name, value in tree.hyper.items()}
    return {MODEL: tree.model, **hyper, SEED: tree.seed}


def batch_size_of(tree: GrowthTree) -> int:
    """Return the batch size of a tree; 0 if it is not known."""
    return int(tree.hyper.get("batch_size", 0))


@dataclass(frozen=True)
class TreeKind:
    """A network in trees: trials that have it take equally long for a step."""

    name: str
    model: str
    batch_size: int
    changes: tuple[str, ...]
    """Changes that lead to it, on the first path that does."""
    step_s: float
    """Seconds per step on the recording machine; the mean over its intervals if each was timed."""
    recorded: RecordedStructure | None
    """None if its structure was not recorded."""


@dataclass(frozen=True, eq=False)
class TreeSet:
    """The growth trees that trials of a population walk along, as arrays."""

    trees: tuple[GrowthTree, ...]
    size_mb: float = 0.0
    """Size of a checkpoint."""
    kinds: tuple[TreeKind, ...] = field(init=False)
    nodes: TreeNodes = field(init=False)

    def __post_init__(self) -> None:
        if not self.trees:
            raise InputError("growth trees: none; give at least one")
        for tree in self.trees:
            _check(tree)
        data = sorted({tree.data for tree in self.trees})
        if len(data) > 1:
            raise InputError(
                f"growth trees of {' and '.join(data)}: a population has one data set; give trees of one"
            )
        kinds = _Kinds()
        object.__setattr__(self, "nodes", _nodes(self.trees, kinds))
        object.__setattr__(self, "kinds", tuple(kinds.found))

    @cached_property
    def hypers(self) -> tuple[Hyper, ...]:
        """Tree → hyper-parameters of a trial on it."""
        return tuple(map(hyper_of, self.trees))

    def terms(self, trees: Sequence[int] | None = None, target: float = math.inf) -> Terms:
        """Return how trials on these trees, or all, train: the longest interval and path count."""
        at = list(range(len(self.trees)) if trees is None else trees)
        return Terms(int(self.nodes.interval[at].max()), int(self.nodes.budget[at].max()), target)

    def landscape(self, trees: Sequence[int] | None = None) -> "TreeLandscape":
        """Return costs and metrics of trials, trial 0 on the first of these trees.

        If they are not given, trials begin on the trees that have their hyper-parameters.
        """
        return TreeLandscape(self, () if trees is None else trees)

    def alone_s(self, tree: int) -> float:
        """Return the seconds of the path that changes nothing, on a slot of speed 1."""
        nodes, at, found = self.nodes, int(self.nodes.start[tree]), 0.0
        while (at := int(nodes.child[at, 0])) >= 0:
            found += float(nodes.node_seconds[at])
        return found

    def with_speeds(self, cluster: Cluster, profiles: Profiles) -> Cluster:
        """Return a cluster whose slots have the measured speeds of their devices with each network.

        A slot with the device `cpu` has the speed that it gives, and one with the device on which a tree was
        recorded has 1; the nominal speed of others is the mean over the networks. Raises InputError for a
        device or a model without a factor.
        """
        speeds = DeviceSpeeds(profiles)
        bases = {kind.name.split(" +")[0]: kind for kind in self.kinds}
        recorded = {tree.model: tree.provenance.device.lower() for tree in self.trees}

        def filled(slot: Slot) -> Slot:
            if slot.device == CPU:
                return slot
            found = {
                name: 1.0
                if slot.device.lower() in recorded[kind.model]
                else speeds.speed(kind.model, kind.batch_size, slot.device).speed
                for name, kind in bases.items()
                if name not in slot.speeds
            }
            speeds_of = {**found, **slot.speeds}
            mean = sum(speeds_of.values()) / len(speeds_of)
            return replace(slot, speed=mean, speeds=speeds_of)

        return replace(cluster, each_slot=tuple(map(filled, cluster.all_slots)))

    def __deepcopy__(self, memo: Any) -> "TreeSet":
        return self


class TreeLandscape:
    """Metrics and costs of trials of exactly what was recorded in growth trees; nothing is interpolated.

    An interval takes the recorded seconds of its node on a slot of speed 1, or steps × seconds per step of
    its network, divided by the speed of the slot with the network that the tree began with.
    """

    def __init__(self, trees: TreeSet, places: Sequence[int]) -> None:
        self.trees = trees
        self._outcomes = TreeOutcomes(trees.nodes, np.array(places, np.int64))
        self._by_name = {kind.name: kind for kind in trees.kinds}

    @property
    def outcomes(self) -> TreeOutcomes:
        """Where trials are in their trees."""
        return self._outcomes

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of trials, in order."""
        return self.trees.nodes.kinds

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        nodes = self.trees.nodes
        at = nodes.start[self._tree(hyper)]
        for column in (0, *(nodes.changes.index(change) + 1 for change in changes)):
            at = nodes.child[at, column]
        return nodes.kinds[int(nodes.structure[at])]

    def network(self, hyper: Hyper, changes: tuple[str, ...]) -> Network:
        """Return the network of a trial and its blocks, as recorded."""
        recorded = self._by_name[self.kind(hyper, changes)].recorded
        return (Structure((), ()), ()) if recorded is None else (recorded.structure, recorded.blocks)

    def step_s(self, kind: str) -> float:
        return self._by_name[kind].step_s

    def size_mb(self, kind: str) -> float:
        return self.trees.size_mb

    def begin(self, trial: int, hyper: Hyper) -> None:
        if trial >= len(self.outcomes.tree):
            places = [*self.outcomes.tree, self._tree(hyper)]
            self._outcomes = TreeOutcomes(self.trees.nodes, np.array(places, np.int64))
        elif self.trees.hypers[self.outcomes.tree[trial]] != hyper:
            raise InputError(f"trial {trial} has other hyper-parameters than its growth tree")

    def train(self, trial: int, steps: int) -> float:
        raise AssertionError("compiled code walks along trees")

    def clone(self, trial: int, donor: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        raise AssertionError("compiled code clones positions in trees")

    def _tree(self, hyper: Hyper) -> int:
        if hyper not in self.trees.hypers:
            known = ", ".join(f"{name}={value}" for name, value in hyper.items())
            raise InputError(f"no growth tree has {known}; record one, or leave this trial out")
        return self.trees.hypers.index(hyper)

    def test_accuracy(self, trial: int) -> float:
        """Return the recorded test accuracy of a trial where it is now; NaN if it was not measured."""
        return float(self.trees.nodes.test_accuracy[self.outcomes.node_of[trial]])


def _check(tree: GrowthTree) -> None:
    """Raise InputError if a tree cannot be walked along."""
    tree.check_whole()
    lengths = sorted({tree.steps(prefix) for prefix in tree.nodes})
    if len(lengths) > 1 or lengths[0] < 1:
        said = ", ".join(map(str, lengths[:4]))
        raise InputError(
            f"{tree.name}: its intervals have {said}{' …' if len(lengths) > 4 else ''} steps; trials of a "
            "population report after equally many, so record it with equal intervals"
        )
    unknown = [prefix for prefix in tree.nodes if not tree.seconds(prefix) > 0.0]
    if unknown:
        raise InputError(
            f"{tree.name}: the seconds of {len(unknown)} of {len(tree.nodes)} nodes are not known; record it "
            "again with seconds per step"
        )


class _Kinds:
    """The kinds of trials on several trees, equal ones together."""

    def __init__(self) -> None:
        self.found: list[TreeKind] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._names: dict[str, int] = {}

    def number(self, tree: GrowthTree, prefix: Prefix) -> int:
        """Return the number of the kind at a node; a new one is added."""
        node, batch = tree.nodes[prefix], batch_size_of(tree)
        actions = tuple(tree.choices.actions[action] for action in tree.choices.changes(prefix))
        key: tuple[object, ...] = (tree.model, batch, id(tree), actions)
        recorded = None
        if node.structure != UNKNOWN:
            recorded = tree.structures[node.structure]
            key = (tree.model, batch, recorded.structure.fingerprint, recorded.step_s)
        if key not in self._numbers:
            self._numbers[key] = len(self.found)
            words = [tree.model, *([str(batch)] if batch else []), *(f"+{action}" for action in actions)]
            name = " ".join(words)
            self._names[name] = count = self._names.get(name, 0) + 1
            name = name if count == 1 else f"{name} +#{count}"
            step_s = recorded.step_s if recorded else _mean_step_s(tree, actions)
            self.found.append(TreeKind(name, tree.model, batch, actions, step_s, recorded))
        return self._numbers[key]


def _mean_step_s(tree: GrowthTree, actions: tuple[str, ...]) -> float:
    """Return the mean seconds per step of the intervals with these changes."""
    named = [
        prefix
        for prefix in tree.nodes
        if tuple(tree.choices.actions[action] for action in tree.choices.changes(prefix)) == actions
    ]
    return sum(map(tree.seconds, named)) / sum(map(tree.steps, named))


def _nodes(trees: Sequence[GrowthTree], kinds: _Kinds) -> TreeNodes:
    """Return the nodes of trees, one after the other, each with a node before its root."""
    nothing = str(NOTHING)
    changes = tuple(dict.fromkeys(c for tree in trees for c in tree.choices.actions if c != nothing))
    starts: list[int] = []
    parent: list[int] = []
    child, column, rows = [], [], []
    for tree in trees:
        table = tree.table()
        start = len(parent)
        starts.append(start)
        columns = [0 if c == nothing else changes.index(c) + 1 for c in tree.choices.actions]
        here = np.full((len(table.parent) + 1, len(changes) + 1), -1, np.int64)
        here[0, 0] = start + 1
        here[1:, columns] = np.where(table.child >= 0, table.child + start + 1, -1)
        child.append(here)
        parent += [-1, *(table.parent + start + 1).tolist()]
        column += [0, *(columns[prefix[-1]] if prefix else 0 for prefix in table.prefixes)]
        rows += list(_rows(tree, table.prefixes, kinds))
    structure, seconds, steps, loss, accuracy, test = map(np.array, zip(*rows, strict=True))
    interval = np.array([tree.steps(()) for tree in trees], np.int64)
    depth = np.array([tree.choices.decisions + 1 for tree in trees], np.int64)
    names = tuple(kind.name for kind in kinds.found)
    return TreeNodes(
        changes, np.vstack(child), np.array(parent, np.int64), np.array(column, np.int64),
        structure.astype(np.int64), seconds.astype(float), steps.astype(np.int64), loss.astype(float),
        accuracy.astype(float), test.astype(float), names, np.array(starts, np.int64),
        interval, interval * depth,
    )  # fmt: skip


def _rows(
    tree: GrowthTree, prefixes: Sequence[Prefix], kinds: _Kinds
) -> Iterator[tuple[int, float, int, float, float, float]]:
    """Yield kind, seconds, steps, loss, accuracy and test accuracy, first of the node before the root."""
    yield kinds.number(tree, ()), 0.0, 0, math.nan, math.nan, math.nan
    for prefix in prefixes:
        node = tree.nodes[prefix]
        measured = node.loss, node.accuracy, node.test_accuracy
        yield kinds.number(tree, prefix), tree.seconds(prefix), tree.steps(prefix), *measured
