"""What becomes of a population at each instant: evolution, then retirement, then allocation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from rota.core.population.decisions import Clone, Continue, Decision, Hand, Retire, Stop
from rota.core.population.view import View
from rota.policies.evolution.none import Unchanged


class AllocationPolicy(Protocol):
    """Answers: which trials on this idle slot, for how many steps?"""

    def hand_out(self, view: View) -> Iterator[Hand]:
        """Lists for idle slots, one by one: what was yielded is so in the view when it goes on."""


class EvolutionPolicy(Protocol):
    """Answers: what becomes of a trial that reported?"""

    def judge(self, view: View, trial: int) -> Continue | Clone | Stop:
        """Asked once about each report, before the trial is queued again."""


class Retirement(Protocol):
    """Answers: which slots are given up?"""

    def retire(self, view: View) -> Iterable[int]:
        """Asked before slots are given lists. A busy slot is given up when its list is done."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Three answers, asked in this order."""

    allocation: AllocationPolicy
    evolution: EvolutionPolicy = field(default_factory=Unchanged)
    retirement: Retirement | None = None

    def plan(self, view: View) -> Iterator[Decision]:
        """All that is to be done now."""
        for trial in list(view.judged):
            yield self.evolution.judge(view, trial)
        if self.retirement is not None:
            for slot in list(self.retirement.retire(view)):
                yield Retire(slot)
        yield from self.allocation.hand_out(view)
