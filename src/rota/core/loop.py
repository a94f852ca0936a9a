"""The control loop of real runs of populations: instant → state → plan → backend.

An instant, a plan and a decision are opaque here: the policy, the state and the backend agree on them.
"""

from collections.abc import Iterator
from typing import Any, Protocol

from rota.core.errors import IllegalPlan


class Backend(Protocol):
    """An executor of decisions, and the only place where time passes."""

    def instants(self, state: Any) -> Iterator[Any]:
        """Yield what happened, one instant at a time, until nothing is left to do."""

    def perform(self, decisions: Any, state: Any) -> None:
        """Start to carry out decisions."""


class Keeper(Protocol):
    """A state that the loop changes by `apply` and `request`."""

    @property
    def view(self) -> Any: ...

    def apply(self, instant: Any) -> None:
        """Take in what happened at one instant."""

    def request(self, plan: Any) -> Any:
        """Put a plan into effect, and return its decisions. Raises IllegalPlan if it is not possible."""


def drive(policy: Any, backend: Backend, state: Keeper) -> Iterator[Any]:
    """Run until nothing is left to do; yield each instant after its decisions were passed on."""
    for instant in backend.instants(state):
        state.apply(instant)
        backend.perform(state.request(planned(policy, state.view)), state)
        yield instant


def planned(policy: Any, view: Any) -> Any:
    """Return the plan of a policy. Raises IllegalPlan if it has none."""
    plan = policy.plan(view)
    if plan is None:
        name = type(policy).__name__
        raise IllegalPlan(f"{name}.plan returned None; return a plan, for example view.first_fit(…)")
    return plan
