"""What it costs to start a job, in two models that must not be mixed up.

`restart`   A job pays its start-up each time it starts or moves; one that is chosen again keeps its
            slots and pays nothing. What a real cluster does, and the default.
`interval`  The rule of the Muri simulator, for comparison with published numbers: every running job
            loses its start-up in every interval between two events, even if nothing happened to it,
            except in the interval in which it ends; everything is placed anew from an empty cluster.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CostModel:
    """How starts are charged."""

    each_instant: bool = False
    """Charge every running job at every instant (`interval`) instead of each start (`restart`)."""
    checkpoint_every_s: float = 0.0
    """Productive seconds between checkpoints; what is newer is lost by a pause or a move. 0 loses nothing."""

    @property
    def keeps_slots(self) -> bool:
        """Whether a running job that is chosen again stays where it is."""
        return not self.each_instant


SCHEDULED = 1.015
"""An iteration under a scheduler takes this much longer than was measured without one."""

RESTART = CostModel()
INTERVAL = CostModel(each_instant=True)
COSTS = {"restart": RESTART, "interval": INTERVAL}


@dataclass(frozen=True, slots=True)
class Ties:
    """How close two times must be to count as one instant; exact unless a reference says otherwise."""

    ends_rel: float = 0.0
    """Ends join the group of the first one visited within this relative distance."""
    ends_abs: float = 0.0
    """Groups of ends this close to the earliest join it."""
    arrivals_rel: float = 0.0
    """Arrivals join the first one within this relative distance."""
    merge_rel: float = 0.0
    merge_abs: float = 0.0
    """An arrival and an end this close happen together, at the time of the arrival."""


EXACT = Ties()
