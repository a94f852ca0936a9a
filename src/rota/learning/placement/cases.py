"""Random slots and populations to learn from and to test on, and the goal of each."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from numbers import Integral, Real
from typing import Literal, get_args

import numpy as np

from rota.core.errors import ConfigError, unknown
from rota.core.population.cluster import AssignmentCosts, PopulationCluster
from rota.core.population.events import Event, Reported
from rota.core.population.view import Terms
from rota.simulator.bounds import lower_bound_s
from rota.simulator.landscapes import Equal
from rota.simulator.noise import MOST_NOISE, TimingNoise
from rota.simulator.population import PopulationScenario

Goal = Literal["makespan", "target"]


def time_to(goal: Goal) -> str:
    """What is measured, and divided by the least that it can be."""
    return "makespan" if goal == "makespan" else "time to target"


STEP_S = 0.02
"""On a slot of speed 1. Nothing depends on it: an agent sees shares of time."""
GOOD = 1.0
"""The metric of a trial that is as good as asked."""


@dataclass(frozen=True, slots=True)
class CaseDistribution:
    """How unequal slots are, how many trials there are, and what a dispatch costs."""

    slots: tuple[int, int] = (4, 16)
    trials: tuple[int, int] = (10, 60)
    spread: float = 160.0
    """The fastest slot is up to so many times as fast as the slowest."""
    dispatch: float = 0.5
    """A dispatch costs up to so many intervals of a slot of speed 1; nothing in every third case."""
    noise: float = 0.1
    """At most."""
    intervals: tuple[int, int] = (5, 20)
    """Of a trial."""
    goal: Goal = "makespan"
    """Be done with all trials soon, or have one soon that is as good as asked: `target`. Then a trial is so
    after 0.3 to 3 times its steps, spread evenly over orders of magnitude: many never are."""

    def __post_init__(self) -> None:
        for name in ("slots", "trials", "intervals"):
            found = getattr(self, name)
            if not _is_range(found):
                shown = list(found) if isinstance(found, tuple) else found
                raise ConfigError(f"{name} is {shown!r}; give the least and the most, 1 or more")
        for name, least, limit, which in (
            ("spread", 1.0, inf, "1 or more"),
            ("dispatch", 0.0, inf, "0 or more"),
            ("noise", 0.0, MOST_NOISE, f"0 or more, below {MOST_NOISE:g}"),
        ):
            found = getattr(self, name)
            if not (isinstance(found, Real) and least <= float(found) < limit):
                raise ConfigError(f"{name} is {found!r}; give a number of {which}")
        if self.goal not in get_args(Goal):
            raise ConfigError(unknown("goal", str(self.goal), get_args(Goal)))

    def draw(self, random: np.random.Generator) -> "PlacementCase":
        """One of them."""
        interval = 50
        terms = Terms(interval, interval * int(random.integers(*self.intervals, endpoint=True)))
        speeds = self._speeds(random)
        free = random.random() < 1 / 3
        costs = AssignmentCosts(
            dispatch_s=0.0 if free else float(random.uniform(0.0, self.dispatch)) * interval * STEP_S
        )
        weather = TimingNoise(float(random.uniform(0.0, self.noise)), seed=int(random.integers(2**31)))
        trials = int(random.integers(*self.trials, endpoint=True))
        scene = PopulationScenario(({},) * trials, PopulationCluster.of(speeds), terms, costs, weather)
        return (
            PlacementCase(scene, self._good_at(trials, terms.steps, random))
            if self.goal == "target"
            else PlacementCase(scene)
        )

    def _good_at(self, trials: int, steps: int, random: np.random.Generator) -> tuple[float, ...]:
        """Steps after which trials are good enough; one is in any case."""
        found = np.ceil(steps * 10.0 ** random.uniform(-0.5, 0.5, trials))
        found[np.argmin(found)] = min(found.min(), steps)
        return tuple(found.tolist())

    def _speeds(self, random: np.random.Generator) -> list[float]:
        """Spread evenly over orders of magnitude, or in two classes; around 1, or from 1 up."""
        count = int(random.integers(*self.slots, endpoint=True))
        spread = self.spread ** random.uniform()
        speeds = spread ** random.uniform(0.0, 1.0, count)
        if random.random() < 0.3:
            speeds = np.where(random.random(count) < random.uniform(0.1, 0.5), spread, 1.0)
        at = random.choice([speeds.min(), np.median(speeds), speeds.max()])
        return [float(f"{speed:.4g}") for speed in speeds / at]


def _is_range(found: object) -> bool:
    """Whether these are the least and the most of something that is counted."""
    return (
        isinstance(found, Sequence)
        and len(found) == 2
        and all(isinstance(each, Integral) for each in found)
        and 1 <= found[0] <= found[1]
    )


@dataclass(frozen=True, slots=True)
class PlacementCase:
    """A scene, the steps after which each trial is as good as asked, and the least time that it can take."""

    scene: PopulationScenario
    good_at: tuple[float, ...] = ()
    """If there are none, all trials are trained to their end."""
    bound_s: float = field(init=False)

    def __post_init__(self) -> None:
        speeds = [slot.speed for slot in self.scene.fleet.slots]
        if self.good_at:
            bound_s = min(self.good_at) * STEP_S / max(speeds)
            object.__setattr__(
                self, "scene", replace(self.scene, terms=replace(self.scene.terms, target=GOOD))
            )
        else:
            bound_s = lower_bound_s(len(self.scene.hypers), self.scene.terms.steps * STEP_S, speeds)
        object.__setattr__(self, "bound_s", bound_s)

    def landscape(self) -> "HiddenTargets":
        """What its trials become."""
        return HiddenTargets(self.good_at or (inf,) * len(self.scene.hypers))

    def ratio(self, timeline: Sequence[Event], makespan_s: float) -> float:
        """How long it took until what counts, as a multiple of the least possible."""
        if not self.good_at:
            return makespan_s / self.bound_s
        return self._first_s(timeline) / self.bound_s

    def _first_s(self, timeline: Sequence[Event]) -> float:
        """When a trial was as good as asked; those that have only had their steps do not count."""
        steps = [0] * len(self.good_at)
        for event in timeline:
            if isinstance(event, Reported):
                steps[event.trial] += event.steps
                if steps[event.trial] >= self.good_at[event.trial]:
                    return event.at_s
        raise ValueError("no trial was good enough: at least one should be")


class HiddenTargets(Equal):
    """Trials that cost the same, and are as good as asked after steps that nobody knows before."""

    def __init__(self, good_at: tuple[float, ...]) -> None:
        super().__init__(STEP_S)
        self._good_at, self._steps = good_at, [0] * len(good_at)

    def train(self, trial: int, steps: int) -> float:
        self._steps[trial] += steps
        return GOOD * self._steps[trial] / self._good_at[trial]
