"""Clusters: nodes with slots of one device kind each, behind switches, and which nodes jobs prefer."""

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats, Ints
from rota.core.columns import MODEL, PREFERENCE
from rota.core.errors import InputError, unknown

SLOWEST, FASTEST = 1e-6, 1e6  # limits of relative speeds
LARGEST = 1_000_000  # most slots that a cluster may have
CPU = "cpu"
"""Device kind of slots that are cores, not GPUs."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine; each of its slots holds one worker of a gang."""

    slots: int
    switch: int = 0
    kind: str = "gpu"


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that joins or leaves the cluster at a given time."""

    at_s: float
    node: int
    joins: bool


def expand_kinds(groups: Iterable[tuple[int, Node]]) -> tuple[Node, ...]:
    """Return all nodes of groups of equal ones. Raises InputError if there are too many slots to simulate."""
    nodes: list[Node] = []
    slots = 0
    for count, node in groups:
        slots += count * node.slots
        if slots > LARGEST or count > LARGEST:
            raise InputError(f"cluster: more than {LARGEST:,} slots; that is the most")
        nodes += [node] * count
    return tuple(nodes)


def late_nodes(changes: Iterable[NodeChange]) -> frozenset[int]:
    """Return the nodes that are absent at first: those whose first change is a join."""
    first: dict[int, bool] = {}
    for change in sorted(changes, key=lambda change: change.at_s):
        first.setdefault(change.node, change.joins)
    return frozenset(node for node, joins in first.items() if joins)


@dataclass(frozen=True, slots=True)
class Cluster:
    """All nodes that ever belong to a cluster, and how they differ.

    >>> import rota
    >>> rota.Cluster.uniform(nodes=64, gpus=8).slots
    512
    >>> [(node.kind, node.slots) for node in rota.Cluster.of(v100=12, p100=4).nodes]
    [('v100', 8), ('v100', 4), ('p100', 4)]
    """

    nodes: tuple[Node, ...]
    cross_node: float = 1.0
    """Factor on the synchronise stage of a gang that spans nodes."""
    cross_switch: float = 1.0
    """Factor on the synchronise stage of a gang that spans switches."""
    speeds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Device kind → model → speed relative to the reference device; the model `default` is for all others."""
    slots_per_gpu: int = 1
    """Slots per GPU. Above 1, each GPU is modelled as a node and each machine as a switch."""
    changes: tuple[NodeChange, ...] = ()
    """Joins and leaves; a node whose first change is a join is absent before it."""

    def __post_init__(self) -> None:
        self._check_nodes()
        self._check_changes()
        for name in ("cross_node", "cross_switch"):
            if not 1.0 <= getattr(self, name) < math.inf:
                raise InputError(f"cluster: {name} is {getattr(self, name)}; it must be at least 1")
        for kind, speeds in self.speeds.items():
            if kind not in self.kinds:
                raise InputError(f"cluster.speeds: {unknown('device kind', kind, self.kinds)}")
            for model, speed in speeds.items():
                if not SLOWEST <= speed <= FASTEST:
                    raise InputError(
                        f"cluster: speed of {model} on {kind} is {speed}; it must be {SLOWEST} to {FASTEST}"
                    )

    def _check_nodes(self) -> None:
        if not self.nodes:
            raise InputError("cluster: no nodes; give at least one")
        if self.slots > LARGEST:
            raise InputError(f"cluster: more than {LARGEST:,} slots; that is the most")
        for number, node in enumerate(self.nodes):
            if node.slots < 1:
                raise InputError(f"cluster: node {number}: {node.slots} slots; it needs at least 1")
            if abs(node.switch) >= LARGEST:
                raise InputError(
                    f"cluster: node {number}: switch {node.switch:g}; give a number below {LARGEST:,}"
                )

    def _check_changes(self) -> None:
        for change in self.changes:
            if not 0 <= change.node < len(self.nodes):
                raise InputError(
                    f"cluster: a change names node {change.node}; there are nodes 0 to {len(self.nodes) - 1}"
                )
            if not change.at_s >= 0.0:
                raise InputError(
                    f"cluster: node {change.node}: changes at {change.at_s} s; times are 0 or more"
                )

    @classmethod
    def uniform(cls, nodes: int, gpus: int, switches: int = 1) -> "Cluster":
        """Return a cluster of `switches` switches with `nodes` equal nodes each, of `gpus` GPUs."""
        return cls(expand_kinds((nodes, Node(gpus, switch)) for switch in range(switches)))

    @classmethod
    def of(
        cls,
        kinds: Mapping[str, int] | None = None,
        /,
        *,
        per_node: int = 8,
        speeds: Mapping[str, Mapping[str, float]] | None = None,
        **more: int,
    ) -> "Cluster":
        """Return a cluster with the given number of GPUs of each kind, on nodes of at most `per_node` GPUs.

        `speeds` maps kinds to models to speeds relative to the reference device; the model `default` is for
        all others: `{"v100": {"default": 2.0}}`. Kinds that are not Python identifiers are given as a
        dictionary.
        """
        if per_node < 1:
            raise InputError(f"cluster: per_node is {per_node}; it must be at least 1")
        counts = {**(kinds or {}), **more}
        groups: list[tuple[int, Node]] = []
        for kind, gpus in counts.items():
            if gpus < 1:
                raise InputError(f"cluster: {gpus} GPUs of kind {kind}; give at least 1")
            full, rest = divmod(gpus, per_node)
            groups += [(full, Node(per_node, kind=kind)), (int(rest > 0), Node(rest, kind=kind))]
        return cls(expand_kinds(groups), speeds=speeds or {})

    @classmethod
    def local(cls, slots: int | None = None, *, gpus: int = 0) -> "Cluster":
        """Return this machine as a cluster of CPU slots; by default one per core that this process may use.

        With `gpus` it has that many GPU slots instead.

        >>> import rota
        >>> rota.Cluster.local(2).nodes
        (Node(slots=2, switch=0, kind='cpu'),)
        """
        if gpus:
            return cls((Node(gpus),))
        return cls((Node(len(own_cores()) if slots is None else slots, kind=CPU),))

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> "Cluster":
        """Return the cluster in the table `[cluster]` of a TOML file, or in the whole file if it has none."""
        # Configurations are a layer above this one, so their reader is imported at run time.
        found: Cluster = import_module("rota.library.inputs").read_cluster_toml(path)
        return found

    @property
    def slots(self) -> int:
        """The number of slots."""
        return sum(node.slots for node in self.nodes)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The device kinds, in order of first appearance."""
        return tuple(dict.fromkeys(node.kind for node in self.nodes))

    def speed(self, model: str, kind: str) -> float:
        """Return the speed of a model on a device kind, relative to the reference device."""
        speeds = self.speeds.get(kind, {})
        return speeds.get(model, speeds.get("default", 1.0))

    def first_slots(self) -> NDArray[np.int32]:
        """Return the first slot of each node."""
        sizes = [node.slots for node in self.nodes]
        return np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int32)

    def slot_nodes(self) -> NDArray[np.int32]:
        """Return the node of each slot."""
        return np.repeat(np.arange(len(self.nodes)), [node.slots for node in self.nodes]).astype(np.int32)

    def table(self) -> NDArray[np.int32]:
        """Return the nodes as integer rows FIRST, SIZE, SWITCH, KIND, UP."""
        kinds = {kind: number for number, kind in enumerate(self.kinds)}
        late = late_nodes(self.changes)
        rows = [
            self.first_slots(),
            [node.slots for node in self.nodes],
            [node.switch for node in self.nodes],
            [kinds[node.kind] for node in self.nodes],
            [number not in late for number in range(len(self.nodes))],
        ]
        return np.array(rows, np.int32)


@dataclass(frozen=True, slots=True)
class Speed:
    """Speeds of models on the devices of a cluster, and slowdowns across nodes and switches."""

    by_model: Floats
    """Model × device kind → speed relative to the reference device."""
    cross_node: float
    cross_switch: float

    @property
    def is_even(self) -> bool:
        """Whether every job runs at the reference speed everywhere."""
        return bool(np.all(self.by_model == 1.0)) and self.cross_node == self.cross_switch == 1.0


@dataclass(frozen=True, slots=True)
class Preferences:
    """Orders in which jobs prefer the nodes, and the order that applies to each model."""

    rows: NDArray[np.int32]
    """Rows LISTED, NEXT, HEAD and RANK of each order, as in `rota.core.columns`."""
    of_model: Ints
    """Model → number of its order; empty if there is only one."""

    def put_into(self, table: Floats) -> Floats:
        """Return the table of jobs with the order of each; the same table if there is only one order."""
        if not self.of_model.any():
            return table
        table = table.copy()
        table[PREFERENCE] = self.of_model[table[MODEL].astype(np.int64)]
        return table


def as_listed(cluster: Cluster) -> Preferences:
    """Return the preferences of jobs that prefer nodes in the order of the cluster."""
    return Preferences(_rows(cluster, np.zeros(len(cluster.nodes), np.int64)), np.zeros(0, np.int64))


def fastest_first(cluster: Cluster, speeds: Floats, groups: NDArray[np.int32]) -> Preferences:
    """Return the preferences of jobs that prefer fast nodes; equally fast ones stay in the cluster's order.

    `groups` has the group of each node, `speeds` (model × group) the speed of each model there. Each group
    has a node.
    """
    ranks, of_model = np.unique([_ranks(row) for row in speeds], axis=0, return_inverse=True)
    return Preferences(np.vstack([_rows(cluster, row[groups]) for row in ranks]), of_model.reshape(-1))


def _ranks(speeds: Floats) -> Ints:
    """Return 0 for the fastest, 1 for the next …; equally fast ones share a rank."""
    return np.unique(-speeds, return_inverse=True)[1].reshape(-1)


def _rows(cluster: Cluster, ranks: Ints) -> NDArray[np.int32]:
    """Return the rows of one order: by the rank of each node, then as in the cluster."""
    listed = np.argsort(ranks, kind="stable")
    following, heads = np.full(len(listed), -1), np.zeros(len(listed))
    last: dict[int, int] = {}
    for node in listed.tolist():
        switch = cluster.nodes[node].switch
        if switch in last:
            following[last[switch]] = node
        else:
            heads[node] = 1
        last[switch] = node
    return np.array([listed, following, heads, ranks], np.int32)


def own_cores() -> list[int]:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
