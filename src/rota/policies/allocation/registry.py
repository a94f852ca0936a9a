"""Allocations by name, and SPA and GPA, the schedulers of the original systems, as combinations of them."""

from rota.core.errors import ConfigError, unknown
from rota.core.registry import ClassContract, Registry
from rota.policies.allocation.allotment import Split
from rota.policies.allocation.era import Era
from rota.policies.allocation.eta import Eta
from rota.policies.population import Retirement, RetireSlowest

NAMED: dict[str, tuple[Split, bool]] = {"spa": ("spa", False), "gpa": ("gpa", True)}
"""Name → how trials are divided over slots, and whether slots retire."""
MODES: dict[str, type[Era] | type[Eta]] = {"ERA": Era, "ETA": Eta}


def named(name: str, mode: str = "ERA", *, original: bool = False) -> tuple[Era | Eta, Retirement | None]:
    """Return allocation and retirement of a preset; with `original`, with the defects of the originals."""
    if name.lower() not in NAMED:
        raise ConfigError(unknown("scheduler", name, NAMED))
    if mode.upper() not in MODES:
        raise ConfigError(unknown("mode", mode, MODES))
    split, retires = NAMED[name.lower()]
    allocation: Era | Eta = MODES[mode.upper()](split=split, original=original)
    return allocation, RetireSlowest(original=original) if retires else None


ALLOCATIONS = {
    "fifo": "rota.policies.allocation.fifo:FifoAllocation",
    "era": "rota.policies.allocation.era:Era",
    "eta": "rota.policies.allocation.eta:Eta",
    "hrfs": "rota.policies.allocation.hrfs:Hrfs",
    "finish": "rota.policies.allocation.finish:Finish",
    "learned": "rota.policies.allocation.learned:Learned",
}
"""Rules for the makespan, which are compared unless others are named."""
BY_METRIC = {
    "promote": "rota.policies.allocation.promote:Promote",
    "joint": "rota.policies.allocation.joint:Joint",
}
"""Rules for the best metric at a deadline, and the agent that also lets networks grow."""

REGISTRY = Registry(
    ClassContract("allocation", "rota.Allocation", {"assign": ("view",)}, ("hand_out",)),
    {**ALLOCATIONS, **BY_METRIC},
)
allocation_class = REGISTRY.find
