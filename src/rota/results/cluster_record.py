"""A cluster as plain data for JSON, and back; equal nodes in a row are written once, with their number."""

from dataclasses import asdict
from itertools import groupby
from typing import Any

from rota.core.cluster import Cluster, Node, NodeChange


def record(cluster: Cluster) -> dict[str, Any]:
    return {
        "nodes": [{"count": len(list(same)), **asdict(node)} for node, same in groupby(cluster.nodes)],
        "slots_per_gpu": cluster.slots_per_gpu,
        "cross_node": cluster.cross_node,
        "cross_switch": cluster.cross_switch,
        "speeds": {kind: dict(speeds) for kind, speeds in cluster.speeds.items()},
        "changes": [asdict(change) for change in cluster.changes],
    }


def cluster(found: dict[str, Any]) -> Cluster:
    """The cluster that was recorded; KeyError or TypeError if it was not."""
    nodes = [
        Node(**{key: value for key, value in row.items() if key != "count"})
        for row in found["nodes"]
        for _ in range(row["count"])
    ]
    return Cluster(
        nodes=tuple(nodes),
        slots_per_gpu=found["slots_per_gpu"],
        cross_node=found["cross_node"],
        cross_switch=found["cross_switch"],
        speeds=found["speeds"],
        changes=tuple(NodeChange(**change) for change in found["changes"]),
    )
