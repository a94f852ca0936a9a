"""Trials that walk along growth trees: metrics and seconds of exactly what was recorded, in flat arrays.

All trees are one array of nodes. A trial is at a node, and an interval takes it to a child: column 0 of
`child` is to change nothing, column c + 1 is change c. Each tree has a node before its root, where trials
start; only the root follows it.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats, Ints, Mask
from rota.core.compiled import carray, kernel
from rota.core.memory import pointer
from rota.core.population.memory import GREW, GROWN, KIND, STATUS, events_of, trials_of
from rota.core.population.outcomes import ALONG_TREES
from rota.core.population.view import WAITING


@kernel
def child_of(p):
    """Return the child of each node by change, -1 where that is not allowed; column 0 changes nothing."""
    return carray(pointer(p.child), (p.tree_nodes, p.tree_changes), np.int64)


@kernel
def nodes_of(p):
    """Return the node of each trial at its last report."""
    return carray(pointer(p.node_of), p.n_trials, np.int64)


@kernel
def pending_of(p):
    """Return the change of each trial before its next interval, as a column of `child`; 0 for none."""
    return carray(pointer(p.pending), p.n_trials, np.int64)


@kernel
def may_grow(p, trial, column):
    """Return whether a trial may make a change, a column of `child`, now."""
    if p.outcome != ALONG_TREES or not 1 <= column < p.tree_changes:
        return False
    trials = trials_of(p)
    if trials[STATUS, trial] != WAITING or trials[GREW, trial]:
        return False
    return child_of(p)[nodes_of(p)[trial], column] >= 0


@kernel
def kind_after(p, trial, column):
    """Return the kind of a trial with a change, which it must be allowed to make."""
    node = child_of(p)[nodes_of(p)[trial], column]
    return carray(pointer(p.structure), p.tree_nodes, np.int64)[node]


@kernel
def grow_along(p, trial, column):
    """Let a trial change its network before its next interval; it must be allowed to."""
    trials = trials_of(p)
    trials[KIND, trial] = kind_after(p, trial, column)
    trials[GREW, trial] = 1
    pending_of(p)[trial] = column
    p.growths += 1
    event = events_of(p)[p.count]
    event.at_s, event.kind, event.slot, event.trial = p.now_s, GROWN, -1, trial
    event.steps, event.more = column - 1, 0
    p.count += 1


@kernel
def recorded_s(p, trial):
    """Return the seconds of a trial's next interval on a slot of speed 1, and walk on in training."""
    training = carray(pointer(p.training), p.n_trials, np.int64)
    at, reported = training[trial], nodes_of(p)[trial]
    training[trial] = child_of(p)[at, pending_of(p)[trial] if at == reported else 0]
    return carray(pointer(p.node_seconds), p.tree_nodes, np.float64)[training[trial]]


@kernel
def start_over(p, trial):
    """Let a trial that is assigned train from where it last reported."""
    carray(pointer(p.training), p.n_trials, np.int64)[trial] = nodes_of(p)[trial]


@kernel
def metric_along(p, trial):
    """Walk on by an interval that is reported, and return the metric there."""
    nodes, pending = nodes_of(p), pending_of(p)
    nodes[trial] = child_of(p)[nodes[trial], pending[trial]]
    pending[trial] = 0
    return carray(pointer(p.accuracy), p.tree_nodes, np.float64)[nodes[trial]]


@kernel
def clone_along(p, trial, donor):
    """Put a trial where its donor is, with what the donor changes next."""
    nodes, pending = nodes_of(p), pending_of(p)
    nodes[trial], pending[trial] = nodes[donor], pending[donor]
    trials = trials_of(p)
    trials[GREW, trial] = pending[trial] != 0
    start_over(p, trial)


CONSTANT = ("child", "structure", "node_seconds", "accuracy")
"""Arrays over nodes that compiled code sees."""


@dataclass(frozen=True)
class TreeNodes:
    """The nodes of all trees of a population; they do not change."""

    changes: tuple[str, ...]
    """Change → its text; change c is column c + 1 of `child`."""
    child: Ints
    parent: Ints
    """Node → the node before it; -1 for the start of a tree."""
    column: Ints
    """Node → the column of `child` that leads to it."""
    structure: Ints
    """Node → kind of a trial there, as a position in `kinds`."""
    node_seconds: Floats
    """Node → seconds of its interval on a slot of speed 1."""
    steps: Ints
    """Node → steps of its interval."""
    loss: Floats
    accuracy: Floats
    test_accuracy: Floats
    """NaN if it was not measured."""
    kinds: tuple[str, ...]
    start: Ints
    """Tree → the node before its root."""
    interval: Ints
    """Tree → steps of each interval."""
    budget: Ints
    """Tree → steps of a path."""

    @cached_property
    def grows_later(self) -> Mask:
        """Node → whether a change is allowed somewhere below its children."""
        found = np.zeros(len(self.parent), np.bool_)
        for node in np.flatnonzero((self.child[:, 1:] >= 0).any(1)).tolist():
            above = int(self.parent[node])
            while above >= 0 and not found[above]:
                found[above] = True
                above = int(self.parent[above])
        return found

    def path(self, node: int) -> list[int]:
        """Return the columns that lead to a node, from the root's on."""
        found = []
        while self.parent[node] >= 0:
            found.append(int(self.column[node]))
            node = int(self.parent[node])
        return found[::-1]

    def __deepcopy__(self, memo: Any) -> "TreeNodes":
        return self


class TreeOutcomes:
    """Where trials are in their trees."""

    __slots__ = ("node_of", "nodes", "pending", "training", "tree")
    kind = ALONG_TREES

    def __init__(self, nodes: TreeNodes, trees: Ints) -> None:
        self.nodes = nodes
        self.tree = np.array(trees, np.int64)
        """Trial → tree on which it began."""
        self.node_of: Ints = nodes.start[self.tree].copy()
        """Trial → node of its last report."""
        self.training: Ints = self.node_of.copy()
        """Trial → node that it trains, or of its last report."""
        self.pending: Ints = np.zeros(len(self.tree), np.int64)
        """Trial → the change before its next interval, as a column of `child`."""

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the arrays that compiled code sees."""
        nodes = self.nodes
        of_nodes = {name: getattr(nodes, name) for name in CONSTANT}
        return of_nodes | {name: getattr(self, name) for name in ("node_of", "training", "pending")}

    def numbers(self) -> Mapping[str, float]:
        """Return the fields of the record."""
        rows, columns = self.nodes.child.shape
        return {"tree_nodes": rows, "tree_changes": columns}

    def changes_of(self, trial: int) -> tuple[str, ...]:
        """Return the changes of a trial's network since the start, with that before its next interval."""
        columns = [*self.nodes.path(int(self.node_of[trial])), int(self.pending[trial])]
        return tuple(self.nodes.changes[column - 1] for column in columns if column)

    def __deepcopy__(self, memo: Any) -> "TreeOutcomes":
        fork = copy.copy(self)
        for name in ("node_of", "training", "pending"):
            setattr(fork, name, getattr(self, name).copy())
        return fork
