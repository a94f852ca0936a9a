"""The configurations of real runs: of a population, and of the jobs of a trace."""

from dataclasses import dataclass, field
from typing import Literal

from rota.core.durations import EXACT_DURATIONS, Durations
from rota.core.errors import ConfigError
from rota.core.limits import above, at_least
from rota.core.network import Change
from rota.core.population.costs import AssignmentCosts
from rota.execution.engine import Engine
from rota.execution.local import LocalConfig
from rota.execution.ray_config import RayConfig
from rota.execution.slurm_config import SlurmConfig
from rota.execution.trainable import check_name
from rota.policies.cluster.registry import canonical
from rota.policies.config import MOST, TrialsConfig, check_names
from rota.policies.population import RetireSlowest
from rota.simulator.jobs_config import PlacementConfig, WorkloadConfig

NETWORKS = ("rota.training.job:networks", "rota.learning.site:networks")
"""Values of `job` that are rota's own: what they make of `[kinds]` is known."""


class RealConfig:
    """The common part of configurations of real runs, of populations and of jobs."""

    __slots__ = ()
    backend: str
    attempts: int
    seed: int

    def check(self) -> None:
        """Raise ConfigError if attempts or the seed are out of range."""
        at_least(0, seed=self.seed)
        at_least(1, attempts=self.attempts)

    @property
    def engine(self) -> Engine:
        """The slots to run on, and how workers are started there."""
        engine: Engine = getattr(self, self.backend)
        return engine


@dataclass(frozen=True, slots=True)
class RunConfig(RealConfig):
    """A real run of a population: these trials, on these slots, under this allocation."""

    population: TrialsConfig = field(default_factory=TrialsConfig)
    allocation: str = "fifo"
    """Which trials on an idle slot: fifo, era, eta, hrfs, finish, promote, learned, joint; also spa-era,
    spa-eta, gpa-era and gpa-eta, and a class of yours as module:Class or path/to/file.py:Class."""
    evolution: str = "none"
    """What becomes of trials that reported: none, pbt or asha, or a class of yours, named as above."""
    growth: str = "never"
    """How networks grow when trials are assigned, by `changes`: never, at-start, fixed, stump, random or
    agent, or a class of yours."""
    retirement: RetireSlowest | None = None
    """Retirement of slots towards the end; gpa-era and gpa-eta retire slots anyway."""
    changes: tuple[str, ...] = ()
    """Changes that a network makes one by one when it grows, such as `deepen 0`; each after a report."""
    attempts: int = 3
    """Number of failed intervals after which a trial is let go."""
    seed: int = 0
    """Seed of evolution, first hyper-parameters, first weights and the order of the data."""
    repeat: int = 1
    """How often all of it is run, with the seeds `seed`, `seed` + 1, …"""
    trial: str = "rota.training.trial:network"
    """What is trained, as module:name or path/to/file.py:name: a function of the settings `[training]` and
    the seed that is annotated to return what has begin, load, save, train and evaluate, or such a class; or
    what `rota.tune` trains: a class with step, save and load, or a generator function of `config`."""
    metric: str = ""
    """Which of the metrics that a class or a generator function gives says how good a trial is."""
    mode: Literal["max", "min"] = "max"
    """Whether more of it is better, or less."""
    quick: bool = False
    """Whether `--quick` made it a try of seconds."""
    code: dict[str, str] = field(default_factory=dict)
    """File → digest, of what is named in files; a run writes it, and is only resumed with the same."""
    backend: Literal["local", "ray", "slurm"] = "local"
    """Engine that starts workers."""
    local: LocalConfig = field(default_factory=LocalConfig)
    ray: RayConfig = field(default_factory=RayConfig)
    slurm: SlurmConfig = field(default_factory=SlurmConfig)
    step_s: float = 0.01
    """Seconds that a step is expected to take on a slot of speed 1, before any was measured."""
    costs: AssignmentCosts = field(default_factory=AssignmentCosts)
    """Costs that policies assume."""

    def __post_init__(self) -> None:
        check_names((self.allocation,), self.evolution, self.growth)
        if self.growth != "never" and not self.changes:
            raise ConfigError(
                f"growth is {self.growth!r}, but nothing says how networks may change; give changes, as in "
                'changes = ["deepen 0", "deepen 1"]'
            )
        if self.allocation == "joint" and self.mode == "min":
            raise ConfigError(
                'allocation is "joint", which has learned on accuracies; with mode = "min" give another'
            )
        check_name(self.trial)
        if not 1 <= self.repeat <= MOST:
            raise ConfigError(f"repeat is {self.repeat}; it must be 1 to {MOST:,}")
        above(0, step_s=self.step_s)
        for change in self.changes:
            Change.parse(change)
        self.check()

    @property
    def allocations(self) -> tuple[str, ...]:
        """The one allocation, as configurations of simulations name several."""
        return (self.allocation,)

    @property
    def seeds(self) -> range:
        """The seed of each repetition."""
        return range(self.seed, self.seed + self.repeat)


@dataclass(frozen=True, slots=True)
class OpportunisticConfig:
    """A training that uses idle slots, for as long as its budget says."""

    kind: str
    """What is trained: `[kinds.NAME]`, with an `adaptive` table."""
    slots: int = 1
    """Number of slots of its own: the first ones; idle ones of the others are lent to it."""
    most: int = 8
    """Slots that it can make use of; so many of them are used as are a power of two."""

    def __post_init__(self) -> None:
        if not 1 <= self.slots <= self.most or self.slots & (self.slots - 1):
            raise ConfigError(
                f"slots is {self.slots}; it must be a power of two, from 1 to most ({self.most})"
            )


@dataclass(frozen=True, slots=True)
class JobsConfig(RealConfig):
    """A real run of jobs: these, on these slots, under this scheduler."""

    workload: WorkloadConfig
    """The model of a job is its kind: `[kinds.NAME]` says what is trained."""
    scheduler: str = "srtf"
    """fifo, srtf, srsf, tiresias, themis, antman, muri-s, muri-l …"""
    assignment_s: float = 0.25
    """Seconds that a job is assigned at a time, about; then it is checkpointed, and can be preempted."""
    iteration_s: float = 0.01
    """Seconds that an iteration is expected to take until it is measured, where the workload does not say."""
    attempts: int = 3
    """Number of failures after which a job is given up."""
    seed: int = 0
    """Seed of first weights and of the order of the data."""
    job: str = NETWORKS[0]
    """Function that makes what is trained, as module:function; it is given `[kinds]` and the seed, and is
    annotated to return what can open jobs."""
    code: dict[str, str] = field(default_factory=dict)
    """File → digest, of what is named in files; a run writes it, and is only resumed with the same."""
    backend: Literal["local", "ray", "slurm"] = "local"
    """Engine that starts workers."""
    placement: PlacementConfig = field(default_factory=PlacementConfig)
    durations: Durations = EXACT_DURATIONS
    """What the scheduler knows of how long jobs take: everything, unless this says otherwise."""
    opportunistic: OpportunisticConfig | None = None
    """A training that uses idle slots."""
    local: LocalConfig = field(default_factory=LocalConfig)
    ray: RayConfig = field(default_factory=RayConfig)
    slurm: SlurmConfig = field(default_factory=SlurmConfig)

    def __post_init__(self) -> None:
        canonical(self.scheduler)
        check_name(self.job)
        above(0, assignment_s=self.assignment_s, iteration_s=self.iteration_s)
        self.check()
