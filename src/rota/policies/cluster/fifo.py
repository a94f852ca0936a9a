"""First in, first out."""

from dataclasses import dataclass

import numpy as np

from rota.core.columns import JOB
from rota.core.placement import Style, first_fit
from rota.core.policy import Needs, Plan
from rota.core.view import ClusterView


@dataclass(frozen=True, slots=True)
class Fifo:
    """Running jobs keep running; the others start in order of arrival."""

    backfill: bool = False
    """Let later jobs overtake one that does not fit; without it none overtakes the head of the queue."""
    placement: Style = "consolidated"
    """How a gang is placed on nodes."""

    @property
    def needs(self) -> Needs:
        return Needs()

    def plan(self, view: ClusterView) -> Plan:
        came = view.columns[JOB]
        running_first = view.rank(np.where(view.place < 0.0, came, -1.0))
        return first_fit(view, running_first, style=self.placement, strict=not self.backfill, keep=True)
