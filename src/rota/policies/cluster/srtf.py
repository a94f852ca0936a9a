"""Shortest remaining time first."""

from dataclasses import dataclass

from rota.core.costs import Ties
from rota.core.loop import Needs
from rota.core.plan import Plan
from rota.core.state import View
from rota.policies.cluster.placement import Style, first_fit


@dataclass(frozen=True, slots=True)
class Srtf:
    """Rank by the time that is left to do, then first fit."""

    placement: Style = "consolidated"
    """How a gang is put on nodes."""

    @property
    def needs(self) -> Needs:
        return Needs(ties=Ties(ends_rel=1e-9, arrivals_rel=1e-9))

    def plan(self, view: View) -> Plan:
        return first_fit(view, view.rank(view.remaining * view.iteration_s), style=self.placement)
