"""Slots that a population trains on: their speeds, their measured step times, and the cost of assignments."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeVar

from rota.core.cluster import FASTEST, SLOWEST, NodeChange, late_nodes
from rota.core.errors import ConfigError, InputError


@dataclass(frozen=True, slots=True)
class Slot:
    """A GPU, or a set of cores, that trains one trial at a time."""

    node: int
    speed: float = 1.0
    """Speed relative to the other slots, such as a score."""
    speeds: Mapping[str, float] = field(default_factory=dict)
    """Kind of trial → speed, where it differs from `speed`."""
    device: str = "cpu"

    def speed_of(self, kind: str) -> float:
        """Return the speed with a kind of trial; a grown network (`resnet18 64 +1`) counts as ungrown."""
        return self.speeds.get(kind, self.speeds.get(kind.split(" +")[0], self.speed))


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A node whose step times are multiplied by a factor from some time on."""

    at_s: float
    node: int
    factor: float


OnNode = TypeVar("OnNode", Slot, NodeChange, Slowdown)


@dataclass(frozen=True, slots=True)
class PopulationCluster:
    """All slots of a population, and their nodes."""

    slots: tuple[Slot, ...]
    nodes: tuple[str, ...] = ()
    """Node names; numbered if not given."""
    switches: tuple[int, ...] = ()
    """Node → switch; one switch if not given."""
    changes: tuple[NodeChange, ...] = ()
    """Joins and leaves; a node whose first change is a join is absent before it."""
    slowdowns: tuple[Slowdown, ...] = ()

    def __post_init__(self) -> None:
        if not self.slots:
            raise InputError("slots: none; give at least one")
        count = 1 + max(slot.node for slot in self.slots)
        if min(slot.node for slot in self.slots) < 0:
            raise InputError("slots: nodes are numbered from 0")
        object.__setattr__(self, "nodes", self.nodes or tuple(f"node{node}" for node in range(count)))
        object.__setattr__(self, "switches", self.switches or (0,) * len(self.nodes))
        if len(self.nodes) < count or len(self.switches) != len(self.nodes):
            raise InputError(
                f"slots: {count} nodes, but {len(self.nodes)} names, {len(self.switches)} switches"
            )
        self._check_speeds()
        self._check_changes()

    def _check_speeds(self) -> None:
        for number, slot in enumerate(self.slots):
            for speed in (slot.speed, *slot.speeds.values()):
                if not SLOWEST <= speed <= FASTEST:
                    raise InputError(
                        f"slots: slot {number}: speed {speed:g}; it must be {SLOWEST:g} to {FASTEST:g}"
                    )

    def _check_changes(self) -> None:
        changes: tuple[NodeChange | Slowdown, ...] = (*self.changes, *self.slowdowns)
        for change in changes:
            if not (0 <= change.node < len(self.nodes) and 0.0 <= change.at_s < math.inf):
                raise InputError(
                    f"slots: node {change.node} changes at {change.at_s:g} s; "
                    f"there are nodes 0 to {len(self.nodes) - 1}, and times are 0 or more"
                )
        for slowdown in self.slowdowns:
            if not 0.0 < slowdown.factor < math.inf:
                raise InputError(
                    f"slots: node {slowdown.node}: factor {slowdown.factor:g}; it must be above 0"
                )

    @classmethod
    def of(cls, speeds: Sequence[float]) -> "PopulationCluster":
        """Return a cluster of one slot per node, with these speeds."""
        return cls(tuple(Slot(node, speed) for node, speed in enumerate(speeds)))

    @property
    def late(self) -> frozenset[int]:
        """The nodes that are absent at first."""
        return late_nodes(self.changes)

    def spanned(self, count: int, efficiency: float = 1.0) -> "PopulationCluster":
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
        by_node = sorted(self.slots, key=lambda slot: (slot.node, -slot.speed))
        for _, group in groupby(by_node, key=lambda slot: slot.node):
            slots = list(group)
            whole = len(slots) - len(slots) % count
            spans += [slots[at : at + count] for at in range(0, whole, count)]
        if not spans:
            raise InputError(f"slots: no node has {count} slots for a trial; give fewer slots per trial")
        used = {node: place for place, node in enumerate(dict.fromkeys(span[0].node for span in spans))}
        return PopulationCluster(
            _renumbered((_bundle(span, efficiency) for span in spans), used),
            tuple(self.nodes[node] for node in used),
            tuple(self.switches[node] for node in used),
            _renumbered(self.changes, used),
            _renumbered(self.slowdowns, used),
        )


def _renumbered(found: Iterable[OnNode], used: Mapping[int, int]) -> tuple[OnNode, ...]:
    """Return the items of used nodes; `used` maps nodes to their new numbers."""
    return tuple(replace(each, node=used[each.node]) for each in found if each.node in used)


def _bundle(slots: Sequence[Slot], efficiency: float) -> Slot:
    factor = len(slots) * efficiency
    kinds = {kind for slot in slots for kind in slot.speeds}
    speeds = {kind: factor * min(slot.speed_of(kind) for slot in slots) for kind in sorted(kinds)}
    return replace(slots[0], speed=factor * min(slot.speed for slot in slots), speeds=speeds)


LONGEST_S = 1e9
"""Longest cost in seconds; beside longer ones, training times would be lost in rounding."""


@dataclass(frozen=True, slots=True)
class AssignmentCosts:
    """Costs of an assignment apart from training."""

    dispatch_s: float = 0.0
    """Seconds to send an assignment to a slot, however long it is."""
    latency_s: float = 0.0
    """Seconds before the transfer of a checkpoint to another node starts."""
    bandwidth_mb_s: float = math.inf
    """Bandwidth between nodes at one switch."""
    cross_switch_mb_s: float = 0.0
    """Bandwidth between nodes at different switches; 0 if it is the same."""

    def __post_init__(self) -> None:
        for name in ("dispatch_s", "latency_s"):
            if not 0.0 <= getattr(self, name) <= LONGEST_S:
                raise ConfigError(f"{name} is {getattr(self, name):g}; it must be 0 to {LONGEST_S:g}")
        if not self.bandwidth_mb_s > 0.0 or not self.cross_switch_mb_s >= 0.0:
            raise ConfigError("bandwidth_mb_s and cross_switch_mb_s must be above 0")

    @property
    def moves_are_free(self) -> bool:
        """Whether checkpoints can be transferred in no time."""
        return not self.latency_s and self.bandwidth_mb_s == math.inf and not self.cross_switch_mb_s

    def move_s(self, size_mb: float, *, across: bool) -> float:
        """Return the seconds to transfer a checkpoint to another node, perhaps across switches."""
        bandwidth = self.cross_switch_mb_s if across and self.cross_switch_mb_s else self.bandwidth_mb_s
        return self.latency_s + size_mb / bandwidth
