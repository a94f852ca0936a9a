"""The one control loop: what happened → state → plan → decisions → backend.

It serves jobs on a cluster and populations of trials alike: what an instant, a plan and a decision are is a
matter between the policy, the state and the backend of the one or the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from rota.core.costs import EXACT, Ties
from rota.core.errors import IllegalPlan
from rota.core.plan import Plan
from rota.core.state import ClusterView


@dataclass(frozen=True, slots=True)
class Needs:
    """What a policy asks of the state that it will plan on."""

    own: tuple[str, ...] = ()
    """Columns over the active jobs that it remembers things in; 0 when a job arrives."""
    own_slots: tuple[str, ...] = ()
    """Columns over the slots; 0 at the start."""
    sharing: int = 1
    """How many jobs may share a slot."""
    ties: Ties = EXACT
    """What its reference implementation takes for one instant; used with the `interval` cost."""


class Policy(Protocol):
    """Answers one question: what runs now, where, and with whom?"""

    @property
    def needs(self) -> Needs: ...

    def plan(self, view: ClusterView) -> Plan:
        """What should be so now. Asked once per instant; reads the view and changes nothing else."""


class Backend(Protocol):
    """Owns time: the only place where it passes."""

    def instants(self, state: Any) -> Iterator[Any]:
        """What happened, an instant at a time, until nothing is left to do."""

    def perform(self, decisions: Any, state: Any) -> None:
        """Set decisions in motion, and confirm them to the state when they are done."""


class Keeper(Protocol):
    """The state of whatever is driven: three ways to change it, of which the backend calls the third."""

    @property
    def view(self) -> Any: ...

    def apply(self, instant: Any) -> None:
        """What happened at one instant."""

    def request(self, plan: Any) -> Any:
        """What is wanted: the decisions that lead there. What cannot be is an error."""


def drive(policy: Any, backend: Backend, state: Keeper) -> Iterator[Any]:
    """Run until nothing is left to do; yields each instant once it has been dealt with."""
    for instant in backend.instants(state):
        state.apply(instant)
        plan = policy.plan(state.view)
        if plan is None:
            name = type(policy).__name__
            raise IllegalPlan(f"{name}.plan returned None; return a plan, as view.first_fit(…) gives it")
        backend.perform(state.request(plan), state)
        yield instant
