"""How fast jobs run where they are: device kinds, and gangs that span nodes or switches."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rota.core.cluster import Cluster
from rota.core.columns import BEGIN, KIND, MODEL, ROW, SWITCH, SYNC_S, UNIT
from rota.core.plan import Plan
from rota.core.state import State
from rota.workload.jobs import Workload


@dataclass(frozen=True, slots=True)
class Speed:
    """What the machines do to the pace of a job."""

    by_model: NDArray[np.float64]
    """Model × device kind → speed relative to the reference."""
    cross_node: float
    cross_switch: float

    @classmethod
    def of(cls, cluster: Cluster, jobs: Workload) -> "Speed":
        """The cluster's own speeds, and where it has none those that the workload was measured with."""
        speeds = {**jobs.speeds, **cluster.speeds}
        known = Cluster(cluster.nodes, speeds=speeds)
        rows = [[known.speed(model, kind) for kind in cluster.kinds] for model in jobs.models]
        return cls(np.array(rows), cluster.cross_node, cluster.cross_switch)

    @property
    def is_even(self) -> bool:
        """Whether a job is equally fast everywhere, at the reference's speed."""
        return bool(np.all(self.by_model == 1.0)) and self.cross_node == self.cross_switch == 1.0

    def apply(self, plan: Plan, state: State) -> None:
        """Turn the paces of a plan, which are those on the reference device, into those on its slots."""
        stretch(
            state.columns, plan.index, plan.slots, plan.pace_s, plan.jobs, self.by_model,
            state.nodes, state.slot_node, self.cross_node, self.cross_switch,
        )  # fmt: skip


@njit(cache=True)
def stretch(columns, index, slots, pace_s, jobs, speeds, nodes, slot_node, cross_node, cross_switch):
    """The slowest slot sets the speed of a gang, the slowest member that of a unit; crossing adds to the synchronise stage."""
    k = 0
    while k < jobs:
        unit = index[UNIT, k]
        begin, end = index[BEGIN, unit], index[BEGIN, unit + 1]
        first = slot_node[slots[begin]]
        crossing = 1.0
        for i in range(begin, end):
            node = slot_node[slots[i]]
            if nodes[SWITCH, node] != nodes[SWITCH, first]:
                crossing = max(crossing, cross_switch)
            elif node != first:
                crossing = max(crossing, cross_node)
        members = k
        slowest_s = 0.0
        while members < jobs and index[UNIT, members] == unit:
            row = index[ROW, members]
            model = int(columns[MODEL, row])
            speed = np.inf
            for i in range(begin, end):
                speed = min(speed, speeds[model, nodes[KIND, slot_node[slots[i]]]])
            slowest_s = max(slowest_s, pace_s[members] / speed + (crossing - 1.0) * columns[SYNC_S, row])
            members += 1
        for member in range(k, members):
            pace_s[member] = slowest_s
        k = members
