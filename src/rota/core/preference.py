"""Which nodes a job prefers: those that are fastest for its model, or those that are listed first."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats, Ints
from rota.core.cluster import Cluster
from rota.core.columns import MODEL, PREFERENCE


@dataclass(frozen=True, slots=True)
class Preferences:
    """The orders in which jobs prefer the nodes, and which of them the jobs of each model have."""

    rows: NDArray[np.int32]
    """The rows LISTED, NEXT, HEAD and RANK of each order, as in `rota.core.columns`."""
    of_model: Ints
    """Model → its order; empty if there is only one."""

    def put_into(self, table: Floats) -> Floats:
        """Return the table of jobs with the order of each; the same table if there is only one order."""
        if not self.of_model.any():
            return table
        table = table.copy()
        table[PREFERENCE] = self.of_model[table[MODEL].astype(np.int64)]
        return table


def as_listed(cluster: Cluster) -> Preferences:
    """Return the preferences of jobs to which all nodes are alike: the first one first."""
    return Preferences(_rows(cluster, np.zeros(len(cluster.nodes), np.int64)), np.zeros(0, np.int64))


def fastest_first(cluster: Cluster, speeds: Floats, groups: NDArray[np.int32]) -> Preferences:
    """Return the preferences of jobs that are better off on fast nodes; equally fast ones stay as listed.

    `groups` has the group of each node, `speeds` (model × group) how fast each model is there; each group has
    a node.
    """
    ranks, of_model = np.unique([_ranks(row) for row in speeds], axis=0, return_inverse=True)
    return Preferences(np.vstack([_rows(cluster, row[groups]) for row in ranks]), of_model.reshape(-1))


def _ranks(speeds: Floats) -> Ints:
    """0 for the fastest, 1 for the next …; equally fast ones share a rank."""
    return np.unique(-speeds, return_inverse=True)[1].reshape(-1)


def _rows(cluster: Cluster, ranks: Ints) -> NDArray[np.int32]:
    """The rows of one order: by the rank of each node, then as listed."""
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
