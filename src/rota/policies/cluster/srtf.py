"""Shortest remaining time first."""

from dataclasses import dataclass

from rota.core.compiled import kernel
from rota.core.costs import Ties
from rota.core.driver import CompiledKey
from rota.core.durations import known_left_s
from rota.core.placement import Style
from rota.core.policy import Needs, Plan
from rota.core.view import ClusterView


@dataclass(frozen=True, slots=True)
class Srtf:
    """Rank by remaining time, then first fit."""

    placement: Style = "consolidated"
    """How a gang is placed on nodes."""

    @property
    def needs(self) -> Needs:
        return Needs(ties=Ties(ends_rel=1e-9, arrivals_rel=1e-9))

    @property
    def compiled(self) -> CompiledKey:
        return CompiledKey(remaining_s, style=self.placement, fixed_while_waiting=True)

    def plan(self, view: ClusterView) -> Plan:
        return view.first_fit(view.rank(view.remaining_s), style=self.placement)


@kernel
def remaining_s(columns, row, now_s):
    """Return the seconds of work left of a job."""
    return known_left_s(columns, row)
