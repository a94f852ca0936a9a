"""Populations by hand: lists that are given, trials that say themselves what they cost, and a referee."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from rota.core.population.events import (
    Assign,
    Assigned,
    Clone,
    Continue,
    Event,
    Hyper,
    Idled,
    Interval,
    Joined,
    NodeFailed,
    Reported,
    Stop,
    Stopped,
    TrialFinished,
)
from rota.core.population.events import Retired as SlotRetired
from rota.core.population.view import PopulationView, Terms
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.population import PopulationPolicy
from rota.simulator.population import PopulationScenario, SimulatedPopulation, simulate_trials


class EventList(list[Event]):
    """A timeline that is equal to another only if its events are of the same kinds.

    Events are tuples: `Finished(10.0, 0)` alone would be equal to `Emptied(10.0, 0)`.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and list(map(repr, self)) == list(map(repr, other))

    def __getitem__(self, at: Any) -> Any:
        return EventList(super().__getitem__(at)) if isinstance(at, slice) else super().__getitem__(at)

    __hash__ = None  # type: ignore[assignment]


class ByHand:
    """Hands out these lists, each as soon as its slot is idle and its trials wait."""

    def __init__(self, *lists: tuple[int, Sequence[tuple[int, int]]]) -> None:
        self._left = [Assign(slot, [Interval(*part) for part in parts]) for slot, parts in lists]

    def hand_out(self, view: PopulationView) -> Iterator[Assign]:
        for hand in list(self._left):
            if hand.slot in view.idle and all(part.trial in view.waiting for part in hand.parts):
                self._left.remove(hand)
                yield hand


@dataclass
class Verdicts:
    """Decides as given about (trial, steps that it has reported); who is not named goes on."""

    given: Mapping[tuple[int, int], Clone | Stop]

    def decide(self, view: PopulationView, trial: int) -> Continue | Clone | Stop:
        return self.given.get((trial, int(view.steps[trial])), Continue(trial))


@dataclass
class GivenUp:
    """Gives slots up at the first instant from the moment that is given."""

    at_s: float
    slots: Sequence[int]

    def retire(self, view: PopulationView) -> list[int]:
        return [slot for slot in self.slots if view.now_s >= self.at_s and not view.retired[slot]]


class Telling:
    """Trials whose hyper-parameters say what they cost and by how much a step makes them better.

    `step_s` and `size_mb` make the kind, `gain` is added to the metric by each step. A clone has the metric
    of its donor, and its own gain from there.
    """

    def __init__(self) -> None:
        self.level: dict[int, float] = {}
        self._gain: dict[int, float] = {}

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        return f"{hyper.get('step_s', 1.0)} {hyper.get('size_mb', 0.0)}"

    def step_s(self, kind: str) -> float:
        return float(kind.split()[0])

    def size_mb(self, kind: str) -> float:
        return float(kind.split()[1])

    def begin(self, trial: int, hyper: Hyper) -> None:
        self.level[trial], self._gain[trial] = 0.0, hyper.get("gain", 0.0)

    def train(self, trial: int, steps: int) -> float:
        self.level[trial] += steps * self._gain[trial]
        return self.level[trial]

    def clone(self, trial: int, donor: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        self.level[trial], self._gain[trial] = self.level[donor], hyper.get("gain", 0.0)


@pytest.fixture(scope="session")
def telling() -> type[Telling]:
    return Telling


@pytest.fixture(scope="session")
def verdicts() -> type[Verdicts]:
    return Verdicts


@pytest.fixture(scope="session")
def given_up() -> type[GivenUp]:
    return GivenUp


@pytest.fixture(scope="session")
def by_hand() -> type[ByHand]:
    return ByHand


@pytest.fixture(scope="session")
def run() -> Callable[..., SimulatedPopulation]:
    """Gives a function that simulates lists written by hand, or `Fifo` if there are none.

    A step takes a second on a slot of speed 1, a trial reports after 10 of them.
    """

    def make(
        hypers: Sequence[Hyper], cluster: Any, *lists: Any, steps: int = 20, **options: Any
    ) -> SimulatedPopulation:
        policy = PopulationPolicy(
            options.pop("allocation", None) or (ByHand(*lists) if lists else FifoAllocation()),
            options.pop("evolution", Verdicts({})),
            options.pop("retirement", None),
        )
        terms = Terms(10, steps, **{name: options.pop(name) for name in ("target",) if name in options})
        done = simulate_trials(
            PopulationScenario(tuple(hypers), cluster, terms, **options), Telling(), policy
        )
        return replace(done, timeline=EventList(done.timeline))

    return make


@dataclass
class Referee:
    """Walks a timeline in plain Python and objects to whatever must not happen."""

    scene: PopulationScenario
    steps: Counter[int] = field(default_factory=Counter)
    done: dict[int, Event] = field(default_factory=dict)
    busy: dict[int, int] = field(default_factory=dict)
    """Slot → steps of its list that have not been reported."""
    up: set[int] = field(default_factory=set)
    retired: set[int] = field(default_factory=set)
    spans: list[Reported] = field(default_factory=list)

    def watch(self, timeline: Sequence[Event]) -> None:
        now_s = 0.0
        for event in timeline:
            assert event.at_s >= now_s, "time runs backwards"
            now_s = event.at_s
            self.see(event)
        self.check_overlaps("slot")
        self.check_overlaps("trial")
        trained_s = sum(span.ended_s - span.began_s for span in self.spans)
        assert trained_s <= self.scene.cluster.slots * now_s * (1 + 1e-12), "slots trained in parallel"

    def see(self, event: Event) -> None:
        match event:
            case Joined(node=node):
                self.up.add(node)
                self.take_back()
            case NodeFailed(node=node):
                self.up.discard(node)
                for slot in [slot for slot in self.busy if self.node(slot) == node]:
                    del self.busy[slot]
                self.take_back()
            case Assigned(slot=slot, steps=steps):
                assert slot not in self.busy, "the slot is not idle"
                assert slot not in self.retired, "the slot was given up"
                assert self.node(slot) in self.up, "the node is not there"
                self.busy[slot] = steps
            case Reported(slot=slot, trial=trial, steps=steps):
                assert trial not in self.done, "a trial reports that is done"
                assert self.node(slot) in self.up, "a node reports that is not there"
                self.busy[slot] -= steps
                assert self.busy[slot] >= 0, "more was trained than was handed out"
                self.steps[trial] += steps
                assert self.steps[trial] <= self.scene.terms.steps, "a trial has more than its steps"
                self.spans.append(event)
            case Idled(slot=slot):
                del self.busy[slot]
            case TrialFinished(trial=trial):
                last = next(span for span in reversed(self.spans) if span.trial == trial)
                enough = self.steps[trial] == self.scene.terms.steps
                assert enough or last.metric >= self.scene.terms.target, "a trial finished too early"
                self.done[trial] = event
            case Stopped(trial=trial):
                assert trial not in self.done, "a trial is stopped that is done"
                self.done[trial] = event
            case SlotRetired(slot=slot):
                self.retired.add(slot)

    def take_back(self) -> None:
        """Slots that were given up are needed if no others are there, or if those are given up once idle."""
        there = {slot for slot in range(self.scene.cluster.slots) if self.node(slot) in self.up}
        if there <= self.retired | set(self.busy):
            self.retired -= there

    def node(self, slot: int) -> int:
        return self.scene.cluster.all_slots[slot].node

    def check_overlaps(self, whose: str) -> None:
        """A slot trains one part at a time, and a trial is trained in one place at a time."""
        until_s: dict[int, float] = {}
        for span in sorted(self.spans, key=lambda span: (span.began_s, span.ended_s)):
            who = getattr(span, whose)
            assert span.began_s >= until_s.get(who, 0.0), f"{whose} {who} is at two parts at once"
            assert span.began_s + span.moved_s <= span.ended_s <= span.at_s, "a part ends before it begins"
            until_s[who] = span.ended_s


@pytest.fixture(scope="session")
def referee() -> type[Referee]:
    """Watches a timeline: `referee(scene).watch(timeline)`."""
    return Referee
