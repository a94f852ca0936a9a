"""The allocations by name; `module:Class` and `path/to/file.py:Class` name those of others.

To add one to rota: write its file in this folder, add its line here. An allocation is a frozen dataclass
whose fields are its options, with `hand_out(view)` as in `rota.policies.population.AllocationPolicy`. The
contract tests over this table then cover it.
"""

from typing import Any

from rota.core.outside import Seam
from rota.core.registry import Registry

ALLOCATIONS = {
    "fifo": "rota.policies.allocation.fifo:Fifo",
    "era": "rota.policies.allocation.era:Era",
    "eta": "rota.policies.allocation.eta:Eta",
    "hrfs": "rota.policies.allocation.hrfs:Hrfs",
    "finish": "rota.policies.allocation.finish:Finish",
    "learned": "rota.policies.allocation.learned:Learned",
}

REGISTRY = Registry(Seam("allocation", "rota.Allocation", {"assign": ("view",)}, ("hand_out",)), ALLOCATIONS)
"""What a class must have to be an allocation."""


def allocation_class(name: str) -> Any:
    """The class behind a name; only its own module is imported."""
    return REGISTRY.find(name)
