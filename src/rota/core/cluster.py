"""Clusters of jobs and of populations: nodes with slots, behind switches; and which nodes jobs prefer."""

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import groupby
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats, Ints
from rota.core.columns import MODEL, PREFERENCE
from rota.core.errors import InputError, unknown

SLOWEST, FASTEST = 1e-6, 1e6  # limits of relative speeds
LARGEST = 1_000_000  # most slots that a cluster may have
CPU = "cpu"
"""Device kind of slots that are cores, not GPUs."""
DEFAULT = "default"
"""Stands for all models of which no speed is given."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine; each of its slots holds one worker of a gang."""

    slots: int
    switch: int = 0
    kind: str = "gpu"
    name: str = ""
    """Name; `node` and its number if not given."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A GPU, or a set of cores: it holds one worker of a gang, or trains one trial at a time."""

    node: int
    speed: float = 1.0
    """Speed relative to the other slots, such as a score."""
    speeds: Mapping[str, float] = field(default_factory=dict)
    """Model, or kind of trial → speed, where it differs from `speed`."""
    device: str = CPU

    def speed_of(self, kind: str) -> float:
        """Return the speed with a kind of trial; a grown network (`resnet18 64 +1`) counts as ungrown."""
        return self.speeds.get(kind, self.speeds.get(kind.split(" +")[0], self.speed))


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that joins or leaves the cluster at a given time."""

    at_s: float
    node: int
    joins: bool


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A node whose step times are multiplied by a factor from some time on."""

    at_s: float
    node: int
    factor: float


OnNode = TypeVar("OnNode", Slot, NodeChange, Slowdown)


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
    slowdowns: tuple[Slowdown, ...] = ()
    """Nodes that become slower, or as fast as before; only populations have them."""
    each_slot: tuple[Slot, ...] = ()
    """The slots one by one, if those of a node differ or are not numbered node by node; only populations
    have such slots."""

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
                _check_speed(f"cluster: speed of {model} on {kind} is {speed:g}", speed)
        for number, slot in enumerate(self.each_slot):
            for speed in (slot.speed, *slot.speeds.values()):
                _check_speed(f"slots: slot {number}: speed {speed:g}", speed)

    def _check_nodes(self) -> None:
        if not self.nodes:
            raise InputError("cluster: no nodes; give at least one")
        if self.slots > LARGEST:
            raise InputError(f"cluster: more than {LARGEST:,} slots; that is the most")
        counts = Counter(slot.node for slot in self.each_slot)
        for number, node in enumerate(self.nodes):
            if self.each_slot and node.slots != counts[number]:
                raise InputError(
                    f"cluster: node {number}: {node.slots} slots, but {counts[number]} are given"
                )
            if node.slots < 1 and not self.each_slot:
                raise InputError(f"cluster: node {number}: {node.slots} slots; it needs at least 1")
            if abs(node.switch) >= LARGEST:
                raise InputError(
                    f"cluster: node {number}: switch {node.switch:g}; give a number below {LARGEST:,}"
                )

    def _check_changes(self) -> None:
        what = "slots" if self.each_slot else "cluster"
        changes: tuple[NodeChange | Slowdown, ...] = (*self.changes, *self.slowdowns)
        for change in changes:
            if not (0 <= change.node < len(self.nodes) and 0.0 <= change.at_s < math.inf):
                raise InputError(
                    f"{what}: node {change.node} changes at {change.at_s:g} s; "
                    f"there are nodes 0 to {len(self.nodes) - 1}, and times are 0 or more"
                )
        for slowdown in self.slowdowns:
            if not 0.0 < slowdown.factor < math.inf:
                raise InputError(
                    f"{what}: node {slowdown.node}: factor {slowdown.factor:g}; it must be above 0"
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
        (Node(slots=2, switch=0, kind='cpu', name=''),)
        """
        if gpus:
            return cls((Node(gpus),))
        return cls((Node(len(own_cores()) if slots is None else slots, kind=CPU),))

    @classmethod
    def of_speeds(cls, speeds: Sequence[float]) -> "Cluster":
        """Return a cluster of one slot per node, with these speeds."""
        return cls.of_slots([Slot(node, speed) for node, speed in enumerate(speeds)])

    @classmethod
    def of_slots(
        cls,
        slots: Sequence[Slot],
        names: Sequence[str] = (),
        switches: Sequence[int] = (),
        changes: tuple[NodeChange, ...] = (),
        slowdowns: tuple[Slowdown, ...] = (),
    ) -> "Cluster":
        """Return a cluster of single slots, in this order, for a population.

        `names` and `switches` have an entry per node; all are at one switch if not given.
        """
        if not slots:
            raise InputError("slots: none; give at least one")
        if min(slot.node for slot in slots) < 0:
            raise InputError("slots: nodes are numbered from 0")
        least = 1 + max(slot.node for slot in slots)
        count = len(names) or least
        if count < least or len(switches) not in (0, count):
            raise InputError(f"slots: {least} nodes, but {count} names, {len(switches)} switches")
        sizes, kinds = Counter(slot.node for slot in slots), {slot.node: slot.device for slot in slots[::-1]}
        known_as, behind = names or [""] * count, switches or [0] * count
        nodes = [
            Node(sizes[node], behind[node], kinds.get(node, CPU), known_as[node]) for node in range(count)
        ]
        return cls(tuple(nodes), changes=changes, slowdowns=slowdowns, each_slot=tuple(slots))

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
    def all_slots(self) -> tuple[Slot, ...]:
        """The slots by their numbers."""
        if self.each_slot:
            return self.each_slot
        made: list[Slot] = []
        for number, node in enumerate(self.nodes):
            speeds = dict(self.speeds.get(node.kind, {}))
            made += [Slot(number, speeds.pop(DEFAULT, 1.0), speeds, node.kind)] * node.slots
        return tuple(made)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes."""
        return tuple(node.name or f"node{number}" for number, node in enumerate(self.nodes))

    @property
    def switches(self) -> tuple[int, ...]:
        """The switch of each node."""
        return tuple(node.switch for node in self.nodes)

    @property
    def late(self) -> frozenset[int]:
        """The nodes that are absent at first: those whose first change is a join."""
        first: dict[int, bool] = {}
        for change in sorted(self.changes, key=lambda change: change.at_s):
            first.setdefault(change.node, change.joins)
        return frozenset(node for node, joins in first.items() if joins)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The device kinds, in order of first appearance."""
        return tuple(dict.fromkeys(node.kind for node in self.nodes))

    def speed(self, model: str, kind: str) -> float:
        """Return the speed of a model on a device kind, relative to the reference device."""
        speeds = self.speeds.get(kind, {})
        return speeds.get(model, speeds.get(DEFAULT, 1.0))

    def spanned(self, count: int, efficiency: float = 1.0) -> "Cluster":
        """Return a cluster whose slots are `count` slots of a node each, as fast as the slowest allows.

        Remaining slots of a node are not used; a node without any is left out.
        """
        if count < 1 or not 0.0 < efficiency <= 1.0:
            raise InputError(
                f"slots: spans of {count}, efficiency {efficiency:g}; give 1 or more, and up to 1"
            )
        if count == 1:
            return self
        spans = []
        by_node = sorted(self.all_slots, key=lambda slot: (slot.node, -slot.speed))
        for _, group in groupby(by_node, key=lambda slot: slot.node):
            slots = list(group)
            whole = len(slots) - len(slots) % count
            spans += [slots[at : at + count] for at in range(0, whole, count)]
        if not spans:
            raise InputError(f"slots: no node has {count} slots for a trial; give fewer slots per trial")
        used = {node: place for place, node in enumerate(dict.fromkeys(span[0].node for span in spans))}
        return Cluster.of_slots(
            _renumbered((_bundle(span, efficiency) for span in spans), used),
            [self.names[node] for node in used],
            [self.switches[node] for node in used],
            _renumbered(self.changes, used),
            _renumbered(self.slowdowns, used),
        )

    def first_slots(self) -> NDArray[np.int32]:
        """Return the first slot of each node."""
        sizes = [node.slots for node in self.nodes]
        return np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int32)

    def slot_nodes(self) -> NDArray[np.int32]:
        """Return the node of each slot."""
        return np.repeat(np.arange(len(self.nodes)), [node.slots for node in self.nodes]).astype(np.int32)

    def table(self) -> NDArray[np.int32]:
        """Return the nodes as integer rows FIRST, SIZE, SWITCH, KIND, UP, for an engine of jobs.

        Raises InputError if only populations can use the cluster.
        """
        if self.each_slot:
            raise InputError("cluster: its slots are given one by one; jobs need nodes of equal slots")
        if self.slowdowns:
            raise InputError("cluster: its nodes slow down; only populations can be simulated on it")
        kinds = {kind: number for number, kind in enumerate(self.kinds)}
        late = self.late
        rows = [
            self.first_slots(),
            [node.slots for node in self.nodes],
            [node.switch for node in self.nodes],
            [kinds[node.kind] for node in self.nodes],
            [number not in late for number in range(len(self.nodes))],
        ]
        return np.array(rows, np.int32)


def _check_speed(what: str, speed: float) -> None:
    if not SLOWEST <= speed <= FASTEST:
        raise InputError(f"{what}; it must be {SLOWEST:g} to {FASTEST:g}")


def _renumbered(found: Iterable[OnNode], used: Mapping[int, int]) -> tuple[OnNode, ...]:
    """Return the items of used nodes; `used` maps nodes to their new numbers."""
    return tuple(replace(each, node=used[each.node]) for each in found if each.node in used)


def _bundle(slots: Sequence[Slot], efficiency: float) -> Slot:
    factor = len(slots) * efficiency
    kinds = {kind for slot in slots for kind in slot.speeds}
    speeds = {kind: factor * min(slot.speed_of(kind) for slot in slots) for kind in sorted(kinds)}
    return replace(slots[0], speed=factor * min(slot.speed for slot in slots), speeds=speeds)


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
    moves: bool = False
    """Whether running jobs move to faster devices that come free."""

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
