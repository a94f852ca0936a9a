"""The state of a population: the view that policies read, and the three ways to change it."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import isnan

import numpy as np

from rota.core.errors import IllegalPlan
from rota.core.population.cluster import AssignmentCosts, PopulationCluster
from rota.core.population.events import (
    Assign,
    Assigned,
    Clone,
    Cloned,
    Continue,
    Decision,
    Event,
    Hyper,
    Idled,
    Interval,
    Joined,
    NodeFailed,
    Reported,
    Retire,
    Retired,
    Stop,
    Stopped,
    TrialFailed,
    TrialFinished,
)
from rota.core.population.view import (
    ASSIGNED,
    FINISHED,
    REPORTED,
    STOPPED,
    WAITING,
    PopulationView,
    Terms,
    Work,
)


class PopulationState(PopulationView):
    """A population that changes by `apply`, `request` and `confirm`."""

    def __init__(
        self,
        hypers: Sequence[Hyper],
        cluster: PopulationCluster,
        terms: Terms,
        costs: AssignmentCosts,
        work: Work,
        seed: int = 0,
    ) -> None:
        super().__init__(hypers, cluster, terms, costs, work, seed)
        self.timeline: list[Event] = []
        self.decisions = 0
        """Number of intervals assigned so far."""
        self._keys = [0] * len(self.waiting)
        self._on: dict[int, list[Interval]] = {}
        self._trained_s: dict[int, float] = {}

    @property
    def view(self) -> PopulationView:
        return self

    def apply(self, events: Sequence[Event]) -> None:
        """Take in the events of one instant."""
        self.now_s = events[0].at_s
        self.freed = 0
        for event in events:
            self.timeline.append(event)
            match event:
                case Reported():
                    self._report(event)
                case Idled(slot=slot):
                    self._empty(slot)
                case TrialFailed(trial=trial):
                    self._fail(trial)
                case NodeFailed(node=node):
                    self._lose(node)
                case Joined(node=node):
                    self._join(node)

    def request(self, plan: Iterable[Decision]) -> list[Decision]:
        """Apply decisions one by one, as they are made, and return them. Raises IllegalPlan."""
        wanted = []
        for decision in plan:
            match decision:
                case Assign(slot, parts):
                    self._assign(slot, parts)
                case Continue(trial, reviewed):
                    self._continue(trial, reviewed)
                case Clone():
                    self._clone(decision)
                case Stop(trial):
                    self._stop(trial)
                case Retire(slot):
                    self._retire(slot)
            wanted.append(decision)
        if self.to_review:
            raise IllegalPlan(f"trial {self.to_review[0]} reported and was not reviewed")
        return wanted

    def confirm(self, decision: Decision) -> None:
        """Record a decision that was carried out in the timeline."""
        match decision:
            case Assign(slot, parts):
                trials, steps = len({part.trial for part in parts}), sum(part.steps for part in parts)
                self.timeline.append(Assigned(self.now_s, slot, trials, steps))
            case Clone(trial, donor, hyper, changes):
                self.timeline.append(Cloned(self.now_s, trial, donor, hyper, changes))
            case Stop(trial):
                self.timeline.append(Stopped(self.now_s, trial))
            case Retire(slot):
                self._note_retired(slot)

    def _report(self, event: Reported) -> None:
        trial, slot, steps = event.trial, event.slot, event.steps
        training_s = event.ended_s - event.began_s - event.moved_s
        if steps:  # else it had already ended
            self.step_times.observe(slot, int(self.kind[trial]), training_s / steps)
        self._trained_s[slot] = self._trained_s.get(slot, 0.0) + training_s
        total = int(self.steps[trial]) + steps
        self.steps[trial] = total
        self.assigned[trial] -= steps
        self.fresh[trial] += steps
        self.metric[trial] = event.metric
        self.history[trial].append((total, event.metric))
        self.checkpoint_node[trial] = self.node[slot]
        self.leader = max(self.leader, total)
        if not event.metric <= self.best and not isnan(event.metric):
            self.best = event.metric
        self._rank(trial)
        if total >= self.terms.steps or event.metric >= self.terms.target or event.ended:
            self._close(trial, FINISHED)
            self.timeline.append(TrialFinished(self.now_s, trial))
        else:
            self.status[trial] = REPORTED
            if trial not in self.to_review:
                self.to_review.append(trial)

    def _empty(self, slot: int) -> None:
        trials = len({part.trial for part in self._on.pop(slot)})
        training_s = self._trained_s.pop(slot, 0.0)
        if training_s:  # else everything failed, which says nothing about the slot
            if slot not in self.measured:
                self.measured.append(slot)
                self.first_s[slot] = training_s
            self.trial_s[slot] = training_s / trials
        self.ends_s[slot] = self.now_s
        self.freed += 1
        if self.retired[slot]:
            self._note_retired(slot)
        else:
            self.idle.append(slot)

    def _fail(self, trial: int) -> None:
        """Requeue or stop a failed trial; the rest of the assignment goes on without it."""
        self.failures[trial] += 1
        self.assigned[trial] = 0
        if self.failures[trial] < self.terms.attempts:
            self._queue(trial)
        else:
            self._close(trial, STOPPED)
            self.timeline.append(Stopped(self.now_s, trial))

    def _lose(self, node: int) -> None:
        for slot in np.flatnonzero(self.node == node).tolist():
            self.up[slot] = False
            if slot in self.idle:
                self.idle.remove(slot)
            self.ends_s[slot] = self.now_s
            if slot in self._on:
                self._lose_assignment(slot)
        if not self.usable.any():
            self._unretire()

    def _unretire(self) -> None:
        """Reactivate retired slots, since no other slot is left."""
        for slot in np.flatnonzero(self.up & self.retired).tolist():
            self.retired[slot] = False
            if slot not in self._on:
                self.idle.append(slot)
                self.freed += 1

    def _lose_assignment(self, slot: int) -> None:
        """Requeue the trials of a lost assignment, with what they had reported."""
        self._trained_s.pop(slot, None)
        for trial in dict.fromkeys(part.trial for part in self._on.pop(slot)):
            if self.at[trial] == slot:
                self.assigned[trial] = 0
                if self.status[trial] == ASSIGNED:
                    self._queue(trial)
        if self.retired[slot]:
            self._note_retired(slot)

    def _join(self, node: int) -> None:
        for slot in np.flatnonzero(self.node == node).tolist():
            if not self.up[slot]:
                self.up[slot] = True
                if not self.retired[slot]:
                    self.idle.append(slot)
                    self.freed += 1
        if not self.usable.any():
            self._unretire()

    def _assign(self, slot: int, parts: list[Interval]) -> None:
        if slot not in self.idle:
            raise IllegalPlan(f"slot {slot} is not idle; it cannot get an assignment")
        if not parts:
            raise IllegalPlan(f"slot {slot} gets an empty assignment; leave it idle instead")
        ends_s = self.now_s + self.costs.dispatch_s
        mine = set()
        for trial, steps in parts:
            if trial not in mine:
                if trial not in self.waiting:
                    raise IllegalPlan(f"trial {trial} is not waiting; it cannot be assigned to slot {slot}")
                mine.add(trial)
                self.status[trial] = ASSIGNED
                self.at[trial] = slot
                at = self.waiting.index(trial)
                del self.waiting[at], self._keys[at]
                ends_s += self.move_s(trial, slot)
            if not 1 <= steps <= self.remaining(trial):
                raise IllegalPlan(
                    f"trial {trial} is assigned {steps} steps; it has {self.remaining(trial)} left"
                )
            self.assigned[trial] += steps
            ends_s += steps * float(self.step_times.step_s[slot, self.kind[trial]])
        self.idle.remove(slot)
        self._on[slot] = parts
        self.ends_s[slot] = ends_s
        self.decisions += len(parts)

    def _continue(self, trial: int, reviewed: bool) -> None:
        self._reviewed(trial)
        if reviewed:
            self.fresh[trial] = 0
        if self.assigned[trial]:
            self.status[trial] = ASSIGNED
        else:
            self._queue(trial)

    def _clone(self, decision: Clone) -> None:
        trial, donor = decision.trial, decision.donor
        if not 0 <= donor < len(self.checkpoint_node) or self.checkpoint_node[donor] < 0:
            raise IllegalPlan(f"trial {trial} cannot clone trial {donor}, which has no checkpoint")
        self.checkpoint_node[trial] = self.checkpoint_node[donor]
        self.hyper[trial] = dict(decision.hyper)
        self.changes[trial] = tuple(decision.changes)
        self._set_kind(trial)
        self._continue(trial, reviewed=True)

    def _stop(self, trial: int) -> None:
        self._reviewed(trial)
        self._close(trial, STOPPED)

    def _retire(self, slot: int) -> None:
        if not 0 <= slot < len(self.retired) or self.retired[slot]:
            raise IllegalPlan(f"slot {slot} is already retired, or does not exist")
        self.retired[slot] = True
        if slot in self.idle:
            self.idle.remove(slot)

    def _note_retired(self, slot: int) -> None:
        """Record a retirement once the slot is idle; its assignment is not interrupted."""
        if slot not in self._on:
            self.timeline.append(Retired(self.now_s, slot))

    def _reviewed(self, trial: int) -> None:
        if trial not in self.to_review:
            raise IllegalPlan(f"trial {trial} has not reported; it cannot be reviewed")
        self.to_review.remove(trial)

    def _close(self, trial: int, status: int) -> None:
        self.assigned[trial] = 0
        self.status[trial] = status
        self.at[trial] = -1
        self.left -= 1
        self._rank(trial)
        if trial in self.to_review:
            self.to_review.remove(trial)

    def _rank(self, trial: int) -> None:
        """Update the rank of a trial in all rankings."""
        for interval, ranking in self._rankings.items():
            ranking.put(trial, self._worth(trial, interval))

    def _queue(self, trial: int) -> None:
        """Queue a trial: after those with at most as many steps, or last."""
        self.status[trial] = WAITING
        self.at[trial] = -1
        if self.terms.least_advanced_first:
            key = int(self.steps[trial])
            at = bisect_right(self._keys, key)
        else:
            at, key = len(self.waiting), 0
        self.waiting.insert(at, trial)
        self._keys.insert(at, key)
