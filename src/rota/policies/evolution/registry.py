"""Evolutions by name, among them none."""

from dataclasses import dataclass

from rota.core.population.events import Continue
from rota.core.population.view import PopulationView
from rota.core.registry import ClassContract, Registry


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Trials that never learn from each other."""

    def decide(self, view: PopulationView, trial: int) -> Continue:
        return Continue(trial)


EVOLUTIONS = {
    "none": "rota.policies.evolution.registry:Unchanged",
    "pbt": "rota.policies.evolution.pbt:Pbt",
    "asha": "rota.policies.evolution.asha:Asha",
}
REGISTRY = Registry(
    ClassContract("evolution", "rota.Evolution", {"review": ("view", "trial")}, ("decide",)), EVOLUTIONS
)
evolution_class = REGISTRY.find
