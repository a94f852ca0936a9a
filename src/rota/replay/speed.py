"""How fast jobs run where they are: device kinds, and gangs that span nodes or switches."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rota.core.cluster import Cluster
from rota.core.columns import KIND
from rota.core.errors import unknown
from rota.core.plan import Plan
from rota.core.preference import Preferences, fastest_first
from rota.core.state import State
from rota.replay.kernels import stretch
from rota.workload.jobs import Workload
from rota.workload.profiles import MODELS


@dataclass(frozen=True, slots=True)
class Speed:
    """What the machines do to the pace of a job."""

    by_model: NDArray[np.float64]
    """Model × device kind → speed relative to the reference."""
    cross_node: float
    cross_switch: float

    @classmethod
    def of(cls, cluster: Cluster, jobs: Workload) -> "Speed":
        """The cluster's own speeds, and where it has none those that the workload was measured with.

        A `default` of the cluster's own is for all models that it does not name.
        """
        speeds = {kind: dict(jobs.speeds.get(kind, {})) for kind in cluster.kinds}
        for kind, own in cluster.speeds.items():
            speeds[kind] = {**({} if "default" in own else speeds[kind]), **own}
        known = Cluster(cluster.nodes, speeds=speeds)
        rows = [[known.speed(model, kind) for kind in cluster.kinds] for model in jobs.models]
        return cls(np.array(rows), cluster.cross_node, cluster.cross_switch)

    @property
    def is_even(self) -> bool:
        """Whether a job is equally fast everywhere, at the reference's speed."""
        return bool(np.all(self.by_model == 1.0)) and self.cross_node == self.cross_switch == 1.0

    def preferences(self, cluster: Cluster) -> Preferences:
        """Return which nodes jobs prefer if they prefer those that are fastest for their model."""
        return fastest_first(cluster, self.by_model, cluster.table()[KIND])

    def apply(self, plan: Plan, state: State) -> None:
        """Turn the paces of a plan, which are those on the reference device, into those on its slots."""
        stretch(
            state.columns, plan.index, plan.slots, plan.pace_s, plan.jobs, self.by_model,
            state.nodes, state.slot_node, self.cross_node, self.cross_switch,
        )  # fmt: skip


def odd_speeds(cluster: Cluster, jobs: Workload) -> list[str]:
    """Return a note for each model with a speed that neither the jobs nor rota's profiles have: a typo?"""
    known = {"default", *jobs.models, *MODELS}
    return [
        f"cluster.speeds.{kind}: {unknown('model', model, ['default', *jobs.models])}; no job has it"
        for kind, speeds in cluster.speeds.items()
        for model in speeds
        if model not in known
    ]
