"""Simulation of a population: trials, slots and a policy in; events out."""

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
"""Trial, steps, start, end, and seconds before training could start."""


@dataclass(slots=True)
class SimulatedAssignment:
    """The current assignment of a slot."""

    intervals: list[Interval]
    """Intervals left, the next one last."""
    waits_s: float
    """Seconds before the next interval can start: the dispatch of the assignment."""
    began_s: float = 0.0
    moved_s: float = 0.0
    ends_s: float = 0.0
    end: int = 0
    """Number of its valid entry in the heap."""
    kept: list[Trained] = field(default_factory=list)
    """Intervals trained and not reported: the checkpoints of these trials are on the slot."""


class PopulationSimulator:
    """A backend in virtual time: durations follow from steps, slots, their nodes and noise."""

    def __init__(
        self,
        cluster: PopulationCluster,
        landscape: Landscape,
        noise: NoiseStream,
        *,
        report_each: bool = True,
        overhead: ReportOverhead | None = None,
    ) -> None:
        self._cluster, self._landscape, self._noise = cluster, landscape, noise
        self._overhead = overhead or ReportOverhead()
        self._report_each = report_each
        self._heap: list[tuple[float, int, int]] = []
        self._pushed = 0
        self._node = [slot.node for slot in cluster.slots]
        self._slow = [1.0] * len(cluster.nodes)
        self._on: dict[int, SimulatedAssignment] = {}
        self._due: list[int] = []
        self._has: dict[int, int] = {}
        """Slot → trial whose current state is in its memory."""
        self._step_times: dict[tuple[int, str], float] = {}
        changes: tuple[NodeChange | Slowdown, ...] = (*cluster.changes, *cluster.slowdowns)
        self._changes = sorted(changes, key=lambda change: change.at_s)[::-1]

    def instants(self, state: PopulationState) -> Iterator[list[Event]]:
        late = self._cluster.late
        events: list[Event] = [
            Joined(0.0, node) for node in range(len(self._cluster.nodes)) if node not in late
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
        """Carry out decisions at once; then slots continue their assignments."""
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
        """Return the time of the next instant."""
        while self._heap and not self._is_valid(self._heap[0]):
            heappop(self._heap)
        at_s = min(self._heap[0][0] if self._heap else inf, self._changes[-1].at_s if self._changes else inf)
        if at_s == inf:
            raise Stuck(
                f"at {state.now_s:g} s nothing runs and nothing will happen, but {state.left} trials are "
                f"not done and {len(state.idle)} slots are idle"
            )
        return at_s

    def _is_valid(self, end: tuple[float, int, int]) -> bool:
        _, number, slot = end
        return slot in self._on and self._on[slot].end == number

    def _begin(self, slot: int, running: SimulatedAssignment, at_s: float, state: PopulationState) -> None:
        """Start the next interval of an assignment; or end it, if no remaining trial is to be trained."""
        left = running.intervals
        while left and state.status[left[-1].trial] >= FINISHED:
            left.pop()
        running.began_s = running.ends_s = at_s
        running.moved_s = running.waits_s
        running.waits_s = 0.0
        if left:
            trial, steps = left[-1]
            if all(trial != kept[0] for kept in running.kept):
                running.moved_s += state.move_s(trial, slot)
            if self._overhead.load_s or self._overhead.save_s:
                running.moved_s += self._load_and_save_s(slot, trial)
            factor = self._noise.factor(trial, slot, steps / state.terms.interval)
            training_s = (
                steps * self._step_s(slot, trial, state) + self._evaluate_s(slot, trial, state)
            ) * factor
            running.ends_s += running.moved_s + training_s * self._slow[self._node[slot]]
        self._push(slot, running)

    def _load_and_save_s(self, slot: int, trial: int) -> float:
        """Return the seconds to load a trial that is not in memory, and to save its checkpoint."""
        loading_s = 0.0 if self._has.get(slot) == trial else self._overhead.load_s
        self._forget(trial)
        self._has[slot] = trial
        return loading_s + self._overhead.save_s

    def _forget(self, trial: int) -> None:
        """Remove a trial from the memory of all slots."""
        self._has = {slot: each for slot, each in self._has.items() if each != trial}

    def _evaluate_s(self, slot: int, trial: int, state: PopulationState) -> float:
        if not self._overhead.evaluate_s:
            return 0.0
        return self._overhead.evaluate_s / self._cluster.slots[slot].speed_of(state.kinds[state.kind[trial]])

    def _push(self, slot: int, running: SimulatedAssignment) -> None:
        """Schedule the end of a slot's current interval; earlier entries become invalid."""
        self._pushed += 1
        running.end = self._pushed
        heappush(self._heap, (running.ends_s, self._pushed, slot))

    def _step_s(self, slot: int, trial: int, state: PopulationState) -> float:
        """Return the actual seconds per step; policies know only nominal speeds and measurements."""
        kind = state.kinds[state.kind[trial]]
        if (slot, kind) not in self._step_times:
            self._step_times[slot, kind] = self._landscape.step_s(kind) / self._cluster.slots[slot].speed_of(
                kind
            )
        return self._step_times[slot, kind]

    def _ends(self, at_s: float, state: PopulationState) -> list[Event]:
        """Return the events of intervals that end now, in the order in which they were started."""
        events: list[Event] = []
        while self._heap and self._heap[0][0] == at_s:
            end = heappop(self._heap)
            if self._is_valid(end):
                events += self._end(end[2], self._on[end[2]], at_s, state)
        return events

    def _end(
        self, slot: int, running: SimulatedAssignment, at_s: float, state: PopulationState
    ) -> list[Event]:
        if running.intervals:
            trial, steps = running.intervals.pop()
            running.kept.append((trial, steps, running.began_s, at_s, running.moved_s))
            if running.intervals and not self._report_each:
                self._begin(slot, running, at_s, state)
                return []
        events = self._reports(slot, running, at_s, state.terms.target)
        if running.intervals:
            self._due.append(slot)
        else:
            del self._on[slot]
            events.append(Idled(at_s, slot))
        return events

    def _reports(self, slot: int, running: SimulatedAssignment, at_s: float, target: float) -> list[Event]:
        """Return the reports of kept intervals; a trial that reached the target is trained no further."""
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
            running.intervals = [part for part in running.intervals if part.trial not in good]
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
        """Rescale the rest of the current interval of each slot."""
        factor = change.factor / self._slow[change.node]
        self._slow[change.node] = change.factor
        for slot in slots:
            running = self._on[slot]
            from_s = max(change.at_s, running.began_s + running.moved_s)
            running.ends_s = from_s + (running.ends_s - from_s) * factor
            self._push(slot, running)


@dataclass(frozen=True, slots=True)
class PopulationScenario:
    """Everything about a simulated population except the policy."""

    hypers: tuple[Hyper, ...]
    cluster: PopulationCluster
    terms: Terms = field(default_factory=Terms)
    costs: AssignmentCosts = field(default_factory=AssignmentCosts)
    noise: TimingNoise = field(default_factory=TimingNoise)
    report_each: bool = True
    """Whether each interval reports when it is done; else all at the end of the assignment."""
    overhead: ReportOverhead = field(default_factory=ReportOverhead)


@dataclass(frozen=True, slots=True)
class SimulatedPopulation:
    """The result of a simulation."""

    timeline: Sequence[Event]
    makespan_s: float
    decisions: int
    """Number of intervals assigned."""
    wall_s: float
    """Seconds that the simulation took."""
    state: PopulationState


def simulate_trials(
    scene: PopulationScenario, landscape: Landscape, policy: PopulationPolicy, seed: int = 0
) -> SimulatedPopulation:
    """Simulate a population until every trial is finished or stopped."""
    state = PopulationState(scene.hypers, scene.cluster, scene.terms, scene.costs, landscape, seed)
    noise = NoiseStream(scene.noise, len(scene.hypers), len(scene.cluster.slots))
    backend = PopulationSimulator(
        scene.cluster, landscape, noise, report_each=scene.report_each, overhead=scene.overhead
    )
    for trial, hyper in enumerate(scene.hypers):
        landscape.begin(trial, hyper)
    began = time.perf_counter()
    for _ in drive(policy, backend, state):
        pass
    wall_s = time.perf_counter() - began
    return SimulatedPopulation(state.timeline, state.now_s, state.decisions, wall_s, state)
