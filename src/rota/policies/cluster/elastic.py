"""Shortest remaining time first, with gangs that grow into idle slots and shrink when others need them."""

from dataclasses import dataclass

from rota.core.driver import CompiledKey
from rota.core.placement import Style
from rota.core.policy import Needs, Plan
from rota.core.view import ClusterView
from rota.policies.cluster.srtf import remaining_s


@dataclass(frozen=True, slots=True)
class Elastic:
    """Rank by remaining time, give each job its smallest gang by first fit, then give out idle slots."""

    placement: Style = "consolidated"
    """How a gang is placed on nodes."""

    @property
    def needs(self) -> Needs:
        return Needs(resizes=True)

    @property
    def compiled(self) -> CompiledKey:
        return CompiledKey(remaining_s, style=self.placement, grows=True)

    def plan(self, view: ClusterView) -> Plan:
        return view.grow(view.first_fit(view.rank(view.remaining_s), style=self.placement))
