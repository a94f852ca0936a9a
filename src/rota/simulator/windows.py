"""Windows of consecutive jobs of a trace, on clusters whose size is chosen by contention.

Sized by offered load, a few giant jobs would leave the rest without a queue, and every scheduler would do the
same. So the number of nodes is that at which fifo with backfill has a mean completion time of so many times
the mean time of the jobs alone.
"""

import math
from collections.abc import Iterator

import numpy as np

from rota.core.cluster import Cluster
from rota.core.errors import InputError
from rota.core.timeline import EventKind
from rota.policies.cluster.fifo import Fifo
from rota.simulator.jobs import simulate
from rota.workload.jobs import Workload

MOST_NODES = 2048
TOLERANCE = 0.25
"""Largest difference of the logarithm of a contention from that asked for."""


def contention(jobs: Workload, cluster: Cluster) -> float:
    """Return the mean completion time under fifo with backfill ÷ the mean time of the jobs alone."""
    events = simulate(jobs, cluster, Fifo(backfill=True)).timeline.events
    ended = events[events["kind"] == EventKind.FINISHED]
    jct_s = ended["at_s"] - jobs.submit_s[ended["job"]]
    return float(jct_s.mean() / jobs.solo_s.mean())


def sized(jobs: Workload, wanted: float, gpus_per_node: int = 8) -> Cluster | None:
    """Return the uniform cluster on which the jobs have a contention; None if none comes near."""
    tried: dict[int, float] = {}

    def at(nodes: int) -> float:
        if nodes not in tried:
            tried[nodes] = contention(jobs, Cluster.uniform(nodes, gpus_per_node))
        return tried[nodes]

    fewest = most = max(1, math.ceil(float(jobs.gpus.max()) / gpus_per_node))
    while at(most) > wanted and most < MOST_NODES:
        fewest, most = most, max(most + 1, int(1.6 * most))
    while most - fewest > 1:
        middle = (fewest + most) // 2
        fewest, most = (middle, most) if at(middle) > wanted else (fewest, middle)
    best = min(tried, key=lambda nodes: abs(math.log(tried[nodes] / wanted)))
    if abs(math.log(tried[best] / wanted)) > TOLERANCE:
        return None
    return Cluster.uniform(best, gpus_per_node)


def windows(
    jobs: Workload, length: int, count: int, contentions: tuple[float, ...], seed: int, largest_gang: int = 32
) -> Iterator[tuple[Workload, Cluster]]:
    """Yield windows of a trace, each drawn at random, at these contentions in turn.

    Jobs with larger gangs are left out. There are fewer windows than asked for where a contention cannot be
    had. Raises InputError if the trace is too short, or if there are none.
    """
    kept = jobs.take(np.flatnonzero(jobs.gpus <= largest_gang))
    if len(kept) < length:
        few = f"{len(kept)} jobs of at most {largest_gang} GPUs"
        raise InputError(f"{jobs.name}: {few}; windows of {length} jobs need a longer trace, or fewer jobs")
    found = 0
    random = np.random.default_rng(seed)
    for number in range(count):
        window = kept.window(int(random.integers(len(kept) - length + 1)), length)
        cluster = sized(window, contentions[number % len(contentions)])
        if cluster is not None:
            found += 1
            yield window, cluster
    if not found:
        raise InputError(f"{jobs.name}: no window has such a contention; ask for another one")
