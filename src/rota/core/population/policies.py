"""The base classes of allocations and evolutions that are written outside of rota."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from rota.core.errors import IllegalPlan
from rota.core.population.events import Assign, Clone, Continue, Interval, Stop
from rota.core.population.view import PopulationView


class Allocation(ABC):
    """An allocation: says which trials an idle slot trains next, and for how many steps.

    A subclass writes `assign(view)`. Fields of a dataclass are its options. It is called by its `name`, a
    text in the class, or else by the name of its class: `TwoAtOnce` is `two-at-once`.

    >>> from dataclasses import dataclass
    >>> import rota
    >>> @dataclass(frozen=True)
    ... class TwoAtOnce(rota.Allocation):
    ...     trials: int = 2
    ...
    ...     def assign(self, view):
    ...         while view.idle and view.waiting:
    ...             yield view.idle[0], view.first(self.trials)
    >>> run = rota.simulate_population(None, [1.0, 1.0], allocation=TwoAtOnce(), trials=4, steps=100)
    >>> run.allocation, run.metrics.finished
    ('two-at-once', 4)
    """

    @abstractmethod
    def assign(self, view: PopulationView) -> Iterable[tuple[int, Iterable[Interval]]]:
        """Yield an idle slot and what it trains, again and again, until nothing more is to be assigned.

        What was yielded is so in the view when it goes on. `view.idle` are the slots, `view.waiting` the
        trials in the order of the queue; `view.part(trial)` is an interval of a trial, `view.first(n)` one of
        each of the first n. `view.steps`, `view.metric` and `view.history` say where trials stand,
        `view.paces.step_s[slot, view.kind[trial]]` how many seconds a step is expected to take there.
        """

    def hand_out(self, view: PopulationView) -> Iterator[Assign]:
        """Yield what `assign` yields, as decisions."""
        name = type(self).__name__
        found = self.assign(view)
        if found is None:
            raise IllegalPlan(f"{name}.assign returned None; yield an idle slot and what it trains")
        for pair in found:
            try:
                slot, parts = pair
                assignment = list(parts)
            except (TypeError, ValueError):
                raise IllegalPlan(f"{name}.assign yielded {pair!r}; yield a slot and a list") from None
            yield Assign(slot, assignment)


class Evolution(ABC):
    """An evolution: says what becomes of a trial that reported.

    A subclass writes `review(view, trial)`. Fields of a dataclass are its options. It is called by its
    `name`, a text in the class, or else by the name of its class.

    >>> from dataclasses import dataclass
    >>> import rota
    >>> @dataclass(frozen=True)
    ... class StopBelow(rota.Evolution):
    ...     least: float = 0.5
    ...
    ...     def review(self, view, trial):
    ...         return self.stop(trial) if view.metric[trial] < self.least else None
    >>> StopBelow(0.9).least
    0.9
    """

    @abstractmethod
    def review(self, view: PopulationView, trial: int) -> Continue | Clone | Stop | None:
        """Return what becomes of the trial: `self.stop(trial)`, `self.clone(…)`, or None to continue.

        It is asked once about each report, before the trial is queued again. `view.metric`, `view.steps` and
        `view.history` say how good trials are (more is better), `view.hyper` which hyper-parameters they
        have. Whatever is random is drawn from `view.random`.
        """

    def judge(self, view: PopulationView, trial: int) -> Continue | Clone | Stop:
        """Return what `review` says, as a decision."""
        found = self.review(view, trial)
        if found is None:
            return Continue(trial, looked=True)
        if not isinstance(found, Continue | Clone | Stop):
            name = type(self).__name__
            raise IllegalPlan(
                f"{name}.review returned {found!r}; return self.stop(trial), or None to continue"
            )
        return found

    @staticmethod
    def stop(trial: int) -> Stop:
        """Return the decision that a trial is not trained any more."""
        return Stop(trial)

    @staticmethod
    def clone(view: PopulationView, trial: int, donor: int, **changed: Any) -> Clone:
        """Return the decision that a trial goes on as another: with its weights and hyper-parameters.

        `changed` are hyper-parameters that it has otherwise. It keeps its own budget of steps.
        """
        return Clone(trial, donor, {**view.hyper[donor], **changed}, view.changes[donor])
