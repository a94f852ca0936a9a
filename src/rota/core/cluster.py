"""The machines: nodes with slots of one device kind each, hanging off switches."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rota.core.errors import InputError

SLOWEST, FASTEST = 1e-6, 1e6  # relative speeds beyond these are mistakes
LARGEST = 1_000_000  # slots that a cluster may have


@dataclass(frozen=True, slots=True)
class Node:
    """One machine; a slot of it is what one worker of a gang occupies."""

    slots: int
    switch: int = 0
    kind: str = "gpu"


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that joins or leaves at a given time."""

    at_s: float
    node: int
    joins: bool


def late_nodes(changes: Iterable[NodeChange]) -> frozenset[int]:
    """The nodes that are not there at first: those whose first change is a join."""
    first: dict[int, bool] = {}
    for change in sorted(changes, key=lambda change: change.at_s):
        first.setdefault(change.node, change.joins)
    return frozenset(node for node, joins in first.items() if joins)


@dataclass(frozen=True, slots=True)
class Cluster:
    """All nodes that are ever there, and what makes them unequal."""

    nodes: tuple[Node, ...]
    cross_node: float = 1.0
    """Factor on the synchronise stage of a gang that spans nodes."""
    cross_switch: float = 1.0
    """Factor on the synchronise stage of a gang that spans switches."""
    speeds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Device kind → model → speed relative to the reference; the model `default` is for the rest."""
    slots_per_gpu: int = 1
    """Above 1 a slot is a fraction of a GPU; each GPU is then a node and each machine a switch."""
    changes: tuple[NodeChange, ...] = ()
    """A node whose first change is a join is not there before it."""

    def __post_init__(self) -> None:
        self._check_nodes()
        self._check_changes()
        for name in ("cross_node", "cross_switch"):
            if not 1.0 <= getattr(self, name) < math.inf:
                raise InputError(f"cluster: {name} is {getattr(self, name)}; it slows down, so at least 1")
        for kind, speeds in self.speeds.items():
            for model, speed in speeds.items():
                if not SLOWEST <= speed <= FASTEST:
                    raise InputError(
                        f"cluster: speed of {model} on {kind} is {speed}; it must be {SLOWEST} to {FASTEST}"
                    )

    def _check_nodes(self) -> None:
        if not self.nodes:
            raise InputError("cluster: it has no nodes; give at least one")
        if self.slots > LARGEST:
            raise InputError(f"cluster: it has {self.slots:,} slots; at most {LARGEST:,} can be simulated")
        for number, node in enumerate(self.nodes):
            if node.slots < 1:
                raise InputError(f"cluster: node {number}: {node.slots} slots; it needs at least 1")

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
    def uniform(cls, nodes: int, slots: int, switches: int = 1) -> "Cluster":
        """`nodes` equal nodes per switch."""
        return cls(tuple(Node(slots, switch) for switch in range(switches) for _ in range(nodes)))

    @property
    def slots(self) -> int:
        return sum(node.slots for node in self.nodes)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The device kinds, in order of first appearance."""
        return tuple(dict.fromkeys(node.kind for node in self.nodes))

    def speed(self, model: str, kind: str) -> float:
        speeds = self.speeds.get(kind, {})
        return speeds.get(model, speeds.get("default", 1.0))

    def first_slots(self) -> NDArray[np.int32]:
        """The first slot of each node."""
        sizes = [node.slots for node in self.nodes]
        return np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int32)

    def slot_nodes(self) -> NDArray[np.int32]:
        """The node of each slot."""
        return np.repeat(np.arange(len(self.nodes)), [node.slots for node in self.nodes]).astype(np.int32)

    def table(self) -> NDArray[np.int32]:
        """The nodes as rows of numbers: FIRST, SIZE, SWITCH, KIND, UP, NEXT, HEAD."""
        kinds = {kind: number for number, kind in enumerate(self.kinds)}
        late = late_nodes(self.changes)
        rows = [
            self.first_slots(),
            [node.slots for node in self.nodes],
            [node.switch for node in self.nodes],
            [kinds[node.kind] for node in self.nodes],
            [number not in late for number in range(len(self.nodes))],
            *self._neighbours(),
        ]
        return np.array(rows, np.int32)

    def _neighbours(self) -> tuple[list[int], list[bool]]:
        """The next node at the same switch, and whether a node is the first there."""
        following = [-1] * len(self.nodes)
        last: dict[int, int] = {}
        for number, node in enumerate(self.nodes):
            if node.switch in last:
                following[last[node.switch]] = number
            last[node.switch] = number
        followers = set(following)
        return following, [number not in followers for number in range(len(self.nodes))]
