"""The allocations by name. To add one: write its file in this folder, add its line here.

An allocation is a frozen dataclass whose fields are its options, with `hand_out(view)` as in
`rota.policies.population.Allocation`. The contract tests over this table then cover it.
"""

from importlib import import_module
from typing import Any

from rota.core.errors import ConfigError, unknown

ALLOCATIONS = {
    "fifo": "rota.policies.allocation.fifo:Fifo",
    "era": "rota.policies.allocation.era:Era",
    "eta": "rota.policies.allocation.eta:Eta",
    "hrfs": "rota.policies.allocation.hrfs:Hrfs",
    "finish": "rota.policies.allocation.finish:Finish",
    "learned": "rota.policies.allocation.learned:Learned",
}


def allocation_class(name: str) -> Any:
    """The class behind a name; only its own module is imported."""
    if name not in ALLOCATIONS:
        raise ConfigError(unknown("allocation", name, ALLOCATIONS))
    module, attribute = ALLOCATIONS[name].split(":")
    return getattr(import_module(module), attribute)
