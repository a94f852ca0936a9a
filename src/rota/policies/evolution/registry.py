"""The evolutions by name; `module:Class` and `path/to/file.py:Class` name those of others.

To add one to rota: write its file in this folder, add its line here. An evolution is a frozen dataclass whose
fields are its options, with `judge(view, trial)` as in `rota.policies.population.EvolutionPolicy`. The
contract tests over this table then cover it. If it also has `check(trials)`, that is asked before anything
runs, and raises a ConfigError if its options do not fit them; `fitted(trials)` returns it with what it takes
over from them.
"""

from typing import Any

from rota.core.outside import Seam
from rota.core.registry import Registry

EVOLUTIONS = {
    "none": "rota.policies.evolution.none:Unchanged",
    "pbt": "rota.policies.evolution.pbt:Pbt",
    "asha": "rota.policies.evolution.asha:Asha",
}

REGISTRY = Registry(
    Seam("evolution", "rota.Evolution", {"review": ("view", "trial")}, ("judge",)), EVOLUTIONS
)
"""What a class must have to be an evolution."""


def evolution_class(name: str) -> Any:
    """The class behind a name; only its own module is imported."""
    return REGISTRY.find(name)
