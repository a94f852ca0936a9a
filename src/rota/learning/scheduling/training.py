"""Configuration of learning to schedule, the worlds that are learned from, and what an episode is worth."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rota.core.arrays import Floats
from rota.core.cluster import Cluster, Node
from rota.core.driver import drive_compiled
from rota.core.durations import Durations
from rota.core.engine import JobsEngine, Snapshot
from rota.core.errors import ConfigError, InputError
from rota.core.policy import Policy
from rota.core.timeline import EventKind
from rota.policies.cluster.learned import Corrected, CorrectionWeights, Knowledge
from rota.simulator.jobs import engine_for
from rota.simulator.windows import sized, windows
from rota.workload.formats import read
from rota.workload.jobs import Workload
from rota.workload.synthetic import SyntheticConfig, generate

SHORT_S = 10.0
"""Jobs shorter than this count as so long in slowdowns."""
MOST_INSTANTS, RESTLESS = 100, 1.0
"""Instants per job at which an episode is given up, and what that adds to the objective of the rule."""
FIRST_SEED = 1000
"""Seed of the first synthetic world; seeds from twice that on are for validation and the report."""
TRIALS = 5
"""Times that jobs are drawn for a synthetic world until a cluster has the contention."""
MOST_SYNTHETIC = FIRST_SEED // TRIALS
"""Number of synthetic worlds at most: each draw of each has a seed of its own."""
SLOWEST = 0.15
"""Lowest speed of a model on another device kind than the first."""


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
    """The worlds of episodes: windows of traces on clusters sized by contention, and synthetic jobs."""

    traces: tuple[Path, ...] = ()
    """Traces of any format that is recognised; paths start at the folder of the configuration file."""
    windows: int = 6
    """Windows of each trace."""
    synthetic: int = 24
    """Number of worlds with synthetic jobs."""
    jobs: int = 400
    """Number of jobs of a world."""
    contentions: tuple[float, ...] = (1.5, 2.0, 3.0)
    """Mean completion time under fifo with backfill ÷ mean time alone, in turn."""
    kinds: tuple[str, ...] = ()
    """Device kinds of the nodes, in turn; each model has a speed of its own on each, that on the first is 1.
    None: all nodes are equal. Clusters of kinds are not sized by contention, but have the loads below."""
    gpus: int = 64
    """GPUs of a cluster of several kinds, on nodes of 4."""
    loads: tuple[float, ...] = (0.3, 0.5, 0.7)
    """Loads of clusters of several kinds, in turn, as if all devices were of the first kind."""

    def __post_init__(self) -> None:
        if self.jobs < 2 or self.windows < 1 or self.synthetic < 0:
            raise ConfigError("worlds: jobs must be at least 2, windows at least 1, synthetic at least 0")
        if not self.traces and self.synthetic < 5:
            raise ConfigError("worlds: give traces, or at least 5 synthetic worlds")
        if self.synthetic > MOST_SYNTHETIC:
            raise ConfigError(f"worlds: synthetic is {self.synthetic}; at most {MOST_SYNTHETIC} can be made")
        if not self.contentions or min(self.contentions) <= 1.0:
            raise ConfigError("worlds: contentions must be above 1")
        if not self.loads or min(self.loads) <= 0.0:
            raise ConfigError("worlds: loads must be above 0")
        if self.kinds and (self.gpus < 4 * len(self.kinds) or self.gpus % 4):
            raise ConfigError(f"worlds: gpus is {self.gpus}; give a multiple of 4, and a node of each kind")
        if self.kinds and self.traces:
            raise ConfigError("worlds: kinds are for synthetic worlds; leave them or the traces out")


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
    start: Path | None = None
    """Folder of an agent whose weights are the first ones; by default those of the rule."""
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

    def value(self, weights: CorrectionWeights | None, objective: SchedulingObjective) -> float:
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


ASIDE = 5
"""One of so many worlds is for validation."""


def worlds_of(config: ScheduleAgentConfig) -> WorldSets:
    """Return the worlds of a configuration. Raises InputError if there are too few."""
    worlds = config.worlds
    found = [
        TrainingWorld(jobs, cluster, config.durations)
        for number, path in enumerate(worlds.traces)
        for jobs, cluster in windows(read(path), worlds.jobs, worlds.windows, worlds.contentions, number)
    ]
    for number in range(worlds.synthetic):
        drawn = uneven_world(worlds, number) if worlds.kinds else even_world(worlds, number)
        if drawn is not None:
            found.append(TrainingWorld(*drawn, config.durations))
    if len(found) < ASIDE:
        raise InputError(
            f"worlds: only {len(found)} could be made; give longer traces, or more synthetic worlds"
        )
    aside = found[ASIDE - 1 :: ASIDE]
    return WorldSets([world for world in found if world not in aside], aside)


def even_world(worlds: WorldsConfig, number: int) -> tuple[Workload, Cluster] | None:
    """Return a synthetic world of equal nodes; None if no jobs were found with such a contention."""
    for trial in range(TRIALS):
        seed = FIRST_SEED + number + trial * MOST_SYNTHETIC
        jobs = generate(SyntheticConfig(jobs=worlds.jobs, load=1.0, seed=seed))
        cluster = sized(jobs, worlds.contentions[number % len(worlds.contentions)])
        if cluster is not None:
            return jobs, cluster
    return None


def uneven_world(worlds: WorldsConfig, number: int) -> tuple[Workload, Cluster]:
    """Return a synthetic world of several device kinds."""
    load, seed = worlds.loads[number % len(worlds.loads)], FIRST_SEED + number
    jobs = generate(SyntheticConfig(jobs=worlds.jobs, gpus=worlds.gpus, load=load, seed=seed))
    random = np.random.default_rng(seed)
    kinds = list(dict.fromkeys(worlds.kinds))
    speeds = {
        kind: {model: 1.0 if kind == kinds[0] else float(np.exp(random.uniform(np.log(SLOWEST), 0.0)))
               for model in jobs.models}
        for kind in kinds
    }  # fmt: skip
    nodes = worlds.gpus // 4
    listed = [worlds.kinds[node * len(worlds.kinds) // nodes] for node in range(nodes)]
    return jobs, Cluster(tuple(Node(4, kind=kind) for kind in listed), speeds=speeds)
