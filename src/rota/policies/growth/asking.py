"""Ask a growth policy about a trial that is about to be assigned."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rota.core.errors import IllegalPlan
from rota.core.network import NOTHING, Change, GrowthPolicy, Observation
from rota.core.population.events import Assign, Decision, Grow, Interval
from rota.core.population.view import PopulationView


def observation_of(view: PopulationView, trial: int, allowed: tuple[str, ...]) -> Observation:
    """Return what a growth policy sees of a trial, with the changes that it may make now, then nothing.

    Without a deadline, the time that is left is that of the trial's own steps.
    """
    structure, blocks = view.network(trial)
    deadline_s = view.numbers["deadline_s"].item()
    left_s, budget_s = deadline_s - view.now_s, deadline_s
    if not math.isfinite(deadline_s):
        step_s = float(view.step_times.step_s[:, view.kind[trial]].mean())
        left_s, budget_s = view.remaining(trial) * step_s, int(view.budget[trial]) * step_s
    actions = (*map(Change.parse, allowed), NOTHING)
    made = view.choices_made(trial)
    known = {str(action): at for at, action in enumerate(actions)}
    return Observation(
        structure, blocks, max(left_s, 0.0), budget_s, actions,
        tuple(known.get(change, len(actions) - 1) for change in made),
    )  # fmt: skip


def chosen(policy: GrowthPolicy, view: PopulationView, observation: Observation) -> Change:
    """Return the likeliest change, or a drawn one if the policy says so."""
    chances = list(policy.probabilities(observation))
    if len(chances) != len(observation.actions) or not math.isclose(sum(chances), 1.0, abs_tol=1e-3):
        raise IllegalPlan(
            f"{type(policy).__name__} gave {chances} as probabilities of {len(observation.actions)} actions; "
            "they must add up to 1"
        )
    at = max(range(len(chances)), key=chances.__getitem__)
    if getattr(policy, "draws", False):
        at = int(view.random.choice(len(chances), p=chances))
    return observation.actions[at]


@dataclass(frozen=True, slots=True)
class GrownAssignments:
    """Assignments before which networks may grow."""

    policy: GrowthPolicy

    def decisions(self, view: PopulationView, assignment: Assign) -> Iterator[Decision]:
        """Yield the changes of trials that are about to be assigned, then the assignment.

        A trial is asked about before each interval, so an assignment has one interval of each trial that may
        change now or later.
        """
        parts: list[Interval] = []
        asked: dict[int, Any] = {}
        for part in assignment.parts:
            if part.trial in asked:
                if not asked[part.trial]:
                    parts.append(part)
                continue
            asked[part.trial] = view.may_change_later(part.trial)
            parts.append(part)
            if allowed := view.changes_allowed(part.trial):
                change = chosen(self.policy, view, observation_of(view, part.trial, allowed))
                if change != NOTHING:
                    yield Grow(part.trial, str(change))
        yield Assign(assignment.slot, parts)
