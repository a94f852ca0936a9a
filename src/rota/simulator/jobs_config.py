"""The configuration of a simulation of jobs, and the workload and cluster built from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from rota.core.cluster import Cluster, Node, NodeChange, expand_kinds
from rota.core.costs import COSTS, CostModel
from rota.core.durations import EXACT_DURATIONS, Durations
from rota.core.errors import ConfigError
from rota.core.failures import Failures
from rota.core.placement import Style, Types
from rota.core.registry import is_outside
from rota.core.table import first_line
from rota.policies.cluster.registry import BY_DEFAULT, SCHEDULERS, canonical
from rota.workload.formats import check_format, read
from rota.workload.history import with_history
from rota.workload.jobs import Workload
from rota.workload.plain import read as read_plain
from rota.workload.profiles import MeasuredTimes, read_measured
from rota.workload.public import read_cluster, read_nodes
from rota.workload.sizes import check_elastic
from rota.workload.synthetic import SyntheticConfig, generate


@dataclass(frozen=True, slots=True)
class ElasticConfig:
    """Jobs whose gangs may be smaller and larger, under schedulers that resize gangs."""

    smallest: float = 0.5
    """Smallest gang, as a multiple of what the job asks for."""
    largest: float = 2.0
    """Largest gang, in the same way."""
    serial: float = 0.1
    """Share of an iteration that more GPUs do not make shorter."""

    def __post_init__(self) -> None:
        check_elastic(self.smallest, self.largest, self.serial)


@dataclass(frozen=True, slots=True)
class WorkloadConfig:
    """The jobs: a trace or a synthetic workload."""

    trace: Path | None = None
    """The trace to simulate; a relative path starts at the folder of the configuration file."""
    format: str | None = None
    """The trace's format: a name, or your function as module:function or path/to/file.py:function; detected
    if not given."""
    options: dict[str, object] = field(default_factory=dict)
    """Options of such a function: its arguments after the file."""
    synthetic: SyntheticConfig | None = None
    """A synthetic workload instead of a trace."""
    seed: int = 0
    """Seed for what a trace leaves out: priorities, and models if `draw_models` is set."""
    draw_models: bool = False
    """Draw a model of rota's for each job of unknown stages, with its iterations, stages and start-up."""
    startup_s: float | None = None
    """Seconds of each start-up, instead of those of the trace or the models."""
    jobs: int | None = None
    """Number of jobs to keep, from the first on."""
    all_at_once: bool = False
    """Submit every job at time 0, as the `_pr` traces of Muri do."""
    profiles: Path | None = None
    """A recording of profiles: jobs of a trace in rota's CSV format take as long as was measured there."""
    history: Path | None = None
    """Jobs that had ended before: a trace in rota's CSV format, from which gittins and predictions learn."""
    elastic: ElasticConfig | None = None
    """Sizes that gangs may have; those of the trace if the table is not there."""
    time_scale: float = 1.0
    """Factor on all times of the trace; below 1 a trace of days becomes one of minutes."""

    def __post_init__(self) -> None:
        if (self.trace is None) == (self.synthetic is None):
            raise ConfigError("give either a trace or a synthetic workload")
        check_format(self.format, self.options)
        in_columns = self.format in (None, "csv") or is_outside(str(self.format))
        if self.profiles is not None and (self.trace is None or not in_columns):
            raise ConfigError("profiles: only for a trace in CSV; leave them out, or give such a trace")
        if self.profiles is not None and self.draw_models:
            raise ConfigError("draw_models: profiles say how long jobs take; leave one of them out")
        if self.startup_s is not None and not 0.0 <= self.startup_s < np.inf:
            raise ConfigError(f"startup_s is {self.startup_s:g}; it must be 0 or more")
        if not 0.0 < self.time_scale < np.inf:
            raise ConfigError(f"time_scale is {self.time_scale:g}; it must be above 0")

    def load(self, expected_s: float = np.nan) -> Workload:
        """Return the jobs.

        Iterations of models that were never measured take `expected_s`, if that is given.
        """
        jobs = self._read(expected_s) if self.trace else generate(self.synthetic or SyntheticConfig())
        if self.jobs is not None:
            jobs = jobs.head(self.jobs)
        if self.history is not None:
            jobs = with_history(jobs, read_plain(self.history))
        if self.time_scale != 1.0:
            jobs = jobs.scaled(self.time_scale)
        if self.startup_s is not None:
            jobs = jobs.with_startup(self.startup_s)
        if self.elastic is not None:
            jobs = jobs.elastic(self.elastic.smallest, self.elastic.largest, self.elastic.serial)
        return replace(jobs, submit_s=np.zeros(len(jobs))) if self.all_at_once else jobs

    def _read(self, expected_s: float) -> Workload:
        assert self.trace is not None
        measured = None
        if self.profiles is not None or not np.isnan(expected_s):
            found = read_measured(self.profiles) if self.profiles else MeasuredTimes("expected")
            measured = replace(found, expected_s=expected_s)
        return read(
            self.trace, self.format, self.seed, self.draw_models, options=self.options, measured=measured
        )


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A group of equal nodes."""

    count: int
    gpus: int
    kind: str = "gpu"
    """Device kind, as in `speeds`."""
    switch: int = 0


@dataclass(frozen=True, slots=True)
class NodeChangeConfig:
    """A node that joins or leaves at a time."""

    at_s: float
    node: int
    what: Literal["join", "leave"]


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """The cluster: equal nodes, groups of them, or a file."""

    nodes: int = 8
    """Equal nodes per switch."""
    gpus_per_node: int = 8
    switches: int = 1
    groups: tuple[NodeGroup, ...] = ()
    """Groups of equal nodes; they replace the three settings above."""
    file: Path | None = None
    """A cluster CSV of the Muri simulator, or Alibaba's list of nodes; it replaces all of the above."""
    slots_per_gpu: int = 1
    """Slots per GPU; above 1, for jobs that ask for a fraction of a GPU."""
    cross_node: float = 1.0
    """Factor on the synchronise stage of a gang that spans nodes."""
    cross_switch: float = 1.0
    """Factor on the synchronise stage of a gang that spans switches."""
    speeds: dict[str, dict[str, float]] = field(default_factory=dict)
    """Device kind → model → speed relative to the reference device; `default` is for all other models."""
    changes: tuple[NodeChangeConfig, ...] = ()
    """Nodes that join and leave; one that joins first is absent before."""

    def __post_init__(self) -> None:
        for name in ("nodes", "gpus_per_node", "switches", "slots_per_gpu"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for group in self.groups:
            if group.count < 1 or group.gpus < 1:
                raise ConfigError(
                    f"groups: {group.count} nodes with {group.gpus} GPUs; both must be at least 1"
                )

    def build(self) -> Cluster:
        """Return the cluster. Raises ConfigError if settings do not fit together."""
        whole = self._whole()
        changes = tuple(NodeChange(c.at_s, c.node, c.what == "join") for c in self.changes)
        if self.slots_per_gpu == 1:
            return Cluster(whole, self.cross_node, self.cross_switch, self.speeds, changes=changes)
        if changes or self.switches > 1 or self.cross_switch != 1.0:
            raise ConfigError("slots_per_gpu cannot be combined with changes, switches or cross_switch")
        # Every GPU becomes a node and every machine a switch, so that no job gets fractions of two GPUs.
        nodes = tuple(
            Node(self.slots_per_gpu, machine, node.kind)
            for machine, node in enumerate(whole)
            for _ in range(node.slots)
        )
        return Cluster(nodes, 1.0, self.cross_node, self.speeds, slots_per_gpu=self.slots_per_gpu)

    def _whole(self) -> tuple[Node, ...]:
        if self.file is not None:
            read_file = read_nodes if "sn" in first_line(self.file).split(",") else read_cluster
            return read_file(self.file).nodes
        if self.groups:
            return expand_kinds((g.count, Node(g.gpus, g.switch, g.kind)) for g in self.groups)
        return Cluster.uniform(self.nodes, self.gpus_per_node, self.switches).nodes


@dataclass(frozen=True, slots=True)
class PlacementConfig:
    """Placement on slots; `placement = "spread"` sets the style only."""

    SHORT: ClassVar[str] = "style"

    style: Style | None = None
    """How gangs are placed on nodes, under all schedulers with that option; their own default if not set."""
    types: Types = "fastest"
    """Devices that jobs prefer: the fastest for their model; those on which it gains compared with other
    models, to which running jobs move (`advantage`); or those listed first (`blind`)."""

    def defaults_for(self, scheduler: Any) -> Mapping[str, Any]:
        """Return the settings of the experiment that a scheduler class takes as options."""
        takes = is_dataclass(scheduler) and any(option.name == "placement" for option in fields(scheduler))
        return {"placement": self.style} if takes and self.style else {}


@dataclass(frozen=True, slots=True)
class SimulateConfig:
    """One experiment: these jobs, on this cluster, under these schedulers."""

    workload: WorkloadConfig
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    schedulers: tuple[str, ...] = BY_DEFAULT
    """Schedulers to compare: names, or your classes as module:Class or path/to/file.py:Class."""
    cost: Literal["restart", "interval"] = "restart"
    """What starting a job costs; `interval` is the rule of the Muri simulator."""
    checkpoint_every_s: float = 0.0
    """Productive seconds between checkpoints; newer progress is lost on preemption or migration. 0 loses
    none."""
    placement: PlacementConfig = field(default_factory=PlacementConfig)
    durations: Durations = EXACT_DURATIONS
    """What schedulers know of how long jobs take: everything, unless this says otherwise."""
    failures: Failures | None = None
    """Jobs and nodes that fail; none if the table is not there."""

    def __post_init__(self) -> None:
        if not self.schedulers:
            raise ConfigError("schedulers is empty; name at least one")
        names = [canonical(name) for name in self.schedulers]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            rename = "" if twice in SCHEDULERS else "; give one of the classes another name, or a `name`"
            raise ConfigError(f"schedulers names {twice} twice{rename}")
        if not self.checkpoint_every_s >= 0.0:
            raise ConfigError(f"checkpoint_every_s is {self.checkpoint_every_s}; it must be 0 or more")
        if self.cost == "interval" and self.checkpoint_every_s > 0.0:
            raise ConfigError("checkpoint_every_s has no meaning with cost = 'interval'; leave it out")
        if self.failures is not None:
            self.failures.checkpoints(self.cost_model)
        self._check_fractions()

    def _check_fractions(self) -> None:
        """Raise ConfigError unless placement is consolidated, which keeps the fractions of a GPU together."""
        if self.cluster.slots_per_gpu == 1:
            return
        if "antman" in map(canonical, self.schedulers):
            raise ConfigError("slots_per_gpu: antman assigns whole GPUs; leave it out of schedulers")
        if self.placement.style not in (None, "consolidated"):
            raise ConfigError(
                f"slots_per_gpu: placement {self.placement.style!r} would mix fractions of different GPUs"
            )

    @property
    def cost_model(self) -> CostModel:
        """What a start costs, and what is lost without a checkpoint."""
        return replace(COSTS[self.cost], checkpoint_every_s=self.checkpoint_every_s)
