"""Worlds in which an agent schedules: jobs and a cluster for each episode, and engines at their beginning."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rota.core.batch import LaneEngine
from rota.core.cluster import Cluster
from rota.core.costs import CostModel
from rota.core.durations import Durations
from rota.core.errors import InputError
from rota.core.failures import Failures
from rota.core.lanes import ASKED, FACTS, RATE, SCORE, SOLO_S
from rota.core.placement import Style, Types
from rota.core.policy import Needs
from rota.simulator.jobs import engine_for
from rota.workload.jobs import Workload
from rota.workload.synthetic import SyntheticConfig, generate

World = Workload | tuple[Workload, Cluster]
"""Jobs, perhaps with a cluster of their own."""
GivenWorlds = World | Iterable[World] | Callable[[int], World]
"""A world, several, or a function that makes one of a seed."""


@dataclass(frozen=True, slots=True)
class EngineRules:
    """How engines place jobs and charge for starts, and up to which duration a job counts as short."""

    cost: CostModel
    style: Style
    types: Types
    bound_s: float
    keeps_timeline: bool
    failures: Failures | None
    durations: Durations
    resizes: bool = False

    def engine(self, jobs: Workload, cluster: Cluster) -> LaneEngine:
        """Return an engine at the beginning of a world."""
        needs = Needs(own=(SCORE,), resizes=self.resizes, durations="optional")
        engine = engine_for(
            jobs, cluster, needs, self.cost, self.types,
            keeps_timeline=self.keeps_timeline, failures=self.failures,
            durations=self.durations,
        )  # fmt: skip
        facts = np.zeros((FACTS, len(jobs)))
        facts[SOLO_S], facts[ASKED] = jobs.solo_s, jobs.gpus
        facts[RATE] = 1.0 / np.maximum(jobs.solo_s, self.bound_s)
        return LaneEngine.of(engine, facts, self.style, grows=self.resizes)


@dataclass(frozen=True, slots=True)
class EpisodeWorld:
    """The world of an episode, and its engine."""

    number: int
    """Position among the worlds that were given, or the seed of one that was made."""
    jobs: Workload
    cluster: Cluster
    lane_engine: LaneEngine


class Worlds:
    """Worlds to draw from; engines that were given back are used again."""

    def __init__(
        self, given: GivenWorlds | None, cluster: Cluster | None, episode_jobs: int | None, rules: EngineRules
    ) -> None:
        """Check what was given, as `rota.SchedulingEnv` takes it."""
        if given is None:
            given, cluster = made_up, cluster or Cluster.uniform(nodes=2, gpus=8)
        self._default, self._episode_jobs, self._rules = cluster, episode_jobs, rules
        self._make: Callable[[int], Any] | None = None
        self._worlds: list[tuple[Workload, Cluster]] = []
        if callable(given):
            self._make = given
        else:
            alone = isinstance(given, Workload) or _is_pair(given)
            self._worlds = [self._checked(world) for world in ([given] if alone else _listed(given))]
            if not self._worlds:
                raise InputError("jobs: none; give a workload, or several")
        first = self._worlds[0] if self._worlds else self._checked(self._made(0))
        self.kinds = first[1].kinds
        """Device kinds, which all worlds share."""
        for world in self._worlds or [first]:
            self._check_kinds(world[1])
            self._check_length(world[0])
        self._unused: dict[int, list[EpisodeWorld]] = defaultdict(list)

    def draw(self, rng: np.random.Generator, number: int | None = None) -> EpisodeWorld:
        """Return a world at its beginning: one drawn at random, or the one with a number."""
        if self._make is not None:
            drawn = int(rng.integers(2**31))
            return self._begun(drawn if number is None else number, rng)
        drawn = int(rng.integers(len(self._worlds)))
        number = drawn if number is None else number
        if not 0 <= number < len(self._worlds):
            raise InputError(f"option world is {number}; there are worlds 0 to {len(self._worlds) - 1}")
        unused = self._unused[number]
        if not unused:
            return self._begun(number, rng)
        found = unused.pop()
        found.lane_engine.rewind()
        return found

    def give_back(self, world: EpisodeWorld) -> None:
        """Keep the engine of a world that can be drawn again."""
        if self._make is None and self._episode_jobs is None:
            self._unused[world.number].append(world)

    def _begun(self, number: int, rng: np.random.Generator) -> EpisodeWorld:
        jobs, cluster = self._worlds[number] if self._worlds else self._checked(self._made(number))
        self._check_kinds(cluster)
        self._check_length(jobs)
        if self._episode_jobs is not None:
            jobs = jobs.window(int(rng.integers(len(jobs) - self._episode_jobs + 1)), self._episode_jobs)
        return EpisodeWorld(number, jobs, cluster, self._rules.engine(jobs, cluster))

    def _made(self, seed: int) -> Any:
        assert self._make is not None
        return self._make(seed)

    def _checked(self, world: Any) -> tuple[Workload, Cluster]:
        jobs, cluster = world if _is_pair(world) else (world, self._default)
        if not isinstance(jobs, Workload):
            raise InputError(
                f"jobs: a {type(jobs).__name__}; give a workload (rota.read_trace, rota.synthetic_trace), "
                "a pair of a workload and a cluster, several of these, or a function that makes one of a seed"
            )
        if cluster is None:
            raise InputError(f"cluster: none for {jobs.name!r}; give one for all, or pairs (jobs, cluster)")
        if not isinstance(cluster, Cluster):
            raise InputError(f"cluster: a {type(cluster).__name__}; give a rota.Cluster")
        return jobs, cluster

    def _check_kinds(self, cluster: Cluster) -> None:
        if cluster.kinds != self.kinds:
            one, other = (", ".join(kinds) for kinds in (self.kinds, cluster.kinds))
            raise InputError(
                f"cluster: one has device kinds {one}, another {other}; give all the same, in the same order"
            )

    def _check_length(self, jobs: Workload) -> None:
        if self._episode_jobs is not None and len(jobs) < self._episode_jobs:
            raise InputError(
                f"episode_jobs is {self._episode_jobs}, but {jobs.name!r} has {len(jobs)} jobs; ask for fewer"
            )


def made_up(seed: int) -> Workload:
    """Return the jobs of an episode for which none were given."""
    return generate(SyntheticConfig(jobs=100, gpus=16, load=1.5, seed=seed))


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Cluster)


def _listed(given: Any) -> list[Any]:
    try:
        return list(given)
    except TypeError:
        return [given]  # which is refused as what it is
