"""Simulation of jobs: a workload, a cluster, a scheduler and a cost model in; a timeline out."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rota.core.arrays import Floats
from rota.core.cluster import Cluster, Speed
from rota.core.columns import GROUP, KIND
from rota.core.costs import RESTART, CostModel
from rota.core.driver import compiled_of, drive_compiled
from rota.core.durations import EXACT_DURATIONS, NO_HISTORY, Durations, Knows
from rota.core.engine import JobsEngine
from rota.core.errors import unknown
from rota.core.failures import Failures, FailureState
from rota.core.instant import Instant
from rota.core.loop import planned
from rota.core.placement import Types
from rota.core.policy import Needs, Policy
from rota.core.preferences import preferences
from rota.core.timeline import Timeline
from rota.workload.jobs import Workload, workload
from rota.workload.profiles import MODELS


def speed_of(cluster: Cluster, jobs: Workload) -> Speed:
    """Return the cluster's own speeds, or else those with which the workload was measured.

    A `default` of the cluster applies to all models that it does not name.
    """
    speeds = {kind: dict(jobs.speeds.get(kind, {})) for kind in cluster.kinds}
    for kind, own in cluster.speeds.items():
        speeds[kind] = {**({} if "default" in own else speeds[kind]), **own}
    known = Cluster(cluster.nodes, speeds=speeds)
    rows = [[known.speed(model, kind) for kind in cluster.kinds] for model in jobs.models]
    return Speed(np.array(rows), cluster.cross_node, cluster.cross_switch)


def history_of(jobs: Workload, table: Floats, cluster: Cluster) -> Floats:
    """Return the jobs that had ended before, as an engine reads them."""
    if jobs.history is None:
        return NO_HISTORY
    slots, per_gpu = np.ceil(jobs.gpus * cluster.slots_per_gpu - 1e-9), cluster.slots_per_gpu
    return jobs.history.numbered(jobs.groups, jobs.group, slots, table[GROUP], per_gpu)


NONE = Needs()


def engine_for(
    jobs: Workload,
    cluster: Cluster,
    needs: Needs = NONE,
    cost: CostModel = RESTART,
    types: Types = "fastest",
    *,
    keeps_timeline: bool = True,
    failures: Failures | None = None,
    durations: Durations = EXACT_DURATIONS,
) -> JobsEngine:
    """Return an engine at the beginning of a workload, for a policy with these needs."""
    sizes = jobs.gang_sizes(cluster) if needs.resizes else None
    table, speed = jobs.table(cluster, smallest=sizes is not None), speed_of(cluster, jobs)
    preferred = preferences(types, cluster, speed.by_model, cluster.table()[KIND])
    known = durations.put_into(table, jobs.ids, needs.durations, history_of(jobs, table, cluster))
    return JobsEngine(
        table, cluster, cost, needs, preferred, speed=speed, keeps_timeline=keeps_timeline,
        failures=FailureState(failures, jobs.recorded_failures, table, cluster) if failures else None,
        sizes=sizes, known=known,
    )  # fmt: skip


def odd_speeds(cluster: Cluster, jobs: Workload) -> list[str]:
    """Return a note for each model with a speed that neither the jobs nor rota's profiles have."""
    known = {"default", *jobs.models, *MODELS}
    return [
        f"cluster.speeds.{kind}: {unknown('model', model, ['default', *jobs.models])}; no job has it"
        for kind, speeds in cluster.speeds.items()
        for model in speeds
        if model not in known
    ]


def drive_python(engine: JobsEngine, policy: Policy, progress: Callable[[int], None] | None = None) -> None:
    """Run an engine to its end under a policy in Python."""
    for number, view in enumerate(engine, 1):
        engine.commit(planned(policy, view))
        if progress is not None and number % REPORT_EVERY == 0:
            progress(engine.done)


REPORT_EVERY = 512  # instants between two calls of `progress`


@dataclass(frozen=True, slots=True)
class Simulation:
    """The result of a simulation."""

    timeline: Timeline
    instants: int
    """Number of instants at which something happened."""
    wall_s: float
    """Seconds that the simulation took, without reading and compilation."""
    knows: Knows = "exact"
    """What the policy knew of durations."""


def simulate(
    jobs: Workload,
    cluster: Cluster,
    policy: Policy,
    cost: CostModel = RESTART,
    progress: Callable[[int], None] | None = None,
    types: Types = "fastest",
    *,
    compiled: bool = True,
    failures: Failures | None = None,
    durations: Durations = EXACT_DURATIONS,
) -> Simulation:
    """Simulate a workload until all jobs have ended; `progress` is called with the number that have.

    `types` says which devices jobs prefer: the fastest for their model, or those that the cluster lists
    first; `durations` what schedulers know. If the policy has a compiled form, that decides, unless
    `compiled` is false.
    """
    engine = engine_for(jobs, cluster, policy.needs, cost, types, failures=failures, durations=durations)
    began = time.perf_counter()
    form = compiled_of(policy) if compiled else None
    if form is not None:
        drive_compiled(engine, form, REPORT_EVERY, progress)
    else:
        drive_python(engine, policy, progress)
    wall_s = time.perf_counter() - began
    if progress is not None:
        progress(engine.done)
    return Simulation(engine.timeline(), engine.instants, wall_s, engine.known.knows)


def warm_up(policy: Policy, cost: CostModel = RESTART, *, real: bool = False) -> None:
    """Load or compile all kernels that a simulation with this policy calls, by simulating a few jobs.

    With `real`, those that a real run calls.
    """
    n = 24
    jobs = workload(
        "warm-up",
        ids=[str(i) for i in range(n)],
        submit_s=np.repeat([0.0, 1.0, 50.0], n // 3),
        gpus=[1, 2, 4, 1] * (n // 4),
        model=[MODELS[i % len(MODELS)] for i in range(n)],
        duration_s=np.linspace(1.0, 5000.0, n),
        priority=[i % 2 for i in range(n)],
    )
    uneven = Cluster(Cluster.uniform(2, 2).nodes, cross_node=1.5)
    if not real:
        simulate(jobs, uneven, policy, cost)
        return
    engine, nobody = engine_for(jobs, uneven, policy.needs, cost), np.zeros(0, np.int32)
    for instant in (
        Instant(0.0, nobody, arrivals=n),
        Instant(1.0, np.zeros(1, np.int32), ends=1, first_job=n, lost=[1]),
        Instant(2.0, nobody, first_job=n, joined=[1]),
    ):
        engine.apply(instant)
        engine.commit(planned(policy, engine.view))
