"""TCA as the original has it: about how many intervals the others do while a slot does one.

The larger, the slower the slot. What the number should be is in `kernels.meanwhile`.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil, inf

from rota.core.population.view import PopulationView


def original_abilities(view: PopulationView) -> Mapping[int, int]:
    """Slot → TCA, from the first list of each slot; those without one are left out."""
    return _in_order(tuple((slot, float(view.first_s[slot])) for slot in view.measured))


@lru_cache(maxsize=256)
def _in_order(firsts: Sequence[tuple[int, float]]) -> Mapping[int, int]:
    """In the order of reports. A slot is compared with the fastest until then, and never again.

    The sum is built up in the place where the slot's own value is, which is passed on the way: a part of it
    may be counted, too. So the same times in another order give other values.
    """
    found: dict[int, int] = {}
    fastest_s = inf
    for slot, first_s in firsts:
        fastest_s = min(fastest_s, first_s)
        slowness = ceil(first_s / fastest_s)
        total = 0
        for other in sorted({*found, slot}):
            ability = total if other == slot else found[other]
            total += slowness // ability if ability else 0
        found[slot] = slowness + total
    return found
