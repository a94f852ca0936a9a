"""A plan: which jobs run now, where, and with whom."""

import numpy as np
from numpy.typing import NDArray

from rota.core.columns import BEGIN, ROW, UNIT


class Plan:
    """What should be so now, in arrays that are filled anew for each instant.

    Jobs are grouped in units; the jobs of a unit share its slots. Position `k` of a job gives its
    row `index[ROW, k]`, its unit `index[UNIT, k]` and its pace; unit `u` has the slots
    `slots[index[BEGIN, u] : index[BEGIN, u + 1]]`.
    """

    __slots__ = ("index", "jobs", "order", "pace_s", "slots", "wake_at_s")

    def __init__(self, jobs: int, slots: int) -> None:
        self.index = np.zeros((3, jobs + 1), np.int32)
        self.slots = np.zeros(slots, np.int32)
        self.pace_s = np.zeros(jobs)
        self.jobs = 0
        self.order: NDArray[np.int32] | None = None
        """The list order to remember for next time; None leaves it as it is."""
        self.wake_at_s = np.inf
        """When the policy wants to be asked again, if nothing happens before."""

    @property
    def rows(self) -> NDArray[np.int32]:
        return self.index[ROW, : self.jobs]

    def slots_of(self, position: int) -> NDArray[np.int32]:
        unit = self.index[UNIT, position]
        return self.slots[self.index[BEGIN, unit] : self.index[BEGIN, unit + 1]]
