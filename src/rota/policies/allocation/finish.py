"""Be done soon: the fastest idle slot first, and never work that the others would finish sooner."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rota.core.compiled import kernel
from rota.core.errors import ConfigError
from rota.core.population.decisions import Hand
from rota.core.population.view import View
from rota.policies.allocation.outlook import (
    ALL_DONE,
    ENDS,
    LISTS,
    MORE,
    MOVES,
    NOTHING,
    STEPS,
    Outlook,
    fastest_first,
)

SLACK, PATIENCE = 0.002, 100.0


@dataclass(frozen=True, slots=True)
class Finish:
    """Chooses the list after which all would be done soonest, by estimate.

    Of equals, one after which fewer dispatches are expected, then whole intervals before a part of one, then
    trials that suit the slot, then the shortest; a slot is left idle only if that is better than any list.
    """

    slack: float = SLACK
    """Estimates that differ by less than this share are equal."""
    patience: float = PATIENCE
    """Lists of more than an interval take at most so many times what it costs to hand them out: what is on a
    long list stays there, whatever becomes of the slot."""

    def __post_init__(self) -> None:
        if not (self.slack >= 0.0 and self.patience >= 0.0):
            raise ConfigError(f"slack is {self.slack}, patience {self.patience}; give 0 or more")

    def hand_out(self, view: View) -> Iterator[Hand]:
        free = view.costs.dispatch_s == 0.0 and view.costs.moves_are_free
        for slot in fastest_first(view):
            if not view.waiting:
                return
            outlook = Outlook(view, slot, short=free)
            chosen = choose(outlook.candidates, view.terms.interval, self.slack, self.patience)
            if chosen != NOTHING:
                yield Hand(slot, outlook.parts(view, chosen))


@kernel
def choose(candidates, interval, slack, patience):  # type: ignore[no-untyped-def]
    """The position of the best candidate."""
    soonest = np.inf
    for row in candidates:
        if row[STEPS] <= interval or row[ENDS] <= patience * row[MOVES]:
            soonest = min(soonest, row[ALL_DONE])
    best, best_key = NOTHING, (2, 0.0, 0, 0, 0.0)
    for c in range(len(candidates)):
        row = candidates[c]
        key = (int(c == NOTHING), row[MORE], int(row[STEPS] < interval), int(c <= LISTS), row[STEPS])
        short = row[STEPS] <= interval or row[ENDS] <= patience * row[MOVES]
        if short and row[ALL_DONE] <= soonest * (1.0 + slack) and key < best_key:
            best, best_key = c, key
    return best
