"""What a configuration may say about the slots of a population, and how it becomes a fleet."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from rota.core.cluster import LARGEST, NodeChange
from rota.core.errors import ConfigError, unknown
from rota.core.population.fleet import Fleet, Slot, Slowdown


@dataclass(frozen=True, slots=True)
class SlotConfig:
    """Some equal slots."""

    speed: float
    """Relative: a step that takes a second at speed 1 takes half a second at speed 2."""
    count: int = 1
    """How many of them."""
    node: str = ""
    """The node that they are on; each is on one of its own if not given."""
    switch: int = 0
    """That the node is at."""
    device: str = "cpu"
    """What they are: for people, to find them in `population.profiles`, and for the shares of the originals,
    which are per node and device."""
    speeds: dict[str, float] = field(default_factory=dict)
    """Kind of trial → speed with it, where that is another."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= LARGEST:
            raise ConfigError(f"count is {self.count}; it must be 1 to {LARGEST:,}")


@dataclass(frozen=True, slots=True)
class ChangeConfig:
    """A node that leaves or joins."""

    at_s: float
    node: str
    what: Literal["leave", "join"]


@dataclass(frozen=True, slots=True)
class SlowdownConfig:
    """From a moment on a node takes so many times as long as it should."""

    at_s: float
    node: str
    factor: float


@dataclass(frozen=True, slots=True)
class MachinesConfig:
    """Unequal slots on nodes that may slow down, fail and come back."""

    slots: tuple[SlotConfig, ...]
    """In this order they are idle at first."""
    per_trial: int = 1
    """Slots of a node that a trial takes."""
    efficiency: float = 1.0
    """Of a trial that takes several, in each of them."""
    changes: tuple[ChangeConfig, ...] = ()
    """Nodes that leave and join; one that joins first is not there before."""
    slowdowns: tuple[SlowdownConfig, ...] = ()
    """Nodes that become slower, or as fast again as they were (factor 1)."""

    def __post_init__(self) -> None:
        self.build()

    def build(self) -> Fleet:
        """The fleet; what is wrong with it is an error."""
        return self.spanned(self.apart())

    def apart(self) -> Fleet:
        """With each slot by itself, however many a trial takes."""
        named = {group.node for group in self.slots}
        numbers: dict[str, int] = {}
        switches: list[int] = []
        slots: list[Slot] = []
        for group in self.slots:
            for _ in range(group.count):
                node = group.node or _unused(numbers, named)
                if node not in numbers:
                    numbers[node] = len(numbers)
                    switches.append(group.switch)
                if switches[numbers[node]] != group.switch:
                    raise ConfigError(f"slots: {node} is at two switches; give its slots the same")
                slots.append(Slot(numbers[node], group.speed, group.speeds, group.device))
        nodes = tuple(numbers)
        return Fleet(
            tuple(slots),
            nodes,
            tuple(switches),
            tuple(NodeChange(c.at_s, _number(nodes, c.node), c.what == "join") for c in self.changes),
            tuple(Slowdown(s.at_s, _number(nodes, s.node), s.factor) for s in self.slowdowns),
        )

    def spanned(self, fleet: Fleet) -> Fleet:
        """Slots as trials take them."""
        return fleet.spanned(self.per_trial, self.efficiency)


def _unused(numbers: Collection[str], named: Collection[str]) -> str:
    """The name of the next node that has none: its number, unless another one is called so."""
    names = (f"node{number}" for number in count(len(numbers)))
    return next(name for name in names if name not in named and name not in numbers)


def _number(nodes: tuple[str, ...], name: str) -> int:
    if name not in nodes:
        raise ConfigError(unknown("node", name, nodes))
    return nodes.index(name)
