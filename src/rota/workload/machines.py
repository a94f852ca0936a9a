"""Readers for machines: the Muri simulator's cluster files and Alibaba's list of nodes."""

from pathlib import Path

from rota.core.cluster import Cluster, Node
from rota.core.errors import TraceError
from rota.core.table import read_table

CLUSTER_FIELDS = ("num_switch", "num_node_p_switch", "num_gpu_p_node")
NODE_FIELDS = ("sn", "gpu", "model")


def read_cluster(path: Path) -> Cluster:
    """Equal nodes: `num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node` and one row.

    CPUs and memory are not modelled.
    """
    table = read_table(path, CLUSTER_FIELDS)
    if len(table) != 1:
        raise TraceError(
            f"{path}: {len(table)} rows after the header; expected 1, which describes the whole cluster"
        )
    switches, nodes, gpus = (int(table.wholes(name, at_least=1)[0]) for name in CLUSTER_FIELDS)
    return Cluster.uniform(nodes, gpus, switches)


def read_nodes(path: Path) -> Cluster:
    """Unequal nodes: Alibaba's `openb_node_list`, `sn,cpu_milli,memory_mib,gpu,model`, a row per node.

    Nodes without GPUs are left out; all hang off one switch, as the list does not say.
    """
    table = read_table(path, NODE_FIELDS)
    table.ids("sn")
    with_gpus = table.keep(table.wholes("gpu") > 0)
    if not len(with_gpus):
        raise TraceError(f"{path}: no node in it has a GPU")
    gpus, kinds = with_gpus.wholes("gpu").tolist(), with_gpus.texts("model")
    return Cluster(tuple(Node(int(slots), kind=kind) for slots, kind in zip(gpus, kinds, strict=True)))
