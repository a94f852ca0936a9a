"""No evolution: every trial goes on as it is."""

from dataclasses import dataclass
from typing import Any

from rota.core.population.events import Continue
from rota.core.population.view import PopulationView
from rota.core.registry import ClassContract, Registry


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Trials do not learn from each other."""

    def judge(self, view: PopulationView, trial: int) -> Continue:
        return Continue(trial)


EVOLUTIONS = {
    "none": "rota.policies.evolution.registry:Unchanged",
    "pbt": "rota.policies.evolution.pbt:Pbt",
    "asha": "rota.policies.evolution.asha:Asha",
}

REGISTRY = Registry(
    ClassContract("evolution", "rota.Evolution", {"review": ("view", "trial")}, ("judge",)), EVOLUTIONS
)
"""What a class must have to be an evolution."""


def evolution_class(name: str) -> Any:
    """The class behind a name; only its own module is imported."""
    return REGISTRY.find(name)
