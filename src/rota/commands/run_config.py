"""What a file in `config/run` may say, and how it becomes a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import tomli_w

from rota.commands.population_policies import Contender, contenders
from rota.config.bind import bind
from rota.config.dump import dump
from rota.config.paths import placed
from rota.core.errors import ConfigError
from rota.core.population.costs import Costs
from rota.core.population.decisions import Hyper
from rota.execution.controller import Undertaking
from rota.execution.engine import Engine
from rota.execution.local_config import LocalConfig
from rota.execution.ray_config import RayConfig
from rota.execution.slurm_config import SlurmConfig
from rota.execution.trainable import check_name
from rota.policies.choice import check_names
from rota.policies.retirement import RetireSlowest
from rota.policies.trials import MOST, TrialsConfig

PATHS = ("ray.scores", "options.learned.agent")
"""Keys of a configuration that are paths."""
RAW = ("options", "training")
"""Tables that are not bound here: those of the policies, and that of whatever is trained."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """One question, asked of real machines: these trials, on these slots, under this allocation."""

    population: TrialsConfig = field(default_factory=TrialsConfig)
    allocation: str = "fifo"
    """Which trials on an idle slot: fifo, era, eta, hrfs, finish, learned; also spa-era, spa-eta, gpa-era and
    gpa-eta."""
    evolution: str = "none"
    """What becomes of trials that reported: none, pbt or asha."""
    retirement: RetireSlowest | None = None
    """Whether slots are given up towards the end; presets say so themselves."""
    attempts: int = 3
    """A trial whose parts failed so often in all is let go."""
    seed: int = 0
    """Of evolution, first hyper-parameters, first weights and the order of the data."""
    repeat: int = 1
    """How often all of it is run, with the seeds `seed`, `seed` + 1, …"""
    trial: str = "rota.training.trial:network"
    """Whatever makes what is trained, as module:function; it is given `[training]` and the seed."""
    backend: Literal["local", "ray", "slurm"] = "local"
    """Which machines."""
    local: LocalConfig = field(default_factory=LocalConfig)
    ray: RayConfig = field(default_factory=RayConfig)
    slurm: SlurmConfig = field(default_factory=SlurmConfig)
    step_s: float = 0.01
    """Seconds that a step is expected to take on a slot of speed 1, before any was measured."""
    costs: Costs = field(default_factory=Costs)
    """What policies take for granted."""

    def __post_init__(self) -> None:
        check_names((self.allocation,), self.evolution)
        check_name(self.trial)
        if not 1 <= self.repeat <= MOST:
            raise ConfigError(f"repeat is {self.repeat}; it must be 1 to {MOST:,}")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}; it must be 0 or more")
        if not self.step_s > 0.0:
            raise ConfigError(f"step_s is {self.step_s:g}; it must be above 0")
        if self.attempts < 1:
            raise ConfigError(f"attempts is {self.attempts}; it must be at least 1")

    @property
    def allocations(self) -> tuple[str, ...]:
        return (self.allocation,)

    @property
    def engine(self) -> Engine:
        engine: Engine = getattr(self, self.backend)
        return engine

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + self.repeat)


@dataclass(frozen=True, slots=True)
class Expected:
    """What trials are expected to cost: as much as others with the same network and batch size."""

    model: str
    seconds: float

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        words = (self.model, str(hyper.get("batch_size", "")), f"+{len(changes)}" if changes else "")
        return " ".join(word for word in words if word)

    def step_s(self, kind: str) -> float:
        return self.seconds

    def size_mb(self, kind: str) -> float:
        return 0.0


@dataclass(frozen=True, slots=True)
class Ordered:
    """A run as it was asked for: checked, and complete."""

    config: RunConfig
    contender: Contender
    training: Mapping[str, Any]

    def undertaking(self, seed: int) -> Undertaking:
        config = self.config
        return Undertaking(
            hypers=config.population.hypers(seed),
            fleet=config.engine.fleet(),
            terms=config.population.terms(config.attempts),
            costs=config.costs,
            work=Expected(str(self.training.get("model", "trial")), config.step_s),
            seed=seed,
            report_each=config.population.report == "each",
        )

    def text(self) -> str:
        """The configuration in full, from which it can be resumed."""
        import tomllib

        extra = {"options": self.contender.options, "training": dict(self.training)}
        return tomli_w.dumps({**tomllib.loads(dump(self.config)), **{k: v for k, v in extra.items() if v}})


def ordered(given: Mapping[str, Any], where: Path, assignments: Sequence[str] = ()) -> Ordered:
    """What a table says; an error that says so if it is wrong. Assignments are what was put over a file."""
    table: dict[str, Any] = placed(given, PATHS, where.parent.absolute(), assignments, Path.cwd())
    rest = {name: value for name, value in table.items() if name not in RAW}
    config = bind(RunConfig, rest, where)
    check_address(config.backend, assignments)
    config = replace(config, ray=config.ray.scored())
    training = table.get("training", {})
    if not isinstance(training, Mapping):
        raise ConfigError(f"{where}: training is not a table")
    (contender,) = contenders(config, table.get("options", {}), str(where))
    return Ordered(config, contender, training)


def check_address(backend: str, assignments: Sequence[str]) -> None:
    """That of a cluster is of no use to other machines."""
    if backend != "ray" and any(text.startswith("ray.address=") for text in assignments):
        raise ConfigError(f'--address: is of a Ray cluster, but backend is "{backend}"; --set backend=ray')
