"""The policy of a population: evolution, then retirement of slots, then allocation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from typing import Protocol

import numpy as np

from rota.core.errors import ConfigError
from rota.core.network import GrowthPolicy
from rota.core.population.events import Assign, Clone, Continue, Decision, Retire, Stop
from rota.core.population.stepping import ASSIGN, REVIEW
from rota.core.population.view import PopulationView, TrialStatus
from rota.policies.allocation.allotment import original_shares
from rota.policies.evolution.registry import Unchanged
from rota.policies.growth.asking import GrownAssignments


@dataclass(frozen=True, slots=True)
class RetireSlowest:
    """Retire the slowest slots towards the end; a busy slot completes its assignment first."""

    most: int = 9
    """Most slots that are retired in total; one always stays."""
    late: float = 0.8
    """Mean progress of unfinished trials, as a share of their steps, from which slots are retired."""
    original: bool = False
    """As the original: by the leading trial, the slots with the smallest shares, whether it helps or not; and
    none unless there are more slots than `most`."""

    def __post_init__(self) -> None:
        if self.most < 0 or not 0.0 <= self.late <= 1.0:
            raise ConfigError(f"most is {self.most}, late {self.late}; give 0 or more, and 0 to 1")

    def retire(self, view: PopulationView) -> list[int]:
        if self.original:
            late = view.leader >= self.late * view.terms.steps
            return [slot for slot in self.original_candidates(view) if late and not view.retired[slot]]
        spare = min(self.most - int(view.retired.sum()), int(view.usable.sum()) - 1)
        if spare < 1 or not view.idle or not self._is_late(view):
            return []
        return self._useless(view, spare)

    def original_candidates(self, view: PopulationView) -> list[int]:
        """Return the slots that the original retires, which are known from the start."""
        share = original_shares(view, "gpa")
        if not 0 < self.most < len(share):
            return []
        used = [slot for slot in range(len(share)) if share[slot]]
        return sorted(sorted(used, key=lambda slot: share[slot])[: self.most])

    def _is_late(self, view: PopulationView) -> bool:
        steps = view.steps[view.status < TrialStatus.FINISHED]
        return len(steps) > 0 and bool(steps.mean() >= self.late * view.terms.steps)

    def _useless(self, view: PopulationView, spare: int) -> list[int]:
        """Return idle slots among the slowest without which the others would not finish later."""
        step_s = view.step_times.step_s.mean(1)
        slowest = sorted(np.flatnonzero(view.usable).tolist(), key=lambda slot: -step_s[slot])
        staying, gone = set(slowest), []
        done_s = finish_s(view, staying)
        for slot in slowest[:spare]:
            if slot not in view.idle:
                continue
            without_s = finish_s(view, staying - {slot})
            if without_s <= done_s:
                staying.remove(slot)
                gone.append(slot)
                done_s = without_s
        return gone


def finish_s(view: PopulationView, slots: set[int]) -> float:
    """Return when these slots would have completed all unassigned intervals, each taking the next when idle.

    Intervals are assumed to be equal, assigned one by one, and independent: any number could run at once.
    """
    interval_s = view.costs.dispatch_s + view.step_times.step_s.mean(1) * view.terms.interval
    ends = [(max(view.now_s, float(view.ends_s[slot])), float(interval_s[slot])) for slot in slots]
    heapify(ends)
    done_s = view.now_s
    for _ in range(_intervals_left(view)):
        free_s, each_s = ends[0]
        heapreplace(ends, (free_s + each_s, each_s))
        done_s = max(done_s, free_s + each_s)
    return done_s


def _intervals_left(view: PopulationView) -> int:
    waiting = (
        view.steps[view.status < TrialStatus.FINISHED] + view.assigned[view.status < TrialStatus.FINISHED]
    )
    return int(-((waiting - view.terms.steps) // view.terms.interval).sum())


class AllocationPolicy(Protocol):
    """A rule for which trials an idle slot trains next, and for how many steps."""

    def hand_out(self, view: PopulationView) -> Iterator[Decision]:
        """Yield assignments for idle slots one by one; the view includes each before the next is computed."""


class EvolutionPolicy(Protocol):
    """A rule that reviews trials after their reports."""

    def decide(self, view: PopulationView, trial: int) -> Continue | Clone | Stop:
        """Return the decision about a trial; called once per report, before the trial is queued again."""


class Retirement(Protocol):
    """A rule for which slots are retired."""

    def retire(self, view: PopulationView) -> Iterable[int]:
        """Return the slots to retire; called before slots get assignments.

        A busy slot completes its own first.
        """


@dataclass(frozen=True, slots=True)
class PopulationPolicy:
    """The policies of a population, applied in the order evolution, retirement, allocation, growth."""

    allocation: AllocationPolicy
    evolution: EvolutionPolicy = field(default_factory=Unchanged)
    retirement: Retirement | None = None
    growth: GrowthPolicy | None = None
    """Asked about each trial that is about to be assigned; None if networks never grow."""

    def plan(self, view: PopulationView) -> Iterator[Decision]:
        """Yield all decisions of an instant; from the deadline on nothing is assigned."""
        yield from self.answer(REVIEW, view)
        if view.now_s < view.numbers["deadline_s"].item():
            yield from self.answer(ASSIGN, view)

    def answer(self, question: int, view: PopulationView) -> Iterator[Decision]:
        """Yield the decisions about trials that reported (`REVIEW`), or about slots (`ASSIGN`)."""
        if question == REVIEW:
            for trial in view.to_review:
                yield self.evolution.decide(view, trial)
            return
        if self.retirement is not None:
            for slot in list(self.retirement.retire(view)):
                yield Retire(slot)
        if self.growth is None:
            yield from self.allocation.hand_out(view)
            return
        growing = GrownAssignments(self.growth)
        for decision in self.allocation.hand_out(view):
            if isinstance(decision, Assign):
                yield from growing.decisions(view, decision)
            else:
                yield decision
