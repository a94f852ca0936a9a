"""What a file in `config/simulate` may say about a population, and how it becomes a rehearsal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from rota.core.errors import ConfigError, unknown
from rota.core.population.costs import Costs
from rota.core.population.decisions import Hyper
from rota.core.population.events import Event
from rota.core.population.fleet import Fleet
from rota.policies.allocation.registry import ALLOCATIONS
from rota.policies.choice import check_names
from rota.policies.retirement import RetireSlowest
from rota.policies.trials import MOST
from rota.replay.population.besides import Besides
from rota.replay.population.bound import lower_bound_s
from rota.replay.population.machines import MachinesConfig
from rota.replay.population.rehearse import Scene
from rota.replay.population.trials import PopulationConfig
from rota.replay.population.weather import Weather
from rota.replay.population.work import best_speeds, bound_of_s, work_done

NINE = (1.3, 1.0, 0.33, 0.33, 0.33, 1.6, 1.0, 1.0, 8.0)
"""Speeds of the cluster of the original systems: eight nodes and a GPU."""


@dataclass(frozen=True, slots=True)
class WeatherConfig:
    """What makes an interval take longer or shorter than it should."""

    noise: float = 0.0
    """Each part takes exp(N(-noise²/2, noise)) times as long: 1 on average."""
    drift: float = 0.0
    """How far the logarithm of a slot's speed wanders in an interval; in k of them, √k times as far."""

    def __post_init__(self) -> None:
        self.seeded(0)

    def seeded(self, seed: int) -> Weather:
        return Weather(self.noise, self.drift, seed)


@dataclass(frozen=True, slots=True)
class PopulationsConfig:
    """One question: these trials, on these slots, under these allocations."""

    population: PopulationConfig = field(default_factory=PopulationConfig)
    allocations: tuple[str, ...] = tuple(ALLOCATIONS)
    """Which allocations to compare; also spa-era, spa-eta, gpa-era and gpa-eta."""
    evolution: str = "none"
    """What becomes of trials that reported: none, pbt or asha."""
    retirement: RetireSlowest | None = None
    """Whether slots are given up towards the end, under all allocations but presets, which say so."""
    seeds: int = 5
    """How often each is rehearsed: with the seeds 0, 1, … of noise, drift, evolution and first trials."""
    slots: tuple[float, ...] = ()
    """Speeds of slots, each on a node of its own; if no cluster is named either, the nine of the original
    systems."""
    cluster: str = ""
    """Which of `clusters` to train on, in place of `slots`."""
    clusters: dict[str, MachinesConfig] = field(default_factory=dict)
    """Name → slots and nodes in detail."""
    costs: Costs = field(default_factory=Costs)
    besides: Besides | None = None
    """What a report costs besides its steps, which policies find out as they go; if not given, as measured
    with the curves (`beside` of a recording)."""
    weather: WeatherConfig = field(default_factory=WeatherConfig)

    def __post_init__(self) -> None:
        if not self.allocations:
            raise ConfigError("allocations is empty; name at least one")
        check_names(self.allocations, self.evolution)
        for name in self.allocations:
            if self.allocations.count(name) > 1:
                raise ConfigError(f"allocations names {name} twice")
        if not 1 <= self.seeds <= MOST:
            raise ConfigError(f"seeds is {self.seeds}; it must be 1 to {MOST:,}")
        if self.population.curves is None:
            self._check_unmeasured()
        self._check_machines()

    def _check_unmeasured(self) -> None:
        """Where nothing says how good trials are, nothing can depend on it."""
        how = "nothing is measured without population.curves; give those, or leave it out"
        if self.evolution != "none":
            raise ConfigError(f"evolution is {self.evolution!r}, but {how}")
        if math.isfinite(self.population.target):
            raise ConfigError(f"population.target is {self.population.target:g}, but {how}")

    def _check_machines(self) -> None:
        if self.cluster and self.slots:
            raise ConfigError("slots and cluster are both given; leave one of them out")
        if self.cluster and self.cluster not in self.clusters:
            how = "" if self.clusters else f"none; say what it is: [clusters.{self.cluster}]"
            raise ConfigError(f"cluster: {unknown('cluster', self.cluster, self.clusters)}{how}")
        self.fleet()

    def fleet(self) -> Fleet:
        return self.clusters[self.cluster].build() if self.cluster else Fleet.of(self.slots or NINE)

    def scene(self, seed: int, batch_sizes: Sequence[float] = ()) -> Scene:
        """What is rehearsed with a seed, whatever the allocation. Evolution may lead to these batch sizes."""
        hypers = self.population.hypers(seed)
        return Scene(
            hypers=hypers,
            fleet=self._foretold(hypers, batch_sizes),
            terms=self.population.terms(),
            costs=self.costs,
            weather=self.weather.seeded(seed),
            report_each=self.population.report == "each",
            besides=self.population.besides() if self.besides is None else self.besides,
        )

    def _foretold(self, hypers: Sequence[Hyper], batch_sizes: Sequence[float]) -> Fleet:
        """The slots, with speeds from profiles: those of single slots, before trials take several."""
        if not self.cluster:
            return self.population.foretold(self.fleet(), hypers, batch_sizes)
        machines = self.clusters[self.cluster]
        return machines.spanned(self.population.foretold(machines.apart(), hypers, batch_sizes))

    def cluster_name(self) -> str:
        """Its name, or the speeds of the slots."""
        return self.cluster or f"slots {','.join(f'{speed:g}' for speed in self.slots or NINE)}"

    def lower_bound_s(self, events: Sequence[Event], scene: Scene) -> float:
        """The least time that what was done can take."""
        population, landscape = self.population, self.population.landscape()
        if population.curves is None:
            work_s, kind = population.steps * population.step_s, landscape.kind({}, ())
            return lower_bound_s(population.trials, work_s, best_speeds(scene.fleet, kind))
        return bound_of_s(work_done(events, scene.hypers, landscape), scene.fleet)
