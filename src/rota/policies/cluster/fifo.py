"""First in, first out."""

from dataclasses import dataclass

import numpy as np

from rota.core.columns import JOB, PLACE
from rota.core.compiled import kernel
from rota.core.driver import CompiledKey
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
        return Needs(durations="unused")

    @property
    def compiled(self) -> CompiledKey:
        return CompiledKey(
            running_first, self.placement, strict=not self.backfill, keep=True, fixed_while_waiting=True
        )

    def plan(self, view: ClusterView) -> Plan:
        came = view.columns[JOB]
        running_first = view.rank(np.where(view.place < 0.0, came, -1.0))
        return first_fit(view, running_first, style=self.placement, strict=not self.backfill, keep=True)


@kernel
def running_first(columns, row, now_s):
    """Return the number of a waiting job, and -1 for a running one."""
    return columns[JOB, row] if columns[PLACE, row] < 0.0 else -1.0
