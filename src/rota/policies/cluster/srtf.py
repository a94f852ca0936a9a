"""Shortest remaining time first."""

from rota.core.costs import Ties
from rota.core.plan import Plan
from rota.core.state import View
from rota.policies.cluster.placement import first_fit


class Srtf:
    """Rank by what is left to do, then first fit."""

    ties = Ties(ends_rel=1e-9, arrivals_rel=1e-9)

    def plan(self, view: View) -> Plan:
        return first_fit(view, view.rank(view.remaining * view.iteration_s))
