"""No evolution: every trial goes on as it is."""

from dataclasses import dataclass

from rota.core.population.decisions import Continue
from rota.core.population.view import View


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Trials do not learn from each other."""

    def judge(self, view: View, trial: int) -> Continue:
        return Continue(trial)
