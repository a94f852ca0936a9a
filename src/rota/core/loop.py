"""The one control loop: what happened → state → plan → decisions → backend."""

from collections.abc import Iterator
from typing import Protocol

from rota.core.plan import Plan
from rota.core.state import Decisions, Instant, State, View


class Policy(Protocol):
    """Answers one question: what runs now, where, and with whom?"""

    def plan(self, view: View) -> Plan:
        """What should be so now. Asked once per instant; reads the view and changes nothing else."""


class Backend(Protocol):
    """Owns time: the only place where it passes."""

    def instants(self, state: State) -> Iterator[Instant]:
        """What happened, an instant at a time, until no job is left."""

    def perform(self, decisions: Decisions, state: State) -> None:
        """Set decisions in motion, and confirm them to the state when they are done."""


def drive(policy: Policy, backend: Backend, state: State) -> Iterator[Instant]:
    """Run until no job is left; yields each instant once it has been dealt with."""
    for instant in backend.instants(state):
        state.apply(instant)
        backend.perform(state.request(policy.plan(state.view)), state)
        yield instant
