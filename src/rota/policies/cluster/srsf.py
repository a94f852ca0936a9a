"""Shortest remaining service first."""

from dataclasses import dataclass

from rota.core.columns import GPUS
from rota.core.compiled import kernel
from rota.core.driver import CompiledKey
from rota.core.durations import known_left_s
from rota.core.policy import Plan
from rota.core.view import ClusterView
from rota.policies.cluster.srtf import Srtf


@dataclass(frozen=True, slots=True)
class Srsf(Srtf):
    """Rank by remaining GPU time, then first fit."""

    @property
    def compiled(self) -> CompiledKey:
        return CompiledKey(remaining_gpu_s, style=self.placement, fixed_while_waiting=True)

    def plan(self, view: ClusterView) -> Plan:
        key = view.remaining * view.iteration_s * view.gpus
        return view.first_fit(view.rank(key), style=self.placement)


@kernel
def remaining_gpu_s(columns, row, now_s):
    """Return the GPU-seconds of work left of a job."""
    return known_left_s(columns, row) * columns[GPUS, row]
