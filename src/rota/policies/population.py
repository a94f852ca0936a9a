"""The policy of a population: evolution, then retirement of slots, then allocation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from typing import Protocol

import numpy as np

from rota.core.errors import ConfigError
from rota.core.population.events import Assign, Clone, Continue, Decision, Retire, Stop
from rota.core.population.view import PopulationView, TrialStatus
from rota.policies.allocation.allotment import original_shares
from rota.policies.evolution.registry import Unchanged


@dataclass(frozen=True, slots=True)
class RetireSlowest:
    """Slots that were given up get no list any more; a busy one does its list first."""

    most: int = 9
    """Slots that may be given up in all; one always stays."""
    late: float = 0.8
    """How far trials that are not done must be on average, as a share of their steps."""
    original: bool = False
    """As the original: by the leading trial, the slots with the smallest shares, whatever comes of it; and
    none at all unless there are more slots than `most`."""

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
        """Known from the beginning."""
        share = original_shares(view, "gpa")
        if not 0 < self.most < len(share):
            return []
        used = [slot for slot in range(len(share)) if share[slot]]
        return sorted(sorted(used, key=lambda slot: share[slot])[: self.most])

    def _is_late(self, view: PopulationView) -> bool:
        steps = view.steps[view.status < TrialStatus.FINISHED]
        return len(steps) > 0 and bool(steps.mean() >= self.late * view.terms.steps)

    def _useless(self, view: PopulationView, spare: int) -> list[int]:
        """Idle ones among the slowest, as long as the others are not done later without them."""
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
    """When these slots would be done with all intervals that nobody has, if whoever is idle takes the next.

    Intervals are taken to be alike, handed out one by one, and independent: any number of them could be
    trained at once.
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
    """Answers: which trials on this idle slot, for how many steps?"""

    def hand_out(self, view: PopulationView) -> Iterator[Assign]:
        """Lists for idle slots, one by one: what was yielded is so in the view when it goes on."""


class EvolutionPolicy(Protocol):
    """Answers: what becomes of a trial that reported?"""

    def judge(self, view: PopulationView, trial: int) -> Continue | Clone | Stop:
        """Asked once about each report, before the trial is queued again."""


class Retirement(Protocol):
    """Answers: which slots are given up?"""

    def retire(self, view: PopulationView) -> Iterable[int]:
        """Asked before slots are given lists. A busy slot is given up when its list is done."""


@dataclass(frozen=True, slots=True)
class PopulationPolicy:
    """Three answers, asked in this order."""

    allocation: AllocationPolicy
    evolution: EvolutionPolicy = field(default_factory=Unchanged)
    retirement: Retirement | None = None

    def plan(self, view: PopulationView) -> Iterator[Decision]:
        """All that is to be done now."""
        for trial in list(view.to_review):
            yield self.evolution.judge(view, trial)
        if self.retirement is not None:
            for slot in list(self.retirement.retire(view)):
                yield Retire(slot)
        yield from self.allocation.hand_out(view)
