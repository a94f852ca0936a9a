"""Random slots and populations to learn from and to test on, and their goals."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from numbers import Integral, Real
from typing import Literal, get_args

import numpy as np

from rota.core.cluster import Cluster
from rota.core.errors import ConfigError, unknown
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Event, Hyper, Reported
from rota.core.population.outcomes import TOWARDS_TARGETS, Outcomes
from rota.core.population.view import Terms
from rota.simulator.bounds import lower_bound_s
from rota.simulator.landscapes import Equal
from rota.simulator.noise import MOST_NOISE, TimingNoise
from rota.simulator.population import PopulationScenario

Goal = Literal["makespan", "target"]


def time_to(goal: Goal) -> str:
    """Return the name of the measured time of a goal."""
    return "makespan" if goal == "makespan" else "time to target"


STEP_S = 0.02
"""Seconds per step on a slot of speed 1. Nothing depends on it: an agent sees shares of time."""
GOOD = 1.0
"""Metric of a trial that has reached its target."""


@dataclass(frozen=True, slots=True)
class CaseDistribution:
    """A distribution of cases: speeds of slots, numbers of trials, and dispatch costs."""

    slots: tuple[int, int] = (4, 16)
    trials: tuple[int, int] = (10, 60)
    spread: float = 160.0
    """Largest ratio of the fastest slot's speed to the slowest's."""
    dispatch: float = 0.5
    """Largest dispatch cost, in intervals of a slot of speed 1; it is 0 in every third case."""
    noise: float = 0.1
    """Largest noise of step times."""
    intervals: tuple[int, int] = (5, 20)
    """Fewest and most intervals of a trial."""
    goal: Goal = "makespan"
    """Finish all trials soon, or have one trial at its target soon (`target`). Then a trial reaches its
    target after 0.3 to 3 times its steps, evenly in the logarithm: many never do."""

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
        """Draw a case."""
        interval = 50
        terms = Terms(interval, interval * int(random.integers(*self.intervals, endpoint=True)))
        speeds = self._speeds(random)
        free = random.random() < 1 / 3
        costs = AssignmentCosts(
            dispatch_s=0.0 if free else float(random.uniform(0.0, self.dispatch)) * interval * STEP_S
        )
        noise = TimingNoise(float(random.uniform(0.0, self.noise)), seed=int(random.integers(2**31)))
        trials = int(random.integers(*self.trials, endpoint=True))
        scene = PopulationScenario(({},) * trials, Cluster.of_speeds(speeds), terms, costs, noise)
        return (
            PlacementCase(scene, self._good_at(trials, terms.steps, random))
            if self.goal == "target"
            else PlacementCase(scene)
        )

    def _good_at(self, trials: int, steps: int, random: np.random.Generator) -> tuple[float, ...]:
        """Return the steps after which each trial reaches its target; at least one trial does."""
        found = np.ceil(steps * 10.0 ** random.uniform(-0.5, 0.5, trials))
        found[np.argmin(found)] = min(found.min(), steps)
        return tuple(found.tolist())

    def _speeds(self, random: np.random.Generator) -> list[float]:
        """Draw speeds evenly in the logarithm, or from two classes; around 1, or from 1 up."""
        count = int(random.integers(*self.slots, endpoint=True))
        spread = self.spread ** random.uniform()
        speeds = spread ** random.uniform(0.0, 1.0, count)
        if random.random() < 0.3:
            speeds = np.where(random.random(count) < random.uniform(0.1, 0.5), spread, 1.0)
        at = random.choice([speeds.min(), np.median(speeds), speeds.max()])
        return [float(f"{speed:.4g}") for speed in speeds / at]


def _is_range(found: object) -> bool:
    return (
        isinstance(found, Sequence)
        and len(found) == 2
        and all(isinstance(each, Integral) for each in found)
        and 1 <= found[0] <= found[1]
    )


@dataclass(frozen=True, slots=True)
class PlacementCase:
    """A scenario, its goal, and the lower bound of its time."""

    scene: PopulationScenario
    good_at: tuple[float, ...] = ()
    """Steps after which each trial reaches its target; empty if all trials are trained to their end."""
    bound_s: float = field(init=False)

    def __post_init__(self) -> None:
        speeds = [slot.speed for slot in self.scene.cluster.all_slots]
        if self.good_at:
            bound_s = min(self.good_at) * STEP_S / max(speeds)
            object.__setattr__(
                self, "scene", replace(self.scene, terms=replace(self.scene.terms, target=GOOD))
            )
        else:
            bound_s = lower_bound_s(len(self.scene.hypers), self.scene.terms.steps * STEP_S, speeds)
        object.__setattr__(self, "bound_s", bound_s)

    def landscape(self) -> "HiddenTargets":
        """Return the metrics of its trials."""
        return HiddenTargets(self.good_at or (inf,) * len(self.scene.hypers))

    def ratio(self, timeline: Sequence[Event], makespan_s: float) -> float:
        """Return the time to the goal ÷ lower bound."""
        if not self.good_at:
            return makespan_s / self.bound_s
        return self._first_s(timeline) / self.bound_s

    def _first_s(self, timeline: Sequence[Event]) -> float:
        """Return when a trial first reached its target; a trial that only ran out of steps does not count."""
        steps = [0] * len(self.good_at)
        for event in timeline:
            if isinstance(event, Reported):
                steps[event.trial] += event.steps
                if steps[event.trial] >= self.good_at[event.trial]:
                    return event.at_s
        raise ValueError("no trial was good enough: at least one should be")


class HiddenTargets(Equal):
    """Trials of equal cost that reach their targets after hidden numbers of steps."""

    def __init__(self, good_at: tuple[float, ...]) -> None:
        super().__init__(STEP_S)
        self._outcomes = Outcomes(TOWARDS_TARGETS, good_at)
        self._outcomes.curves = np.array([good_at])

    @property
    def outcomes(self) -> Outcomes:
        return self._outcomes

    def begin(self, trial: int, hyper: Hyper) -> None:
        self._outcomes.begin(trial)

    def train(self, trial: int, steps: int) -> float:
        return self._outcomes.train(trial, steps)
