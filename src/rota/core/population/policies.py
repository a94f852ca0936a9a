"""Base classes of allocations and evolutions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from rota.core.errors import IllegalPlan
from rota.core.population.events import Assign, Clone, Continue, Decision, Interval, Stop
from rota.core.population.view import PopulationView


@dataclass(frozen=True, slots=True)
class CompiledAllocation:
    """An allocation that is compiled: it has one form for simulations and real runs."""

    propose: Any
    """A kernel `propose(address)` of the engine's record, see `rota.core.population.proposals`."""
    options: Sequence[float] = ()
    """Up to seven numbers, the fields `option0` … of the record."""
    prepare: Callable[[Any], Sequence[float] | None] = lambda engine: None
    """Called with the engine when the kernel returns PREPARE; it returns the numbers of `data_of(p)`."""
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Arrays whose addresses are written into the record."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Further fields of the record."""


def compiled_allocation(allocation: Any) -> CompiledAllocation | None:
    """Return the compiled form of an allocation, unless a subclass has replaced what it stands for."""
    for made in type(allocation).__mro__:
        if "compiled" in vars(made):
            return allocation.compiled  # type: ignore[no-any-return]
        if {"assign", "hand_out"} & vars(made).keys():
            return None
    return None


class ProposingAllocation:
    """Base class of allocations that are compiled, unless they are to do as an original did."""

    __slots__ = ()

    @property
    def compiled(self) -> CompiledAllocation | None:
        """The compiled form; None to do as the original."""
        raise NotImplementedError

    def originally(self, view: PopulationView) -> Iterator[Decision]:
        """Yield what the original assigned."""
        raise NotImplementedError

    def hand_out(self, view: Any) -> Iterator[Decision]:
        """Yield assignments for idle slots one by one; each is to be committed before the next."""
        form = self.compiled
        yield from self.originally(view) if form is None else view.proposals(form)


class Allocation(ABC):
    """Base class of allocations, which decide what an idle slot trains next, and for how many steps.

    A subclass implements `assign(view)`. If it is a dataclass, its fields are its options. Its name is the
    attribute `name` of the class, or else the class name in kebab-case: `TwoAtOnce` is `two-at-once`.

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
        """Yield pairs of an idle slot and the intervals that it trains, until nothing more is to be assigned.

        After each yield, the view includes that assignment. `view.idle` are the slots, `view.waiting` the
        trials in queue order; `view.interval(trial)` is the next interval of a trial, `view.first(n)` that of
        each of the first n. `view.steps`, `view.metric` and `view.history` are the progress of trials;
        `view.step_times.step_s[slot, view.kind[trial]]` is the expected step time in seconds.
        """

    def hand_out(self, view: PopulationView) -> Iterator[Assign]:
        """Yield what `assign` yields, as decisions."""
        name = type(self).__name__
        found = self.assign(view)
        if found is None:
            raise IllegalPlan(f"{name}.assign returned None; yield an idle slot and its intervals")
        for pair in found:
            try:
                slot, parts = pair
                assignment = list(parts)
            except (TypeError, ValueError):
                raise IllegalPlan(
                    f"{name}.assign yielded {pair!r}; yield a slot and a list of intervals"
                ) from None
            yield Assign(slot, assignment)


class Evolution(ABC):
    """Base class of evolutions, which review trials after a report: continue, clone or stop.

    A subclass implements `review(view, trial)`. If it is a dataclass, its fields are its options. Its name is
    the attribute `name` of the class, or else the class name in kebab-case.

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
        """Return `self.stop(trial)`, `self.clone(…)`, or None to continue.

        Called once per report, before the trial is queued again. `view.metric` (higher is better),
        `view.steps` and `view.history` are the progress of trials, `view.hyper` their hyper-parameters.
        Random numbers must come from `view.random`.
        """

    def decide(self, view: PopulationView, trial: int) -> Continue | Clone | Stop:
        """Return what `review` returns, as a decision."""
        found = self.review(view, trial)
        if found is None:
            return Continue(trial, reviewed=True)
        if not isinstance(found, Continue | Clone | Stop):
            name = type(self).__name__
            raise IllegalPlan(
                f"{name}.review returned {found!r}; return self.stop(trial), or None to continue"
            )
        return found

    @staticmethod
    def stop(trial: int) -> Stop:
        """Return the decision to stop a trial for good."""
        return Stop(trial)

    @staticmethod
    def clone(view: PopulationView, trial: int, donor: int, **changed: Any) -> Clone:
        """Return the decision that a trial continues with the weights and hyper-parameters of a donor.

        `changed` are hyper-parameters that differ from the donor's. The trial keeps its own budget of steps.
        """
        return Clone(trial, donor, {**view.hyper[donor], **changed}, view.changes[donor])
