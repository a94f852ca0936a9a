"""SPA and GPA: the two schedulers that users of the originals know, put together from our parts."""

from typing import Any, NamedTuple

from rota.core.errors import ConfigError, unknown
from rota.core.registry import ClassContract, Registry
from rota.policies.allocation.allotment import Split
from rota.policies.allocation.era import Era
from rota.policies.allocation.eta import Eta
from rota.policies.population import AllocationPolicy, Retirement, RetireSlowest

NAMED: dict[str, tuple[Split, bool]] = {"spa": ("spa", False), "gpa": ("gpa", True)}
"""Name → how trials are shared out, and whether slots retire."""
MODES = {"ERA": Era, "ETA": Eta}


class PolicyParts(NamedTuple):
    """Of a policy."""

    allocation: AllocationPolicy
    retirement: Retirement | None


def named(name: str, mode: str = "ERA", *, original: bool = False) -> PolicyParts:
    """What a name and a `--mode` stand for; with `original`, as the originals have it, defects included."""
    if name.lower() not in NAMED:
        raise ConfigError(unknown("scheduler", name, NAMED))
    if mode.upper() not in MODES:
        raise ConfigError(unknown("mode", mode, MODES))
    split, retires = NAMED[name.lower()]
    allocation = MODES[mode.upper()](split=split, original=original)
    return PolicyParts(allocation, RetireSlowest(original=original) if retires else None)


ALLOCATIONS = {
    "fifo": "rota.policies.allocation.fifo:FifoAllocation",
    "era": "rota.policies.allocation.era:Era",
    "eta": "rota.policies.allocation.eta:Eta",
    "hrfs": "rota.policies.allocation.hrfs:Hrfs",
    "finish": "rota.policies.allocation.finish:Finish",
    "learned": "rota.policies.allocation.learned:Learned",
}

REGISTRY = Registry(
    ClassContract("allocation", "rota.Allocation", {"assign": ("view",)}, ("hand_out",)), ALLOCATIONS
)
"""What a class must have to be an allocation."""


def allocation_class(name: str) -> Any:
    """The class behind a name; only its own module is imported."""
    return REGISTRY.find(name)
