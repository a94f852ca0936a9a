"""The configuration of a simulated population: trials, slots, noise and costs."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from math import inf
from pathlib import Path
from typing import Literal

import numpy as np

from rota.core.cluster import LARGEST, Cluster, NodeChange, Slot, Slowdown
from rota.core.errors import ConfigError, unknown
from rota.core.files import located
from rota.core.population.costs import AssignmentCosts
from rota.core.population.engine import Landscape
from rota.core.population.events import Event, Hyper
from rota.policies.allocation.registry import ALLOCATIONS
from rota.policies.config import FIRST_DRAWS, MOST, Choices, TrialsConfig, check_names
from rota.policies.population import RetireSlowest
from rota.recordings.curve import read_curves
from rota.recordings.library import read_growth_trees
from rota.recordings.profile import read_profiles
from rota.simulator.bounds import best_speeds, bound_of_s, lower_bound_s, work_done
from rota.simulator.landscapes import BATCH, CurveAssumptions, Equal, RecordedLandscape
from rota.simulator.noise import ReportOverhead, TimingNoise
from rota.simulator.population import PopulationScenario
from rota.simulator.step_times import PredictedStepTimes, TrialKind, with_step_times
from rota.simulator.trees import GPUS, TreeSet


@dataclass(frozen=True, slots=True)
class SlotConfig:
    """Some equal slots."""

    speed: float
    """Relative speed: a step that takes a second at speed 1 takes half a second at speed 2."""
    count: int = 1
    """Number of such slots."""
    node: str = ""
    """Name of their node; a node each if not given."""
    switch: int = 0
    """Switch of the node."""
    device: str = "cpu"
    """Device, as named in `population.profiles`; the shares of SPA and GPA are per node and device."""
    speeds: dict[str, float] = field(default_factory=dict)
    """Kind of trial → speed, where it differs from `speed`."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= LARGEST:
            raise ConfigError(f"count is {self.count}; it must be 1 to {LARGEST:,}")


@dataclass(frozen=True, slots=True)
class SlotNodeChangeConfig:
    """A node that leaves or joins at a time."""

    at_s: float
    node: str
    what: Literal["leave", "join"]


@dataclass(frozen=True, slots=True)
class SlowdownConfig:
    """A node whose step times are multiplied by a factor from some time on."""

    at_s: float
    node: str
    factor: float


@dataclass(frozen=True, slots=True)
class SlotsConfig:
    """Unequal slots on nodes that may slow down, fail and come back."""

    slots: tuple[SlotConfig, ...]
    """Groups of slots, in the order in which they are idle at first."""
    per_trial: int = 1
    """Slots of a node that each trial takes."""
    efficiency: float = 1.0
    """Efficiency of each slot of a trial that takes several."""
    changes: tuple[SlotNodeChangeConfig, ...] = ()
    """Nodes that leave and join; one that joins first is absent before."""
    slowdowns: tuple[SlowdownConfig, ...] = ()
    """Nodes that become slower, or as fast as before (factor 1)."""

    def __post_init__(self) -> None:
        self.build()

    def build(self) -> Cluster:
        """Return the slots as trials use them. Raises ConfigError if they are wrong."""
        return self.spanned(self.apart())

    def apart(self) -> Cluster:
        """Return the single slots, however many a trial takes."""
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
        return Cluster.of_slots(
            tuple(slots),
            nodes,
            tuple(switches),
            tuple(NodeChange(c.at_s, _number(nodes, c.node), c.what == "join") for c in self.changes),
            tuple(Slowdown(s.at_s, _number(nodes, s.node), s.factor) for s in self.slowdowns),
        )

    def spanned(self, cluster: Cluster) -> Cluster:
        """Return the slots grouped as trials use them."""
        return cluster.spanned(self.per_trial, self.efficiency)


def _unused(numbers: Collection[str], named: Collection[str]) -> str:
    """Return a name for the next unnamed node: its number, or the next free one."""
    names = (f"node{number}" for number in count(len(numbers)))
    return next(name for name in names if name not in named and name not in numbers)


def _number(nodes: tuple[str, ...], name: str) -> int:
    if name not in nodes:
        raise ConfigError(unknown("node", name, nodes))
    return nodes.index(name)


OF_CURVES = ("step_s", "parameters", "metric", "growth", "gain")
"""Keys of a population that mean nothing on trees."""


@dataclass(frozen=True, slots=True)
class PopulationConfig(TrialsConfig):
    """Trials, how they are trained, and their metrics."""

    step_s: float = 1.0
    """Seconds per step on a slot of speed 1, unless curves are given."""
    checkpoint_mb: float = 0.0
    """Size of a checkpoint, which is transferred when a trial changes its node."""
    curves: Path | None = None
    """Folder of recorded curves, which give costs and metrics of trials; relative to the configuration file.
    Without it trials cost the same and have no metric."""
    trees: tuple[Path, ...] = ()
    """Growth trees, or folders of them, of one data set, instead of curves. Each trial walks along one of
    them, drawn without replacement: costs and metrics are exactly those that were recorded. Steps and
    intervals are those of the trees."""
    profiles: Path | None = None
    """Folder of recorded profiles, for use with curves or trees. They predict speeds on slots whose `device`
    was profiled and that give no speed themselves, for each batch size that trials start with, that was
    recorded, or that `options.pbt.space` lists. With trees: the shipped measurements of GPUs if not given."""
    parameters: dict[str, int] = field(default_factory=dict)
    """Model → number of parameters, to predict models that were not profiled from others."""
    metric: str = ""
    """Recorded metric that ranks trials; accuracy by default, if recorded. Higher is better: a loss counts as
    a negative number, also in targets and for evolution."""
    growth: float = 1.25
    """Factor on step time and checkpoint size for each change of a network."""
    gain: float = 0.0
    """Increase of the metric with each change of a network."""

    def __post_init__(self) -> None:
        if self.trees:
            self._take_over_trees()
        TrialsConfig.__post_init__(self)
        if not 0.0 < self.step_s < inf:
            raise ConfigError(f"step_s is {self.step_s:g}; it must be above 0")
        if not 0.0 <= self.checkpoint_mb < inf:
            raise ConfigError(f"checkpoint_mb is {self.checkpoint_mb:g}; it must be 0 or more")
        if self.profiles is not None and self.curves is None and not self.trees:
            raise ConfigError("profiles: they need curves; give those too, or leave them out")
        if any(count < 1 for count in self.parameters.values()):
            raise ConfigError("parameters: a network has at least 1")
        if self.metric.endswith("loss") and 0.0 < self.target < inf:
            raise ConfigError(
                f"target is {self.target:g}, but {self.metric} is a loss, which counts as a negative number, "
                f"so that more is better; give one below 0, like -{self.target:g}"
            )
        self._assumptions()

    def _take_over_trees(self) -> None:
        """Take over steps and intervals from trees. Raises ConfigError if anything else was asked for."""
        if self.curves is not None or self.start:
            other = "curves" if self.curves is not None else "start"
            raise ConfigError(f"trees and {other}: trees have their hyper-parameters; leave one of them out")
        plain = PopulationConfig()
        for name in OF_CURVES:
            if getattr(self, name) != getattr(plain, name):
                raise ConfigError(f"trees and {name}: trees say what steps cost and gain; leave {name} out")
        terms, most = self.tree_set().terms(), len(self.tree_set().trees)
        default = TrialsConfig()
        for name, found in (("steps", terms.steps), ("interval", terms.interval)):
            if getattr(self, name) not in (getattr(default, name), found):
                raise ConfigError(
                    f"{name} is {getattr(self, name)}, but the trees were recorded with {found}; leave it out"
                )
            object.__setattr__(self, name, found)
        if self.trials > most:
            if self.trials != default.trials:
                raise ConfigError(f"trials is {self.trials}, but there are {most} trees; give at most that")
            object.__setattr__(self, "trials", most)

    def tree_set(self) -> TreeSet:
        """Return the growth trees."""
        return _tree_set(self.trees, self.checkpoint_mb)

    @property
    def measured(self) -> bool:
        """Whether trials have a metric."""
        return self.curves is not None or bool(self.trees)

    @property
    def explorable(self) -> bool:
        """Whether trials can have other hyper-parameters than those that they start with."""
        return not self.trees

    def hypers(self, seed: int) -> tuple[Hyper, ...]:
        """Return the initial hyper-parameters of each trial; on trees, those of trees that are drawn."""
        if not self.trees:
            return TrialsConfig.hypers(self, seed)
        random, known = np.random.default_rng((seed, FIRST_DRAWS)), self.tree_set().hypers
        return tuple(known[tree] for tree in random.choice(len(known), self.trials, replace=False))

    def landscape(self) -> Landscape:
        """Return a new landscape; it keeps the progress of its trials."""
        if self.trees:
            return self.tree_set().landscape()
        if self.curves is None:
            return Equal(self.step_s, self.checkpoint_mb)
        curves = _recording(self.curves)
        if self.profiles is not None:
            curves = with_step_times(curves, _profiles(self.profiles), self.parameters)
        return RecordedLandscape(curves, self._assumptions())

    def recorded_overhead(self) -> ReportOverhead:
        """Return the overhead of reports that was recorded with the curves."""
        return ReportOverhead.recorded(_recording(self.curves).details if self.curves else {})

    def measured_from(self) -> int:
        """Return the first step at which the curves have a metric."""
        settings = _recording(self.curves).settings.values() if self.curves else ()
        return min((int(setting.steps[0]) for setting in settings), default=0)

    def predict_speeds(
        self, cluster: Cluster, hypers: Sequence[Hyper], batch_sizes: Sequence[float] = ()
    ) -> Cluster:
        """Return the cluster with a speed for each kind of trial that profiles can predict.

        Kinds are those that trials start with, those that were recorded, and those of further batch sizes.
        """
        if self.trees:
            return self.tree_set().with_speeds(cluster, _profiles(self.profiles or located(GPUS)))
        if self.profiles is None or self.curves is None:
            return cluster
        curves, landscape = _recording(self.curves), self.landscape()
        device = next(iter(curves.settings.values())).device
        all_hypers = (*hypers, *curves.tried, *({BATCH: size} for size in batch_sizes))
        batches = {landscape.kind(hyper, ()): int(hyper.get(BATCH, 0)) for hyper in all_hypers}
        kinds = {name: TrialKind(curves.model, batch) for name, batch in batches.items() if batch}
        return PredictedStepTimes.of(_profiles(self.profiles), self.parameters, device).fill_in(
            cluster, kinds
        )

    def timing(self, devices: Collection[str]) -> str:
        """Return where step times on these devices are from; empty if nothing was recorded."""
        if self.trees:
            recorded = self.tree_set().trees[0].provenance.device
            others = {each for each in devices if each != "cpu" and each.lower() not in recorded.lower()}
            return timing_of(recorded, sorted(others))
        if self.curves is None:
            return ""
        recorded = next(iter(_recording(self.curves).settings.values())).device
        known = _profiles(self.profiles).devices if self.profiles else ()
        return timing_of(recorded, [device for device in known if device in devices])

    def choices(self) -> Choices:
        """Return the initial values of hyper-parameters: those in `start`, or else the recorded ones."""
        if self.trees:
            return {}
        if self.curves is None:
            return dict(self.start)
        curves = _recording(self.curves)
        for name in self.start:
            if name not in curves.hyper:
                raise ConfigError(f"start: {unknown('hyper-parameter', name, curves.hyper)}")
        recorded = {name: sorted({hyper[name] for hyper in curves.tried}, key=str) for name in curves.hyper}
        return {**recorded, **self.start}

    def _assumptions(self) -> CurveAssumptions:
        return CurveAssumptions(self.metric, self.checkpoint_mb, self.growth, self.gain)


def timing_of(recorded: str, devices: Collection[str]) -> str:
    """Return how step times on these devices follow from what was recorded on one."""
    scaled = [device for device in devices if device != recorded]
    if not scaled:
        return f"measured on {recorded}"
    return f"scaled from {'CPU' if CPU in recorded else recorded} to {', '.join(scaled)}"


_profiles, _recording = cache(read_profiles), cache(read_curves)


@cache
def _tree_set(paths: tuple[Path, ...], size_mb: float) -> TreeSet:
    return TreeSet(read_growth_trees(paths), size_mb)


CPU = "thread"
"""Part of the name of every CPU in recordings, as in `… Processor, 1 thread`."""
NINE = (1.3, 1.0, 0.33, 0.33, 0.33, 1.6, 1.0, 1.0, 8.0)
"""Speeds of the cluster of the original systems: eight nodes and a GPU."""


@dataclass(frozen=True, slots=True)
class NoiseConfig:
    """Random deviations of step times."""

    sigma: float = 0.0
    """Each interval takes exp(N(-sigma²/2, sigma)) times as long: 1 on average."""
    drift: float = 0.0
    """How far the logarithm of a slot's speed wanders in an interval; in k of them, √k times as far."""

    def __post_init__(self) -> None:
        self.seeded(0)

    def seeded(self, seed: int) -> TimingNoise:
        """Return the noise with the random numbers of a seed."""
        return TimingNoise(self.sigma, self.drift, seed)


@dataclass(frozen=True, slots=True)
class PopulationsConfig:
    """One experiment: these trials, on these slots, under these allocations."""

    population: PopulationConfig = field(default_factory=PopulationConfig)
    allocations: tuple[str, ...] = tuple(ALLOCATIONS)
    """Allocations to compare; also promote, joint, spa-era, spa-eta, gpa-era and gpa-eta."""
    evolution: str = "none"
    """How trials are reviewed after a report: none, pbt or asha."""
    growth: str = "never"
    """How networks grow when trials are assigned, on `population.trees`: never, at-start, fixed, stump,
    random or agent."""
    retirement: RetireSlowest | None = None
    """Retirement of slots towards the end, under all allocations; gpa-era and gpa-eta retire slots anyway."""
    seeds: int = 5
    """Number of simulations of each: with the seeds 0, 1, … of noise, drift, evolution and initial trials."""
    slots: tuple[float, ...] = ()
    """Speeds of slots, on a node each; if no cluster is named either, the nine of the original systems."""
    cluster: str = ""
    """Name of the cluster in `clusters` to train on, instead of `slots`."""
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
        check_names(self.allocations, self.evolution, self.growth)
        if self.growth != "never" and not self.population.trees:
            raise ConfigError(
                f"growth is {self.growth!r}, but networks grow on recorded growth trees only; give "
                "population.trees"
            )
        for name in self.allocations:
            if self.allocations.count(name) > 1:
                raise ConfigError(f"allocations names {name} twice")
        if not 1 <= self.seeds <= MOST:
            raise ConfigError(f"seeds is {self.seeds}; it must be 1 to {MOST:,}")
        if not self.population.measured:
            self._check_unmeasured()
        self._check_cluster()

    def _check_unmeasured(self) -> None:
        """Raise ConfigError if anything depends on metrics while no curves give them."""
        how = "nothing is measured without population.curves or trees; give those, or leave it out"
        if self.evolution != "none":
            raise ConfigError(f"evolution is {self.evolution!r}, but {how}")
        if math.isfinite(self.population.target):
            raise ConfigError(f"population.target is {self.population.target:g}, but {how}")

    def _check_cluster(self) -> None:
        if self.cluster and self.slots:
            raise ConfigError("slots and cluster are both given; leave one of them out")
        if self.cluster and self.cluster not in self.clusters:
            how = "" if self.clusters else f"none; define it: [clusters.{self.cluster}]"
            raise ConfigError(f"cluster: {unknown('cluster', self.cluster, self.clusters)}{how}")
        self.population_cluster()

    def population_cluster(self) -> Cluster:
        """Return the slots and nodes, without predicted speeds."""
        return self.clusters[self.cluster].build() if self.cluster else Cluster.of_speeds(self.slots or NINE)

    def scene(self, seed: int, batch_sizes: Sequence[float] = ()) -> PopulationScenario:
        """Return the scenario of a seed, for any allocation; evolution may lead to these batch sizes."""
        hypers = self.population.hypers(seed)
        return PopulationScenario(
            hypers=hypers,
            cluster=self._predicted(hypers, batch_sizes),
            terms=self.population.terms(),
            costs=self.costs,
            noise=self.noise.seeded(seed),
            report_each=self.population.report == "each",
            deadline_s=self.population.deadline_s,
            overhead=self.population.recorded_overhead() if self.overhead is None else self.overhead,
        )

    def _predicted(self, hypers: Sequence[Hyper], batch_sizes: Sequence[float]) -> Cluster:
        """Return the slots with speeds from profiles, predicted before slots are grouped."""
        if not self.cluster:
            return self.population.predict_speeds(self.population_cluster(), hypers, batch_sizes)
        slots = self.clusters[self.cluster]
        return slots.spanned(self.population.predict_speeds(slots.apart(), hypers, batch_sizes))

    def cluster_name(self) -> str:
        """Return the name of the cluster, or the speeds of its slots."""
        return self.cluster or f"slots {','.join(f'{speed:g}' for speed in self.slots or NINE)}"

    def timing(self) -> str:
        """Return where step times are from, `measured on v100` or `scaled from cpu to k80, v100`."""
        return self.population.timing({slot.device for slot in self.population_cluster().all_slots})

    def lower_bound_s(self, events: Sequence[Event], scene: PopulationScenario) -> float:
        """Return the lower bound on the makespan for the work that was done."""
        population, landscape = self.population, self.population.landscape()
        if not population.measured:
            work_s, kind = population.steps * population.step_s, landscape.kind({}, ())
            return lower_bound_s(population.trials, work_s, best_speeds(scene.cluster, kind))
        return bound_of_s(work_done(events, scene.hypers, landscape), scene.cluster)
