"""What workers answer: about trials of a population, and about slices of jobs."""

import json

from rota.execution.jobs.slices import PARTS, Slice, Sliced, sliced
from rota.execution.orders import Done, Order, Undone, done

AnyOrder = Order | Slice
AnyAnswer = Done | Undone | Sliced


def parse_answer(line: bytes) -> AnyAnswer:
    found = json.loads(line)
    if PARTS in found:
        return sliced(found[PARTS])
    if "metric" in found:
        return done(found)
    return Undone(**found)
