"""Shortest remaining service first."""

from dataclasses import dataclass

from rota.core.policy import Plan
from rota.core.state import ClusterView
from rota.policies.cluster.srtf import Srtf


@dataclass(frozen=True, slots=True)
class Srsf(Srtf):
    """Rank by remaining GPU time, then first fit."""

    def plan(self, view: ClusterView) -> Plan:
        key = view.remaining * view.iteration_s * view.gpus
        return view.first_fit(view.rank(key), style=self.placement)
