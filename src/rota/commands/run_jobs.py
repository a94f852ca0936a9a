"""Jobs of a trace in a real run: how it begins, resumes, and what it leaves."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rota.config.bind import bind, facts, own_growth
from rota.config.load import placed
from rota.core.cluster import Cluster, Node, Preferences
from rota.core.durations import EXACT_DURATIONS
from rota.core.errors import ConfigError
from rota.core.limits import above
from rota.core.network import BUDGET_S
from rota.core.placement import Types
from rota.core.policy import Policy
from rota.core.preferences import preferences
from rota.core.registry import is_outside
from rota.execution.engine import WorkerSetup
from rota.execution.jobs.control import JobsOutcome, JobsWatch, control_jobs
from rota.execution.jobs.spec import JobsSpec, OpportunisticJob
from rota.library.inputs import NAMES, check_code, code_of, schedulers
from rota.library.real_run import RunInFolder, check_address, config_text, in_a_file
from rota.library.real_run_config import NETWORKS, JobsConfig
from rota.policies.cluster.registry import canonical
from rota.results.metrics import Metrics, MetricsRow, measure
from rota.results.run import write_run
from rota.simulator.jobs import history_of, warm_up
from rota.workload.jobs import Workload

AGENT = "kinds.*.adaptive.agent"
"""Key of the agent that decides how a network changes: a folder, or a class."""
PATHS = ("workload.trace", "workload.profiles", "workload.history", "ray.scores", AGENT)
"""Keys of a configuration that are paths."""
RAW = ("options", "kinds")
"""Tables that are not bound here: those of schedulers, and those of what is trained."""


@dataclass(frozen=True, slots=True)
class _Budget:
    """The budget of an opportunistic job: all that a controller knows of how it changes."""

    budget_s: float = BUDGET_S

    def __post_init__(self) -> None:
        above(0, budget_s=self.budget_s)


@dataclass(frozen=True, slots=True)
class JobsRunSpec:
    """A run of jobs as it was asked for: checked, and complete."""

    config: JobsConfig
    policy: Policy
    options: Mapping[str, Any]
    kinds: Mapping[str, Any]
    jobs: Workload
    all_slots: Cluster
    cluster: Cluster
    digest: str = ""
    """Digest of the configuration that a run in a folder began with."""

    @property
    def scheduler(self) -> str:
        """The proper name of the scheduler."""
        return canonical(self.config.scheduler)

    def jobs_spec(self) -> JobsSpec:
        """Return what is trained, and where."""
        jobs, config = self.jobs, self.config
        table = jobs.table(self.cluster)
        history = history_of(jobs, table, self.cluster)
        known = config.durations.put_into(table, jobs.ids, self.policy.needs.durations, history)
        return JobsSpec(
            ids=jobs.ids,
            kinds=[jobs.models[number] for number in jobs.model.tolist()],
            iterations=[int(count) for count in jobs.iterations.tolist()],
            submit_s=jobs.submit_s.tolist(),
            table=table,
            known=known,
            cluster=self.cluster,
            places=_places(self.all_slots, self.home, config.placement.types),
            nodes=[slot.node for slot in self.all_slots.all_slots],
            slice_s=config.assignment_s,
            attempts=config.attempts,
            seed=config.seed,
            opportunistic=self._opportunistic(),
            config=self.digest,
            preferences=self._preferences(),
        )

    def _preferences(self) -> Preferences | None:
        """Return which nodes jobs prefer: one is as fast as its slowest slot, by configuration or score."""
        slots, models = self.all_slots.all_slots[self.home :], self.jobs.models
        nodes = [[slot for slot in slots if slot.node == node] for node in range(len(self.all_slots.nodes))]
        speeds = [[min(slot.speed_of(model) for slot in node) for node in nodes] for model in models]
        every = np.arange(len(nodes), dtype=np.int32)
        return preferences(self.config.placement.types, self.cluster, np.array(speeds), every)

    @property
    def home(self) -> int:
        """Number of slots that are the opportunistic job's own: the first ones."""
        return self.config.opportunistic.slots if self.config.opportunistic else 0

    def _opportunistic(self) -> OpportunisticJob | None:
        found = self.config.opportunistic
        if found is None:
            return None
        adaptive, where = self.kinds[found.kind].get("adaptive", {}), f"kinds.{found.kind}.adaptive"
        budget_s = facts(_Budget, adaptive, where, "say for how long", others=True).budget_s
        return OpportunisticJob(found.kind, tuple(range(found.slots)), budget_s, found.most)

    def text(self) -> str:
        """Return the configuration in full, from which it can be resumed."""
        return config_text(self.config, options=dict(self.options), kinds=dict(self.kinds))


def ordered_jobs(given: Mapping[str, Any], where: Path, assignments: Sequence[str] = ()) -> JobsRunSpec:
    """Return what a table says; raises ConfigError if it is wrong. Assignments were put over a file."""
    folder = where.parent.absolute()
    table: dict[str, Any] = placed(given, PATHS, folder, assignments, Path.cwd(), (*NAMES, "job", AGENT))
    rest = {name: value for name, value in table.items() if name not in RAW}
    config = bind(JobsConfig, rest, where)
    check_address(config.backend, assignments)
    check_code(config.code)
    config = replace(config, ray=config.ray.scored())
    kinds, options = table.get("kinds", {}), table.get("options", {})
    if not isinstance(kinds, Mapping) or not all(isinstance(kind, Mapping) for kind in kinds.values()):
        raise ConfigError(f"{where}: kinds is not a table of tables; write [kinds.NAME]")
    (policy,) = schedulers((config.scheduler,), config.placement.defaults_for, options, str(where)).values()
    if not config.code:
        deciding = policy, *getattr(policy, "previewed", ())
        config = replace(config, code=code_of([*deciding, *in_a_file(config.job), *_growth(kinds)]))
    jobs, all_slots = config.workload.load(config.iteration_s), config.engine.cluster()
    opportunistic = [config.opportunistic.kind] if config.opportunistic else []
    missing = [model for model in (*jobs.models, *opportunistic) if model not in kinds]
    if missing:
        raise ConfigError(f"{where}: there are jobs of {missing[0]!r}; add [kinds.{missing[0]}]")
    whole = replace(jobs, iterations=np.maximum(np.rint(jobs.iterations), 1.0))
    home = config.opportunistic.slots if config.opportunistic else 0
    order = JobsRunSpec(config, policy, options, kinds, whole, all_slots, _cluster(all_slots, home, where))
    _check_opportunistic(order)
    together = config.opportunistic is not None or max(whole.gpus) > 1
    if config.backend == "ray" and not config.ray.shared and together:
        raise ConfigError(f"{where}: ray.shared is false, but gangs meet in the folder of the run; share it")
    return order


def _growth(kinds: Mapping[str, Any]) -> list[Any]:
    """Return the growth policies from outside that kinds name."""
    adaptive = {name: kind["adaptive"] for name, kind in kinds.items() if "adaptive" in kind}
    return [
        own_growth(table["agent"], table.get("options"), f"kinds.{name}.adaptive.").policy
        for name, table in adaptive.items()
        if isinstance(table, Mapping) and is_outside(str(table.get("agent", "")))
    ]


def _check_opportunistic(order: JobsRunSpec) -> None:
    """Raise an error if its batch cannot be shared by as many slots as it may be given."""
    job = order.jobs_spec().opportunistic  # which also checks that all jobs fit
    if job is None or order.config.job not in NETWORKS:
        return
    try:
        from rota.training.job import bound
    except ModuleNotFoundError:  # where it is only controlled, and trained elsewhere
        return
    kind = bound({job.kind: order.kinds[job.kind]})[job.kind]
    for size in job.sizes(len(order.all_slots.all_slots)):
        kind.member(job.kind, size)


def _places(all_slots: Cluster, home: int, types: Types) -> list[int]:
    """Return slots of the workers, node by node, without the first, which are the opportunistic job's.

    Slots of a node are assigned in this order, so the fastest come first if they are preferred.
    """
    slots, sign = all_slots.all_slots, 0.0 if types == "blind" else 1.0
    return sorted(range(home, len(slots)), key=lambda slot: (slots[slot].node, -sign * slots[slot].speed))


def _cluster(all_slots: Cluster, home: int, where: Path) -> Cluster:
    """Return nodes with as many slots as they have; all of one kind: step times are measured in the run."""
    counts = [
        sum(slot.node == node for slot in all_slots.all_slots[home:]) for node in range(len(all_slots.nodes))
    ]
    if 0 in counts:
        name = all_slots.names[counts.index(0)]
        raise ConfigError(f"{where}: opportunistic: {name} has no slot left for jobs; give it more slots")
    return Cluster(tuple(Node(count, all_slots.switches[node], "cpu") for node, count in enumerate(counts)))


ONLY = 0
"""There is one repetition: a trace is run as it is."""


@dataclass(frozen=True, slots=True)
class JobsRun(RunInFolder):
    """A run of jobs in its folder."""

    order: JobsRunSpec
    UNSAID: ClassVar[Mapping[str, Any]] = {"placement": {"types": "blind"}}
    read = staticmethod(ordered_jobs)

    def carry_out(self, asked_to_stop: Callable[[], bool], watch: JobsWatch) -> JobsOutcome:
        """Run the jobs, and write the result if all of them are over."""
        order, paths = self.order, self.folder.paths(ONLY)
        warm_up(order.policy, real=True)  # compiling is not the run's business
        assignment = WorkerSetup(order.config.job, order.kinds, order.config.seed, paths)
        outcome = control_jobs(
            order.jobs_spec(),
            order.scheduler,
            order.policy,
            lambda: order.config.engine.workers(order.all_slots, assignment),
            paths,
            asked_to_stop=asked_to_stop,
            watch=watch,
            anew=self.anew,
        )
        if outcome.complete:
            self._write(outcome)
        return outcome

    def metrics(self, outcome: JobsOutcome) -> Metrics:
        """Return the metrics, computed as those of a simulation."""
        return measure(outcome.timeline, self.order.jobs, self.order.cluster).metrics

    def line(self, outcome: JobsOutcome) -> MetricsRow:
        """Return its row of the table."""
        return MetricsRow(self.order.scheduler, self.metrics(outcome), outcome.wall_s, self._knows)

    @property
    def _knows(self) -> str:
        """What the scheduler knows of durations, if not all that need them know them."""
        order = self.order
        knows = order.config.durations.shown_to(order.policy.needs.durations)
        return knows if order.config.durations != EXACT_DURATIONS else ""

    def record(self, outcome: JobsOutcome) -> dict[str, Any]:
        """Return the result as plain values."""
        found = {"complete": outcome.complete, **outcome.status.record()}
        return found | {"metrics": asdict(self.metrics(outcome))} if outcome.complete else found

    def _write(self, outcome: JobsOutcome) -> None:
        """Write what a simulation writes, so that the same figures and reports can be made of it."""
        text = self.config_text
        write_run(
            self.folder.path,
            scheduler=self.order.scheduler,
            workload=self.order.jobs,
            cluster=self.order.cluster,
            timeline=outcome.timeline,
            config_text=text,
            inputs=hashlib.sha256(text.encode()).hexdigest(),
            wall_s=outcome.wall_s,
            command=self.command,
            knows=self._knows,
            parameters=self.parameters,
        )
        self.write_result(self.record(outcome))
