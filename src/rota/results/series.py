"""How full the cluster was and how long the queue, instant by instant."""

from dataclasses import dataclass

import numpy as np

from rota.core.arrays import Floats


@dataclass(frozen=True, slots=True)
class Series:
    """Steps: each value holds from its time until the next; the last time is the end of the run."""

    at_s: Floats
    waiting: Floats
    """Jobs without slots."""
    running: Floats
    """Jobs on slots."""
    busy: Floats
    """Slots with at least one job."""
    available: Floats
    """Slots of the nodes that are there."""

    def total(self, values: Floats) -> float:
        """The integral of one of the columns over the whole run, in (its unit) × seconds."""
        return float(np.sum(values[:-1] * np.diff(self.at_s)))

    def means(self, values: Floats, edges_s: Floats) -> Floats:
        """The mean of one of the columns in each interval between two edges; 0 outside the run."""
        held_s = np.concatenate(([0.0], np.cumsum(values[:-1] * np.diff(self.at_s))))
        sums = np.interp(edges_s, self.at_s, held_s)
        means: Floats = np.diff(sums) / np.diff(edges_s)
        return means
