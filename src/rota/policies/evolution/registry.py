"""The evolutions by name. To add one: write its file in this folder, add its line here.

An evolution is a frozen dataclass whose fields are its options, with `judge(view, trial)` as in
`rota.policies.population.Evolution`. The contract tests over this table then cover it. If it also has
`check(trials)`, that is asked before anything runs, and raises a ConfigError if its options do not fit them.
"""

from importlib import import_module
from typing import Any

from rota.core.errors import ConfigError, unknown

EVOLUTIONS = {
    "none": "rota.policies.evolution.none:Unchanged",
    "pbt": "rota.policies.evolution.pbt:Pbt",
    "asha": "rota.policies.evolution.asha:Asha",
}


def evolution_class(name: str) -> Any:
    """The class behind a name; only its own module is imported."""
    if name not in EVOLUTIONS:
        raise ConfigError(unknown("evolution", name, EVOLUTIONS))
    module, attribute = EVOLUTIONS[name].split(":")
    return getattr(import_module(module), attribute)
