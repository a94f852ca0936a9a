"""Simulate a population: trials, slots and a policy in; events out."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

from rota.core.cluster import NodeChange
from rota.core.errors import Stuck
from rota.core.loop import drive
from rota.core.population.cluster import AssignmentCosts, PopulationCluster, Slowdown
from rota.core.population.events import (
    Assign,
    Clone,
    Decision,
    Event,
    Hyper,
    Idled,
    Interval,
    Joined,
    NodeFailed,
    Reported,
)
from rota.core.population.state import PopulationState
from rota.core.population.view import FINISHED, Terms
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Landscape
from rota.simulator.noise import NoiseStream, ReportOverhead, TimingNoise

Trained = tuple[int, int, float, float, float]
"""Trial, steps, when they began, when they ended, and what had to be waited for in between."""


@dataclass(slots=True)
class SimulatedAssignment:
    """A list on a slot."""

    parts: list[Interval]
    """What is still to be trained, last first."""
    waits_s: float
    """Before the next part can begin: the dispatch of the list."""
    began_s: float = 0.0
    moved_s: float = 0.0
    ends_s: float = 0.0
    end: int = 0
    """Which end in the heap is meant."""
    kept: list[Trained] = field(default_factory=list)
    """What has been trained and not reported: the checkpoints of these trials are on the slot."""


class PopulationSimulator:
    """Lists take as long as their steps, their slot, its node and luck say."""

    def __init__(
        self,
        fleet: PopulationCluster,
        landscape: Landscape,
        luck: NoiseStream,
        *,
        report_each: bool = True,
        besides: ReportOverhead | None = None,
    ) -> None:
        self._fleet, self._landscape, self._luck = fleet, landscape, luck
        self._besides = besides or ReportOverhead()
        self._report_each = report_each
        self._heap: list[tuple[float, int, int]] = []
        self._pushed = 0
        self._node = [slot.node for slot in fleet.slots]
        self._slow = [1.0] * len(fleet.nodes)
        self._on: dict[int, SimulatedAssignment] = {}
        self._due: list[int] = []
        self._has: dict[int, int] = {}
        """Slot → the trial that it has in its memory, as it is now."""
        self._paces: dict[tuple[int, str], float] = {}
        changes: tuple[NodeChange | Slowdown, ...] = (*fleet.changes, *fleet.slowdowns)
        self._changes = sorted(changes, key=lambda change: change.at_s)[::-1]

    def instants(self, state: PopulationState) -> Iterator[list[Event]]:
        late = self._fleet.late
        events: list[Event] = [
            Joined(0.0, node) for node in range(len(self._fleet.nodes)) if node not in late
        ]
        if events:
            yield events
        while state.left:
            at_s = self._next_s(state)
            events = self._ends(at_s, state)
            if self._changes and self._changes[-1].at_s == at_s:
                events += self._node_changes(at_s)
            if events:
                yield events

    def perform(self, decisions: list[Decision], state: PopulationState) -> None:
        """In virtual time everything is done at once; then slots go on with their lists."""
        for decision in decisions:
            if isinstance(decision, Assign):
                self._on[decision.slot] = SimulatedAssignment(decision.parts[::-1], state.costs.dispatch_s)
                self._due.append(decision.slot)
            elif isinstance(decision, Clone):
                self._landscape.clone(decision.trial, decision.donor, decision.hyper, decision.changes)
                self._forget(decision.trial)
            state.confirm(decision)
        for slot in self._due:
            self._begin(slot, self._on[slot], state.now_s, state)
        self._due.clear()

    def _next_s(self, state: PopulationState) -> float:
        """When something happens next."""
        while self._heap and not self._meant(self._heap[0]):
            heappop(self._heap)
        at_s = min(self._heap[0][0] if self._heap else inf, self._changes[-1].at_s if self._changes else inf)
        if at_s == inf:
            raise Stuck(
                f"at {state.now_s:g} s nothing runs and nothing will happen, but {state.left} trials are "
                f"not done and {len(state.idle)} slots are idle"
            )
        return at_s

    def _meant(self, end: tuple[float, int, int]) -> bool:
        _, number, slot = end
        return slot in self._on and self._on[slot].end == number

    def _begin(self, slot: int, running: SimulatedAssignment, at_s: float, state: PopulationState) -> None:
        """The next part of a list; or its end, if what was left of it has been let go."""
        parts = running.parts
        while parts and state.status[parts[-1].trial] >= FINISHED:
            parts.pop()
        running.began_s = running.ends_s = at_s
        running.moved_s = running.waits_s
        running.waits_s = 0.0
        if parts:
            trial, steps = parts[-1]
            if all(trial != kept[0] for kept in running.kept):
                running.moved_s += state.move_s(trial, slot)
            if self._besides.load_s or self._besides.save_s:
                running.moved_s += self._handling_s(slot, trial)
            luck = self._luck.factor(trial, slot, steps / state.terms.interval)
            training_s = (
                steps * self._step_s(slot, trial, state) + self._evaluate_s(slot, trial, state)
            ) * luck
            running.ends_s += running.moved_s + training_s * self._slow[self._node[slot]]
        self._push(slot, running)

    def _handling_s(self, slot: int, trial: int) -> float:
        """To take a trial up, if the slot was at another one, and to keep its checkpoint."""
        loading_s = 0.0 if self._has.get(slot) == trial else self._besides.load_s
        self._forget(trial)
        self._has[slot] = trial
        return loading_s + self._besides.save_s

    def _forget(self, trial: int) -> None:
        """What slots have of a trial is no longer what it is."""
        self._has = {slot: each for slot, each in self._has.items() if each != trial}

    def _evaluate_s(self, slot: int, trial: int, state: PopulationState) -> float:
        if not self._besides.evaluate_s:
            return 0.0
        return self._besides.evaluate_s / self._fleet.slots[slot].speed_of(state.kinds[state.kind[trial]])

    def _push(self, slot: int, running: SimulatedAssignment) -> None:
        """The end of what a slot is at, in place of any that was expected before."""
        self._pushed += 1
        running.end = self._pushed
        heappush(self._heap, (running.ends_s, self._pushed, slot))

    def _step_s(self, slot: int, trial: int, state: PopulationState) -> float:
        """Seconds per step, as the machine is; policies only know what they were told and have measured."""
        kind = state.kinds[state.kind[trial]]
        if (slot, kind) not in self._paces:
            self._paces[slot, kind] = self._landscape.step_s(kind) / self._fleet.slots[slot].speed_of(kind)
        return self._paces[slot, kind]

    def _ends(self, at_s: float, state: PopulationState) -> list[Event]:
        """The parts that end now, in the order in which they were begun."""
        events: list[Event] = []
        while self._heap and self._heap[0][0] == at_s:
            end = heappop(self._heap)
            if self._meant(end):
                events += self._end(end[2], self._on[end[2]], at_s, state)
        return events

    def _end(
        self, slot: int, running: SimulatedAssignment, at_s: float, state: PopulationState
    ) -> list[Event]:
        if running.parts:
            trial, steps = running.parts.pop()
            running.kept.append((trial, steps, running.began_s, at_s, running.moved_s))
            if running.parts and not self._report_each:
                self._begin(slot, running, at_s, state)
                return []
        events = self._reports(slot, running, at_s, state.terms.target)
        if running.parts:
            self._due.append(slot)
        else:
            del self._on[slot]
            events.append(Idled(at_s, slot))
        return events

    def _reports(self, slot: int, running: SimulatedAssignment, at_s: float, target: float) -> list[Event]:
        """Of what was kept; a trial that is as good as asked is not reported, nor trained, any further."""
        events: list[Event] = []
        good: set[int] = set()
        for trial, steps, began_s, ended_s, moved_s in running.kept:
            if trial not in good:
                metric = self._landscape.train(trial, steps)
                events.append(Reported(at_s, slot, trial, steps, began_s, ended_s, moved_s, metric))
                if metric >= target:
                    good.add(trial)
        running.kept.clear()
        if good:
            running.parts = [part for part in running.parts if part.trial not in good]
        return events

    def _node_changes(self, at_s: float) -> list[Event]:
        events: list[Event] = []
        while self._changes and self._changes[-1].at_s == at_s:
            change = self._changes.pop()
            slots = [slot for slot in self._on if self._node[slot] == change.node]
            if isinstance(change, Slowdown):
                self._slow_down(change, slots)
            elif change.joins:
                events.append(Joined(at_s, change.node))
            else:
                for slot in slots:
                    del self._on[slot]
                self._due = [slot for slot in self._due if slot in self._on]
                events.append(NodeFailed(at_s, change.node))
        return events

    def _slow_down(self, change: Slowdown, slots: list[int]) -> None:
        """What is left of the training of each part now takes longer, or less long."""
        factor = change.factor / self._slow[change.node]
        self._slow[change.node] = change.factor
        for slot in slots:
            running = self._on[slot]
            from_s = max(change.at_s, running.began_s + running.moved_s)
            running.ends_s = from_s + (running.ends_s - from_s) * factor
            self._push(slot, running)


@dataclass(frozen=True, slots=True)
class PopulationScenario:
    """What is rehearsed, whatever the policy."""

    hypers: tuple[Hyper, ...]
    fleet: PopulationCluster
    terms: Terms = field(default_factory=Terms)
    costs: AssignmentCosts = field(default_factory=AssignmentCosts)
    weather: TimingNoise = field(default_factory=TimingNoise)
    report_each: bool = True
    """Each part of a list reports when it is done; else all at the end of the list."""
    besides: ReportOverhead = field(default_factory=ReportOverhead)


@dataclass(frozen=True, slots=True)
class SimulatedPopulation:
    """What came of it."""

    timeline: Sequence[Event]
    makespan_s: float
    decisions: int
    """Parts of lists that were handed out."""
    wall_s: float
    """How long the rehearsal itself took."""
    state: PopulationState


def simulate_trials(
    scene: PopulationScenario, landscape: Landscape, policy: PopulationPolicy, seed: int = 0
) -> SimulatedPopulation:
    """Train a population on paper until every trial is done."""
    state = PopulationState(scene.hypers, scene.fleet, scene.terms, scene.costs, landscape, seed)
    luck = NoiseStream(scene.weather, len(scene.hypers), len(scene.fleet.slots))
    backend = PopulationSimulator(
        scene.fleet, landscape, luck, report_each=scene.report_each, besides=scene.besides
    )
    for trial, hyper in enumerate(scene.hypers):
        landscape.begin(trial, hyper)
    began = time.perf_counter()
    for _ in drive(policy, backend, state):
        pass
    wall_s = time.perf_counter() - began
    return SimulatedPopulation(state.timeline, state.now_s, state.decisions, wall_s, state)
