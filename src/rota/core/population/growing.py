"""Networks of trials that grow: what a population's engine shows, allows and does about them."""

from typing import Any

import numpy as np

from rota.core.arrays import Mask
from rota.core.errors import IllegalPlan
from rota.core.population import calls, memory
from rota.core.population.events import Clone
from rota.core.population.outcomes import outcomes_of
from rota.core.population.trees import TreeOutcomes
from rota.core.population.view import WAITING, PopulationView


class GrowingPopulation(PopulationView):
    """A population whose networks may change when trials are assigned."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self._landscape: Any = None
        self._objects: list[tuple[Any, ...]] = []
        """What events have beside numbers."""
        super().__init__(*given, **named)

    def reserve(self) -> None:
        """Make room for a step."""

    def begin_trees(self) -> None:
        """Give trials the intervals and budgets of their trees."""
        if (trees := self.walked) is not None:
            self.budget[:] = trees.nodes.budget[trees.tree]
            self.reports_every[:] = trees.nodes.interval[trees.tree]
            self.write(shortest=self.reports_every.min())

    def check_same_tree(self, decision: Clone) -> None:
        """Raise IllegalPlan unless a clone is on the tree of its donor, where that is."""
        trial, donor = decision.trial, decision.donor
        if dict(decision.hyper) != self.hyper[donor]:
            raise IllegalPlan(
                f"trial {trial} would continue on the growth tree of trial {donor} with other "
                "hyper-parameters, which were not recorded; use an evolution that does not explore"
            )
        if tuple(decision.changes) != self.changes[donor]:
            raise IllegalPlan(
                f"trial {trial} would continue with another network than trial {donor}; let it grow when it "
                "is assigned"
            )

    def grow(self, trial: int, change: str) -> None:
        """Change the network of a trial before its next interval. Raises IllegalPlan if it may not."""
        if not 0 <= trial < len(self.status) or self.status[trial] != WAITING:
            raise IllegalPlan(f"trial {trial} is not waiting; its network cannot change")
        allowed = self.changes_allowed(trial)
        if change not in allowed:
            may = f"it may {', or '.join(allowed)}" if allowed else "it may not change"
            grew = self.arrays["trials"][memory.GREW, trial]
            may = "it has changed since its last report" if grew else may
            raise IllegalPlan(
                f"trial {trial} cannot {change} after {', '.join(self.changes[trial]) or 'nothing'}: {may}"
            )
        self.reserve()
        if self.walked is not None:
            calls.grow(self.address, trial, self.walked.nodes.changes.index(change) + 1, 0)
            return
        self._changes[trial] = (*self._changes[trial], change)
        self._grown_at[trial][len(self.history[trial])] = change
        self._set_kind(trial)
        self._objects.append((change,))
        calls.grow(self.address, trial, 0, len(self._objects) - 1)

    def grown_by(self, steps: int, more: int) -> str:
        """Return the text of a change in an event."""
        if steps < 0 or self.walked is None:
            return str(self._objects[more][0])
        return self.walked.nodes.changes[steps]

    @property
    def walked(self) -> TreeOutcomes | None:
        """Where trials are in their growth trees; None if they do not walk along any."""
        found = outcomes_of(self._landscape)
        return found if isinstance(found, TreeOutcomes) else None

    @property
    def changes(self) -> list[tuple[str, ...]]:
        """Trial → the changes of its network since the start, that before its next interval included."""
        trees, growths = self.walked, self.numbers["growths"].item()
        if trees is not None and growths != self._growths_seen:
            self._changes[:] = map(trees.changes_of, range(len(self._changes)))
            self._growths_seen = growths
        return self._changes

    def changes_allowed(self, trial: int) -> tuple[str, ...]:
        """Return the changes that a trial may make before its next interval; none while it does not wait."""
        trees = self.walked
        if trees is None:
            return super().changes_allowed(trial)
        mask = self.change_mask(trial).tolist()
        return tuple(change for change, may in zip(trees.nodes.changes, mask, strict=True) if may)

    def choices_made(self, trial: int) -> tuple[str, ...]:
        """Return what was chosen for a trial at each boundary so far: a change, or `nothing`."""
        trees = self.walked
        if trees is None:
            return super().choices_made(trial)
        texts = ("nothing", *trees.nodes.changes)
        return tuple(texts[column] for column in trees.nodes.path(int(trees.node_of[trial]))[1:])

    def may_change_later(self, trial: int) -> bool:
        """Return whether a trial may change its network before a later interval than the next."""
        trees = self.walked
        if trees is None:
            return super().may_change_later(trial)
        return bool(trees.nodes.grows_later[trees.node_of[trial]])

    def change_mask(self, trial: int) -> Mask:
        """Return which of the changes in the trees a trial may make before its next interval."""
        trees = self.walked
        if trees is None:
            return np.zeros(0, np.bool_)
        columns = range(1, len(trees.nodes.changes) + 1)
        return np.array([calls.may_grow_at(self.address, trial, column) for column in columns], np.bool_)

    def kind_with(self, trial: int, change: str) -> int:
        """Return the kind of a trial if it makes a change that it may make."""
        trees = self.walked
        if trees is None:
            return self._number_of(self.work.kind(self.hyper[trial], (*self.changes[trial], change)))
        kind: int = calls.kind_after_at(self.address, trial, trees.nodes.changes.index(change) + 1)
        return kind
