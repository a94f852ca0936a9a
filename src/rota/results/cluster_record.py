"""A cluster as plain data for JSON, and back; equal nodes in a row are written once, with their number."""

from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from rota.core.cluster import Cluster, Node, NodeChange, spelled_out


@dataclass(frozen=True, slots=True)
class NodesRecord:
    """Some equal nodes in a row."""

    count: int
    slots: int
    switch: int
    kind: str


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """What is written of a cluster."""

    nodes: tuple[NodesRecord, ...]
    slots_per_gpu: int
    cross_node: float
    cross_switch: float
    speeds: dict[str, dict[str, float]]
    changes: tuple[NodeChange, ...]


def record(cluster: Cluster) -> dict[str, Any]:
    return {
        "nodes": [{"count": len(list(same)), **asdict(node)} for node, same in groupby(cluster.nodes)],
        "slots_per_gpu": cluster.slots_per_gpu,
        "cross_node": cluster.cross_node,
        "cross_switch": cluster.cross_switch,
        "speeds": {kind: dict(speeds) for kind, speeds in cluster.speeds.items()},
        "changes": [asdict(change) for change in cluster.changes],
    }


def cluster(found: ClusterRecord) -> Cluster:
    """The cluster that was recorded; an InputError if there can be no such."""
    return Cluster(
        nodes=spelled_out((row.count, Node(row.slots, row.switch, row.kind)) for row in found.nodes),
        slots_per_gpu=found.slots_per_gpu,
        cross_node=found.cross_node,
        cross_switch=found.cross_switch,
        speeds=found.speeds,
        changes=found.changes,
    )
