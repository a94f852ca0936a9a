"""What a configuration may say about the slots of this machine."""

import os
import re
from dataclasses import dataclass

from rota.core.cluster import LARGEST
from rota.core.errors import ConfigError
from rota.core.population.fleet import Fleet, Slot
from rota.execution.engine import Assignment
from rota.execution.gpus import is_missing
from rota.execution.local import LocalWorkers, Place

MOST_PROCESSES = 1024
"""On one machine, beyond which it would be busy with nothing but to start them."""
NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
GPU = re.compile(r"[A-Za-z0-9-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class LocalSlotConfig:
    """Some equal slots of this machine."""

    count: int = 1
    """How many of them."""
    speed: float = 1.0
    """What is expected, relative to others; it is measured from the first report on."""
    cores: int = 1
    """That each is pinned to, the next ones each time; 0: it may use all."""
    gpu: str = ""
    """The number of the GPU that they use, as CUDA_VISIBLE_DEVICES has it; several slots may share one."""
    node: str = "here"
    """What the node is called."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= LARGEST:
            raise ConfigError(f"count is {self.count}; it must be 1 to {LARGEST:,}")
        if self.cores < 0:
            raise ConfigError(f"cores is {self.cores}; it must be 0 or more")
        if not NODE.fullmatch(self.node):
            raise ConfigError(f"node is {self.node!r}; use letters, digits, dots, dashes and underscores")
        if not GPU.fullmatch(self.gpu):
            raise ConfigError(f"gpu is {self.gpu!r}; give the number or the UUID of one GPU")


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """Slots of this machine, each with a process of its own."""

    slots: tuple[LocalSlotConfig, ...] = (LocalSlotConfig(count=2),)
    """In this order they are idle at first."""

    def __post_init__(self) -> None:
        if (slots := len(self.fleet().slots)) > MOST_PROCESSES:
            raise ConfigError(
                f"slots: they are {slots:,}, each with a process on this machine; at most {MOST_PROCESSES:,}"
            )

    def fleet(self) -> Fleet:
        nodes: dict[str, int] = {}
        slots = []
        for group in self.slots:
            node = nodes.setdefault(group.node, len(nodes))
            device = f"gpu {group.gpu}" if group.gpu else "cpu"
            slots += [Slot(node, group.speed, device=device)] * group.count
        return Fleet(tuple(slots), tuple(nodes))

    def check(self) -> None:
        """Raise ConfigError if a slot asks for more cores than there are, or for a GPU that is not there.

        Slots may share cores and GPUs.
        """
        there = len(own_cores())
        for number, group in enumerate(self.slots):
            where, mend = f"local.slots[{number}]", "change the file, or --set local.slots="
            if group.cores > there:
                raise ConfigError(
                    f"{where}: cores is {group.cores}, but this process may use {there} of this machine's; "
                    f"{mend}'[{{count = {group.count}, cores = {there}}}]'"
                )
            if group.gpu and is_missing(group.gpu):
                raise ConfigError(
                    f"{where}: gpu is {group.gpu!r}, but this process sees no such GPU (nvidia-smi -L, "
                    f"CUDA_VISIBLE_DEVICES); {mend}'[{{count = {group.count}}}]'"
                )

    def places(self, cores: list[int]) -> list[Place]:
        """Which of these cores each slot computes on: one after the other, from the start when they end."""
        places, at = [], 0
        for group in self.slots:
            for _ in range(group.count):
                mine = {cores[(at + more) % len(cores)] for more in range(group.cores)}
                places.append(Place(tuple(sorted(mine)), group.gpu))
                at += group.cores
        return places

    def workers(self, fleet: Fleet, assignment: Assignment) -> LocalWorkers:
        hello = assignment.hello()
        logs = assignment.books.logs
        return LocalWorkers(fleet, self.places(own_cores()), assignment.trial, hello, logs)


def own_cores() -> list[int]:
    """Those that this process may use; none can be named where there is no way to pin."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
