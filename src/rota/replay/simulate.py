"""One simulation: a workload, machines, a policy and a cost model in; a timeline out."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rota.core import columns as c
from rota.core.cluster import Cluster
from rota.core.costs import EXACT, RESTART, Cost
from rota.core.loop import Policy, drive
from rota.core.placement import Types
from rota.core.state import State
from rota.core.timeline import Timeline
from rota.replay.backend import Replay
from rota.replay.speed import Speed
from rota.workload.jobs import Workload, workload
from rota.workload.profiles import MODELS

REPORT_EVERY = 512  # instants between two calls of `progress`


@dataclass(frozen=True, slots=True)
class Simulation:
    """What came of it."""

    timeline: Timeline
    instants: int
    """At how many moments something happened."""
    wall_s: float
    """How long the simulation itself took: no reading, no compilation."""


def simulate(
    jobs: Workload,
    cluster: Cluster,
    policy: Policy,
    cost: Cost = RESTART,
    progress: Callable[[int], None] | None = None,
    types: Types = "fastest",
) -> Simulation:
    """Replay a workload until every job has finished; `progress` is told how many have.

    `types` says which devices jobs prefer: the fastest for their model, or those that are listed first.
    """
    table, needs, speed = jobs.table(cluster), policy.needs, Speed.of(cluster, jobs)
    preferences = speed.preferences(cluster) if types == "fastest" else None
    state = State(table, cluster, cost, needs.sharing, needs.own, needs.own_slots, preferences)
    ties = needs.ties if cost.each_instant else EXACT
    backend = Replay(table[c.SUBMIT_S], cluster, ties, speed)
    instants = done = 0
    began = time.perf_counter()
    for instant in drive(policy, backend, state):
        instants += 1
        done += instant.ends
        if progress is not None and instants % REPORT_EVERY == 0:
            progress(done)
    wall_s = time.perf_counter() - began
    if progress is not None:
        progress(done)
    return Simulation(state.timeline(), instants, wall_s)


def warm_up(policy: Policy, cost: Cost = RESTART) -> None:
    """Load or compile all that a simulation with this policy will call, on a few jobs of no interest."""
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
    simulate(jobs, uneven, policy, cost)
