"""The configuration of slots on Ray."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rota.core.cluster import Cluster
from rota.core.errors import ConfigError
from rota.core.limits import above
from rota.core.population.scores import ScoredDevice, Scores, read_scores
from rota.execution.engine import WorkerSetup
from rota.execution.local import check_group, cluster_of_groups
from rota.execution.ray import ActorSetup, NodeSelector, RayWorkers, SlotResources
from rota.execution.ray_cluster import RayCluster


@dataclass(frozen=True, slots=True)
class RaySlotConfig:
    """Some equal slots of a node."""

    count: int = 1
    """Number of slots."""
    speed: float = 1.0
    """Expected speed relative to other slots; it is measured from the first report on."""
    cpus: float = 1.0
    """Number of CPUs of each slot."""
    gpus: float = 0.0
    """Number of GPUs of each slot: 1, or 0.5 if two share a GPU."""
    resources: dict[str, float] = field(default_factory=dict)
    """Further resources of each slot, by the names that the node was started with."""
    node: str = "here"
    """The name of the node, here and, if no labels are given, in Ray: name, address or host."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of the node in Ray. Each node of these slots is a different one of the cluster."""

    def __post_init__(self) -> None:
        check_group(self.count, self.node)
        for name, amount in {"cpus": self.cpus, "gpus": self.gpus, **self.resources}.items():
            if not 0.0 <= amount < math.inf or (amount > 1.0 and amount % 1.0):
                raise ConfigError(f"{name} is {amount:g}; it must be a fraction of 1, or a whole number")

    def bundle(self) -> SlotResources:
        """Return the resources of one of the slots."""
        return SlotResources(self.cpus, self.gpus, self.resources)


@dataclass(frozen=True, slots=True)
class RayConfig:
    """Slots on Ray, each with an actor of its own."""

    address: str = ""
    """The address of a running cluster, or `auto`; without it one is started here for the run."""
    slots: tuple[RaySlotConfig, ...] = (RaySlotConfig(count=2),)
    """Groups of slots, in the order in which they are first assigned."""
    scores: Path | None = None
    """A score.json with the speeds of the nodes, by their names here."""
    shared: bool = True
    """Whether all nodes see the run folder; if not, checkpoints go through Ray's object store."""
    wait_s: float = 300.0
    """Maximal seconds until there are actors on all nodes that are there."""

    def __post_init__(self) -> None:
        above(0, finite=True, wait_s=self.wait_s)
        nodes = self.cluster().names
        self._check_labels()
        if not self.address and len(nodes) > 1:
            raise ConfigError(
                f"slots: nodes {', '.join(nodes)}, but without an address there is one, this machine; "
                "name the cluster with --address, or give all slots the same node"
            )

    def _check_labels(self) -> None:
        known: dict[tuple[str, str], str] = {}
        for group in self.slots:
            for label, value in group.labels.items():
                other = known.setdefault((group.node, label), value)
                if other != value:
                    raise ConfigError(f"slots: node {group.node}: {label} is both {other!r} and {value!r}")

    def cluster(self) -> Cluster:
        """Return the cluster: the groups of slots in their order, on their nodes."""
        return cluster_of_groups(
            (each.count, each.node, each.speed, "gpu" if each.gpus else "cpu") for each in self.slots
        )

    def scored(self) -> "RayConfig":
        """Return it with the speeds of the score file. The slowest slot has speed 1."""
        if self.scores is None:
            return self
        found = read_scores(self.scores)
        speeds = [_speed(found, group, self.scores) for group in self.slots]
        slots = (
            replace(group, speed=speed / min(speeds)) for group, speed in zip(self.slots, speeds, strict=True)
        )
        return replace(self, scores=None, slots=tuple(slots))

    def wanted(self) -> list[NodeSelector]:
        """Return the selector of the Ray node of each node."""
        if not self.address:
            return [NodeSelector()]
        found: dict[str, dict[str, str]] = {}
        for group in self.slots:
            found.setdefault(group.node, {}).update(group.labels)
        return [NodeSelector(name, labels) for name, labels in found.items()]

    def check(self) -> None:
        """Do nothing: only the cluster knows what there is."""

    def workers(self, cluster: Cluster, setup: WorkerSetup) -> RayWorkers:
        """Return workers on the Ray cluster, none of them started yet."""
        paths = setup.paths
        hello = setup.hello()
        bundles = [group.bundle() for group in self.slots for _ in range(group.count)]
        cpus = sum(bundle.cpus for bundle in bundles)
        return RayWorkers(
            cluster,
            self.wanted(),
            bundles,
            RayCluster(self.address, cpus, _sum(bundles), paths.ray.absolute()),
            ActorSetup(setup.trial, hello, paths.logs, self.shared),
            wait_s=self.wait_s,
        )


def _sum(bundles: Sequence[SlotResources]) -> dict[str, float]:
    """Return the total of all resources other than CPUs and GPUs."""
    names = {name for bundle in bundles for name in bundle.resources}
    return {name: sum(bundle.resources.get(name, 0.0) for bundle in bundles) for name in sorted(names)}


def _speed(scores: Scores, group: RaySlotConfig, file: Path) -> float:
    """Return the speed of the bundle that one of these slots is, or of its share."""
    device, core = ScoredDevice(group.node, "GPU" if group.gpus else "CPU"), group.gpus or group.cpus
    score = scores.get(device)
    if score is None or not score.score > 0.0:
        raise ConfigError(f"{file}: no score of {device}; measure it with rota score --address")
    if score.core != max(core, 1.0):
        raise ConfigError(f"{file}: {device}: its score is for {score.core}, but the slots take {core:g}")
    return score.score * min(core, 1.0)
