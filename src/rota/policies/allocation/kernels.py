"""What is asked at every placement, compiled."""

from math import inf, sqrt

from rota.core.compiled import kernel
from rota.core.population.view import TrialStatus

WAITING, FINISHED = int(TrialStatus.WAITING), int(TrialStatus.FINISHED)


@kernel
def meanwhile(slot, kind, step_s, spread, caution, up, retired, trial_s):
    """Whole intervals that others do in the time of one on this slot; -1 if it was never measured.

    With caution, the slot is taken to be so many standard deviations slower than it is on average. Slots
    that were never measured, are not there or were given up do nothing meanwhile.
    """
    if trial_s[slot] == inf:
        return -1
    mine_s = step_s[slot, kind] * (1.0 + caution * sqrt(spread[slot, kind]))
    total = 0
    for other in range(len(up)):
        if other != slot and up[other] and not retired[other] and trial_s[other] < inf:
            total += int(mine_s / step_s[other, kind])
    return total


@kernel
def standing(steps, status, leader, interval, budget):
    """Intervals that waiting trials are behind the leading one, and intervals that all have left."""
    behind = left = 0
    for trial in range(len(steps)):
        if status[trial] == WAITING:
            behind += -((steps[trial] - leader) // interval)
        if status[trial] < FINISHED:
            left += -((steps[trial] - budget) // interval)
    return behind, left
