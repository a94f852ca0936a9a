"""The configuration of a simulated population: trials, slots, noise and costs."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from math import inf
from pathlib import Path
from typing import Literal

from rota.core.cluster import LARGEST, NodeChange
from rota.core.errors import ConfigError, unknown
from rota.core.population.cluster import AssignmentCosts, PopulationCluster, Slot, Slowdown
from rota.core.population.events import Event, Hyper
from rota.policies.allocation.registry import ALLOCATIONS
from rota.policies.config import MOST, Choices, TrialsConfig, check_names
from rota.policies.population import RetireSlowest
from rota.recordings.curve import Curves, read_curves
from rota.recordings.profile import Profiles, read_profiles
from rota.simulator.bounds import best_speeds, bound_of_s, lower_bound_s, work_done
from rota.simulator.landscapes import BATCH, CurveAssumptions, Equal, Landscape, RecordedLandscape
from rota.simulator.noise import ReportOverhead, TimingNoise
from rota.simulator.population import PopulationScenario
from rota.simulator.step_times import PredictedStepTimes, TrialKind


@dataclass(frozen=True, slots=True)
class SlotConfig:
    """Some equal slots."""

    speed: float
    """Relative: a step that takes a second at speed 1 takes half a second at speed 2."""
    count: int = 1
    """How many of them."""
    node: str = ""
    """The node that they are on; each is on one of its own if not given."""
    switch: int = 0
    """That the node is at."""
    device: str = "cpu"
    """What they are: for people, to find them in `population.profiles`, and for the shares of the originals,
    which are per node and device."""
    speeds: dict[str, float] = field(default_factory=dict)
    """Kind of trial → speed with it, where that is another."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= LARGEST:
            raise ConfigError(f"count is {self.count}; it must be 1 to {LARGEST:,}")


@dataclass(frozen=True, slots=True)
class SlotNodeChangeConfig:
    """A node that leaves or joins."""

    at_s: float
    node: str
    what: Literal["leave", "join"]


@dataclass(frozen=True, slots=True)
class SlowdownConfig:
    """From a moment on a node takes so many times as long as it should."""

    at_s: float
    node: str
    factor: float


@dataclass(frozen=True, slots=True)
class SlotsConfig:
    """Unequal slots on nodes that may slow down, fail and come back."""

    slots: tuple[SlotConfig, ...]
    """In this order they are idle at first."""
    per_trial: int = 1
    """Slots of a node that a trial takes."""
    efficiency: float = 1.0
    """Of a trial that takes several, in each of them."""
    changes: tuple[SlotNodeChangeConfig, ...] = ()
    """Nodes that leave and join; one that joins first is not there before."""
    slowdowns: tuple[SlowdownConfig, ...] = ()
    """Nodes that become slower, or as fast again as they were (factor 1)."""

    def __post_init__(self) -> None:
        self.build()

    def build(self) -> PopulationCluster:
        """The fleet; what is wrong with it is an error."""
        return self.spanned(self.apart())

    def apart(self) -> PopulationCluster:
        """With each slot by itself, however many a trial takes."""
        named = {group.node for group in self.slots}
        numbers: dict[str, int] = {}
        switches: list[int] = []
        slots: list[Slot] = []
        for group in self.slots:
            for _ in range(group.count):
                node = group.node or _unused(numbers, named)
                if node not in numbers:
                    numbers[node] = len(numbers)
                    switches.append(group.switch)
                if switches[numbers[node]] != group.switch:
                    raise ConfigError(f"slots: {node} is at two switches; give its slots the same")
                slots.append(Slot(numbers[node], group.speed, group.speeds, group.device))
        nodes = tuple(numbers)
        return PopulationCluster(
            tuple(slots),
            nodes,
            tuple(switches),
            tuple(NodeChange(c.at_s, _number(nodes, c.node), c.what == "join") for c in self.changes),
            tuple(Slowdown(s.at_s, _number(nodes, s.node), s.factor) for s in self.slowdowns),
        )

    def spanned(self, fleet: PopulationCluster) -> PopulationCluster:
        """Slots as trials take them."""
        return fleet.spanned(self.per_trial, self.efficiency)


def _unused(numbers: Collection[str], named: Collection[str]) -> str:
    """The name of the next node that has none: its number, unless another one is called so."""
    names = (f"node{number}" for number in count(len(numbers)))
    return next(name for name in names if name not in named and name not in numbers)


def _number(nodes: tuple[str, ...], name: str) -> int:
    if name not in nodes:
        raise ConfigError(unknown("node", name, nodes))
    return nodes.index(name)


@dataclass(frozen=True, slots=True)
class PopulationConfig(TrialsConfig):
    """Which trials, how they are trained, and what comes of it."""

    step_s: float = 1.0
    """Seconds that a step takes on a slot of speed 1, unless curves say so."""
    checkpoint_mb: float = 0.0
    """What has to be moved when a trial changes its node."""
    curves: Path | None = None
    """The folder of a recording of curves, which say what trials cost and how good they become; it starts at
    the folder of the configuration file. Without it trials cost the same, and nothing is measured."""
    profiles: Path | None = None
    """The folder of a recording of profiles, with curves: speeds of slots whose `device` was profiled are
    predicted from it, where the slot does not give them: for each batch size that trials begin with, that was
    recorded, or that `options.pbt.space` lists."""
    parameters: dict[str, int] = field(default_factory=dict)
    """Model → how many parameters it has, for predicting those that were not profiled from others."""
    metric: str = ""
    """Of the curves: how good a trial is; accuracy, if that was recorded. More is better: a loss counts as a
    negative number, in targets and for evolution, too."""
    growth: float = 1.25
    """How many times as long a step takes, and as large a checkpoint is, with each change of a network."""
    gain: float = 0.0
    """What each change of a network adds to the metric."""

    def __post_init__(self) -> None:
        TrialsConfig.__post_init__(self)
        if not 0.0 < self.step_s < inf:
            raise ConfigError(f"step_s is {self.step_s:g}; it must be above 0")
        if not 0.0 <= self.checkpoint_mb < inf:
            raise ConfigError(f"checkpoint_mb is {self.checkpoint_mb:g}; it must be 0 or more")
        if self.profiles is not None and self.curves is None:
            raise ConfigError("profiles: what trials are is said by curves; give those, too, or leave it out")
        if any(count < 1 for count in self.parameters.values()):
            raise ConfigError("parameters: a network has 1 or more")
        if self.metric.endswith("loss") and 0.0 < self.target < inf:
            raise ConfigError(
                f"target is {self.target:g}, but {self.metric} is a loss, which counts as a negative number, "
                f"so that more is better; give one below 0, like -{self.target:g}"
            )
        self._liberties()

    def landscape(self) -> Landscape:
        """Fresh: a landscape remembers where its trials stand."""
        if self.curves is None:
            return Equal(self.step_s, self.checkpoint_mb)
        return RecordedLandscape(_recording(self.curves), self._liberties())

    def overhead(self) -> ReportOverhead:
        """Return the recorded seconds of a report that are not training; 0 if none were recorded."""
        return ReportOverhead.recorded(_recording(self.curves).details if self.curves else {})

    def measured_from(self) -> int:
        """Where the curves begin."""
        settings = _recording(self.curves).settings.values() if self.curves else ()
        return min((int(setting.steps[0]) for setting in settings), default=0)

    def foretold(
        self, fleet: PopulationCluster, hypers: Sequence[Hyper], batch_sizes: Sequence[float] = ()
    ) -> PopulationCluster:
        """The slots, with speeds for each kind of trial as far as profiles tell.

        Kinds are those that trials begin with, that were recorded, and those of further batch sizes.
        """
        if self.profiles is None or self.curves is None:
            return fleet
        curves, landscape = _recording(self.curves), self.landscape()
        device = next(iter(curves.settings.values())).device
        all_there_are = (*hypers, *curves.tried, *({BATCH: size} for size in batch_sizes))
        batches = {landscape.kind(hyper, ()): int(hyper.get(BATCH, 0)) for hyper in all_there_are}
        kinds = {name: TrialKind(curves.model, batch) for name, batch in batches.items() if batch}
        return PredictedStepTimes.of(_profiles(self.profiles), self.parameters, device).fill_in(fleet, kinds)

    def choices(self) -> Choices:
        """What is said to begin with; else what was recorded."""
        if self.curves is None:
            return dict(self.start)
        curves = _recording(self.curves)
        for name in self.start:
            if name not in curves.hyper:
                raise ConfigError(f"start: {unknown('hyper-parameter', name, curves.hyper)}")
        recorded = {name: sorted({hyper[name] for hyper in curves.tried}, key=str) for name in curves.hyper}
        return {**recorded, **self.start}

    def _liberties(self) -> CurveAssumptions:
        return CurveAssumptions(self.metric, self.checkpoint_mb, self.growth, self.gain)


@cache
def _profiles(folder: Path) -> Profiles:
    return read_profiles(folder)


@cache
def _recording(folder: Path) -> Curves:
    return read_curves(folder)


NINE = (1.3, 1.0, 0.33, 0.33, 0.33, 1.6, 1.0, 1.0, 8.0)
"""Speeds of the cluster of the original systems: eight nodes and a GPU."""


@dataclass(frozen=True, slots=True)
class NoiseConfig:
    """What makes an interval take longer or shorter than it should."""

    sigma: float = 0.0
    """Each interval takes exp(N(-sigma²/2, sigma)) times as long: 1 on average."""
    drift: float = 0.0
    """How far the logarithm of a slot's speed wanders in an interval; in k of them, √k times as far."""

    def __post_init__(self) -> None:
        self.seeded(0)

    def seeded(self, seed: int) -> TimingNoise:
        return TimingNoise(self.sigma, self.drift, seed)


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
    clusters: dict[str, SlotsConfig] = field(default_factory=dict)
    """Name → slots and nodes in detail."""
    costs: AssignmentCosts = field(default_factory=AssignmentCosts)
    overhead: ReportOverhead | None = None
    """Seconds of a report that are not training, which policies find out as they go; if not given, as
    measured with the curves (`copies` of a recording)."""
    noise: NoiseConfig = field(default_factory=NoiseConfig)

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

    def fleet(self) -> PopulationCluster:
        return (
            self.clusters[self.cluster].build() if self.cluster else PopulationCluster.of(self.slots or NINE)
        )

    def scene(self, seed: int, batch_sizes: Sequence[float] = ()) -> PopulationScenario:
        """What is rehearsed with a seed, whatever the allocation. Evolution may lead to these batch sizes."""
        hypers = self.population.hypers(seed)
        return PopulationScenario(
            hypers=hypers,
            fleet=self._foretold(hypers, batch_sizes),
            terms=self.population.terms(),
            costs=self.costs,
            weather=self.noise.seeded(seed),
            report_each=self.population.report == "each",
            besides=self.population.overhead() if self.overhead is None else self.overhead,
        )

    def _foretold(self, hypers: Sequence[Hyper], batch_sizes: Sequence[float]) -> PopulationCluster:
        """The slots, with speeds from profiles: those of single slots, before trials take several."""
        if not self.cluster:
            return self.population.foretold(self.fleet(), hypers, batch_sizes)
        machines = self.clusters[self.cluster]
        return machines.spanned(self.population.foretold(machines.apart(), hypers, batch_sizes))

    def cluster_name(self) -> str:
        """Its name, or the speeds of the slots."""
        return self.cluster or f"slots {','.join(f'{speed:g}' for speed in self.slots or NINE)}"

    def lower_bound_s(self, events: Sequence[Event], scene: PopulationScenario) -> float:
        """The least time that what was done can take."""
        population, landscape = self.population, self.population.landscape()
        if population.curves is None:
            work_s, kind = population.steps * population.step_s, landscape.kind({}, ())
            return lower_bound_s(population.trials, work_s, best_speeds(scene.fleet, kind))
        return bound_of_s(work_done(events, scene.hypers, landscape), scene.fleet)
