"""What compiled allocations have in common: turns of idle slots, and how an assignment is proposed.

A compiled allocation is a kernel `propose(address)` of the engine's record. It proposes one assignment by
`propose_first` or `propose_steps`, or returns PASS. It is called again once the assignment was made.
"""

import numpy as np

from rota.core.compiled import kernel
from rota.core.population.memory import (
    BUDGET,
    GIVEN,
    IDLE,
    OK,
    QUEUE,
    STEPS,
    TURN,
    slots_of,
    trials_of,
)


@kernel
def propose_first(p, slot, count):
    """Propose the next interval of each of the first trials in the queue."""
    p.slot, p.start, p.chosen_trials, p.chosen_steps = slot, 0, count, 0
    return OK


@kernel
def propose_steps(p, slot, start, steps):
    """Propose so many steps from a position of the queue on; 0 to leave the slot idle."""
    p.slot, p.start, p.chosen_trials, p.chosen_steps = slot, start, 0, steps
    return OK


@kernel
def propose_part(p, slot, at, steps):
    """Propose so many steps of the trial at a position of the queue, or as many as it has left."""
    trials = trials_of(p)
    trial = trials[QUEUE, at]
    return propose_steps(
        p, slot, at, min(steps, trials[BUDGET, trial] - trials[STEPS, trial] - trials[GIVEN, trial])
    )


@kernel
def begin_turns(p, keys, slots):
    """Begin the turns of these slots by their keys, the lowest first; equal ones in the given order."""
    turns = slots_of(p)[TURN]
    for i in range(len(slots)):
        at = i
        while at > 0 and keys[turns[at - 1]] > keys[slots[i]]:
            turns[at] = turns[at - 1]
            at -= 1
        turns[at] = slots[i]
    p.turn, p.turns = 0, len(slots)


@kernel
def idle_slots(p):
    """Return the idle slots in the order in which they became idle."""
    return slots_of(p)[IDLE][: p.idle]


@kernel
def next_turn(p):
    """Return the next slot in turn; -1 if there is none, or no trial waits."""
    if p.turn >= p.turns or p.waiting == 0:
        return -1
    p.turn += 1
    return slots_of(p)[TURN, p.turn - 1]


@kernel
def has_no_turn(p):
    """Return whether no slot can get anything."""
    return p.idle == 0 or p.waiting == 0


@kernel
def as_idle(p):
    """Return keys by which slots are served as they became idle."""
    return np.zeros(p.n_slots)
