"""Configuration of learning to schedule, the worlds that are learned from, and what an episode is worth."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rota.core.arrays import Floats
from rota.core.cluster import Cluster
from rota.core.driver import drive_compiled
from rota.core.durations import Durations
from rota.core.engine import JobsEngine, Snapshot
from rota.core.errors import ConfigError
from rota.core.policy import Policy
from rota.core.timeline import EventKind
from rota.policies.cluster.learned import Corrected, Knowledge, Weights
from rota.simulator.jobs import engine_for
from rota.workload.jobs import Workload
from rota.workload.synthetic import SyntheticConfig, generate

SHORT_S = 10.0
"""Jobs shorter than this count as so long in slowdowns."""
MOST_INSTANTS, RESTLESS = 100, 1.0
"""Instants per job at which an episode is given up, and what that adds to the objective of the rule."""
FIRST_SEED, VALIDATION_SEED = 1000, 2000
"""Seeds of the first synthetic world that is learned from, and of the first one for validation."""


@dataclass(frozen=True, slots=True)
class SchedulingObjective:
    """What is to be small: a sum of logarithms, each with a weight; relative changes count alike."""

    avg_jct: float = 1.0
    """Weight of the mean job completion time."""
    p99: float = 0.25
    """Weight of the 99th percentile of completion times: waiting is not to pay for the mean."""
    slowdown: float = 0.0
    """Weight of the mean bounded slowdown: completion time ÷ time alone, of jobs of at least 10 s."""
    fairness: float = 0.0
    """Weight of the mean slowdown of the tenth of the jobs with the largest."""

    def __post_init__(self) -> None:
        weights = (self.avg_jct, self.p99, self.slowdown, self.fairness)
        if not all(0.0 <= weight < math.inf for weight in weights) or not any(weights):
            raise ConfigError("objective: weights must be 0 or more, and one of them above 0")

    def value(self, jct_s: Floats, solo_s: Floats) -> float:
        """Return the objective of the completion times of an episode."""
        slowdown = np.sort(np.maximum(jct_s / np.maximum(solo_s, SHORT_S), 1.0))
        worst = slowdown[-max(1, len(slowdown) // 10) :]
        terms = (jct_s.mean(), np.quantile(jct_s, 0.99), slowdown.mean(), worst.mean())
        weights = (self.avg_jct, self.p99, self.slowdown, self.fairness)
        return float(sum(w * np.log(max(term, 1e-9)) for w, term in zip(weights, terms, strict=True) if w))


@dataclass(frozen=True, slots=True)
class WorldsConfig:
    """The worlds of episodes: synthetic ones, or a folder that `rota trace worlds` wrote."""

    folder: Path | None = None
    """Folder of worlds to learn from; synthetic ones if not given."""
    validation: Path | None = None
    """Folder of worlds that say which weights are kept; a fifth of the others if not given."""
    count: int = 24
    """Number of synthetic worlds; a fifth of them is for validation."""
    jobs: int = 400
    """Number of jobs of a synthetic world."""
    gpus: int = 64
    """GPUs of the cluster of a synthetic world, on nodes of 8."""
    loads: tuple[float, ...] = (0.7, 0.85, 1.0)
    """Loads of synthetic worlds, in turn."""
    kinds: tuple[str, ...] = ()
    """Device kinds that take equal parts of the nodes; none: all nodes are equal."""

    def __post_init__(self) -> None:
        if self.count < 5 or self.jobs < 2:
            raise ConfigError("worlds: count must be at least 5, jobs at least 2")
        if self.gpus < 8 or self.gpus % 8:
            raise ConfigError(f"worlds: gpus is {self.gpus}; give a multiple of 8, for nodes of 8")
        if self.validation is not None and self.folder is None:
            raise ConfigError("worlds: validation is a folder, so folder must be one, too")


@dataclass(frozen=True, slots=True)
class ScheduleAgentConfig:
    """An agent that schedules jobs, to be learned by evolution strategies."""

    durations: Knowledge = "none"
    """Whether the agent is for durations that are not known, and corrects the Gittins index, or for known
    ones, and corrects the shortest remaining time."""
    seeds: tuple[int, ...] = (0,)
    """Seeds; each gives an agent."""
    updates: int = 100
    pairs: int = 6
    """Pairs of opposite changes to the weights that are tried in an update, all on the same worlds."""
    worlds_per_update: int = 8
    sigma: float = 0.1
    """Standard deviation of the changes that are tried."""
    lr: float = 0.05
    """Learning rate at the start; it falls to a tenth."""
    hidden: int = 16
    """Width of the network."""
    validate_every: int = 10
    """Number of updates between two validations; the best weights are kept."""
    objective: SchedulingObjective = field(default_factory=SchedulingObjective)
    worlds: WorldsConfig = field(default_factory=WorldsConfig)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise ConfigError(f"seeds is {list(self.seeds)}; give different numbers from 0 on")
        for name in ("updates", "pairs", "worlds_per_update", "hidden", "validate_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("sigma", "lr"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0")


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """A configuration file of an agent that schedules jobs."""

    schedule: ScheduleAgentConfig


@dataclass(frozen=True)
class TrainingWorld:
    """Jobs, a cluster, and the engine in which episodes are played one after the other."""

    jobs: Workload
    cluster: Cluster
    knows: Knowledge

    @property
    def digest(self) -> str:
        """A digest of the jobs and the cluster."""
        found = hashlib.sha256(self.jobs.table(self.cluster).tobytes())
        found.update(repr(self.cluster).encode())
        return found.hexdigest()

    @cached_property
    def _engine(self) -> tuple[JobsEngine, Snapshot]:
        engine = engine_for(self.jobs, self.cluster, Corrected().needs, durations=Durations(self.knows))
        return engine, engine.snapshot()

    def play(self, policy: Policy) -> Floats:
        """Return the completion time of each job under a policy that corrects a rule."""
        engine, start = self._engine
        engine.restore(start)
        form = policy.compiled  # type: ignore[attr-defined]
        limit = MOST_INSTANTS * len(self.jobs)
        drive_compiled(engine, form, limit, lambda done: _refuse(engine.instants, limit))
        events = engine.timeline().events
        ended = events[events["kind"] == EventKind.FINISHED]
        found = np.zeros(len(self.jobs))
        found[ended["job"]] = ended["at_s"]
        return found - self.jobs.submit_s

    @cached_property
    def _rules(self) -> dict[SchedulingObjective, float]:
        return {}

    def rule(self, objective: SchedulingObjective) -> float:
        """Return what an episode is worth under the rule alone."""
        if objective not in self._rules:
            self._rules[objective] = self.value(None, objective)
        return self._rules[objective]

    def value(self, weights: Weights | None, objective: SchedulingObjective) -> float:
        """Return what an episode is worth with these weights; with none, of the rule alone."""
        flat = () if weights is None else tuple(weights.flat.tolist())
        try:
            return objective.value(self.play(Corrected(flat, flat)), self.jobs.solo_s)
        except Restless:
            return self.rule(objective) + RESTLESS


class Restless(Exception):
    """An episode in which jobs preempt each other without end."""


def _refuse(instants: int, limit: int) -> None:
    if instants >= limit:
        raise Restless


class WorldSets(NamedTuple):
    """The worlds that are learned from, and those that say which weights are kept."""

    training: Sequence[TrainingWorld]
    validation: Sequence[TrainingWorld]


def worlds_of(config: ScheduleAgentConfig) -> WorldSets:
    """Return the worlds of a configuration."""
    worlds, knows = config.worlds, config.durations
    if worlds.folder is None:
        aside = worlds.count // 5
        return WorldSets(
            [synthetic_world(worlds, FIRST_SEED + i, i, knows) for i in range(worlds.count - aside)],
            [synthetic_world(worlds, VALIDATION_SEED + i, i, knows) for i in range(aside)],
        )
    raise ConfigError("worlds.folder: not yet")


def synthetic_world(worlds: WorldsConfig, seed: int, number: int, knows: Knowledge) -> TrainingWorld:
    """Return the synthetic world of a seed."""
    load = worlds.loads[number % len(worlds.loads)]
    jobs = generate(SyntheticConfig(jobs=worlds.jobs, gpus=worlds.gpus, load=load, seed=seed))
    cluster = Cluster.uniform(worlds.gpus // 8, 8)
    if worlds.kinds:
        nodes = cluster.nodes
        kinds = [worlds.kinds[i * len(worlds.kinds) // len(nodes)] for i in range(len(nodes))]
        cluster = Cluster(tuple(replace(node, kind=kind) for node, kind in zip(nodes, kinds, strict=True)))
    return TrainingWorld(jobs, cluster, knows)
