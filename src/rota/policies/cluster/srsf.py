"""Shortest remaining service first."""

from dataclasses import dataclass

from rota.core.costs import Ties
from rota.core.placement import Style, first_fit
from rota.core.policy import Needs, Plan
from rota.core.view import ClusterView


@dataclass(frozen=True, slots=True)
class Srsf:
    """Rank by remaining GPU time, then first fit."""

    placement: Style = "consolidated"
    """How a gang is placed on nodes."""

    @property
    def needs(self) -> Needs:
        return Needs(ties=Ties(ends_rel=1e-9, arrivals_rel=1e-9))

    def plan(self, view: ClusterView) -> Plan:
        return first_fit(view, view.rank(view.remaining * view.iteration_s * view.gpus), style=self.placement)
