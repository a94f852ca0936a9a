"""First come, first served: the next trial to the slot that has been idle for longest."""

from dataclasses import dataclass

from rota.core.compiled import kernel
from rota.core.population.memory import IDLE, PASS, population_at, slots_of
from rota.core.population.policies import CompiledAllocation, ProposingAllocation
from rota.core.population.proposals import has_no_turn, propose_first


@dataclass(frozen=True, slots=True)
class FifoAllocation(ProposingAllocation):
    """One interval of one trial at a time, on any slot."""

    @property
    def compiled(self) -> CompiledAllocation:
        return FIFO


@kernel
def propose(address):  # type: ignore[no-untyped-def]
    """Propose the first trial for the slot that has been idle for longest."""
    p = population_at(address)
    return PASS if has_no_turn(p) else propose_first(p, slots_of(p)[IDLE, 0], 1)


FIFO = CompiledAllocation(propose)
