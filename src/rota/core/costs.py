"""Two cost models for starting a job.

`restart`   A job pays its start-up each time it starts or migrates; a job that stays on its slots pays
            nothing. This is how real clusters behave, and the default.
`interval`  The rule of the Muri simulator, for comparison with published numbers: every running job pays
            its start-up in every interval between two events, even if nothing happened to it, except in the
            interval in which it ends. All jobs are placed anew at every event.

The models are named here; the kernels that charge running jobs are in `core/kernels.py`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CostModel:
    """Rules for what a start costs, and what is lost without a checkpoint."""

    each_instant: bool = False
    """Whether running jobs pay and are placed anew at every instant (`interval`), not only at starts."""
    checkpoint_every_s: float = 0.0
    """Productive seconds between checkpoints; newer progress is lost on preemption or migration. 0 loses
    none."""


MURI_SCHEDULER_OVERHEAD = 1.015
"""Factor by which the Muri simulator lengthens iterations that were measured without its scheduler."""

RESTART = CostModel()
INTERVAL = CostModel(each_instant=True)
COSTS = {"restart": RESTART, "interval": INTERVAL}


@dataclass(frozen=True, slots=True)
class Ties:
    """How close two times must be to count as one instant; exactly equal by default."""

    ends_rel: float = 0.0
    """Relative distance within which an end joins the group of the first end visited."""
    ends_abs: float = 0.0
    """Distance in seconds within which groups of ends join the earliest one."""
    arrivals_rel: float = 0.0
    """Relative distance within which an arrival joins the first one."""
    merge_rel: float = 0.0
    merge_abs: float = 0.0
    """Distance within which an arrival and an end coincide, at the time of the arrival."""


EXACT = Ties()
