"""A cluster scheduler in 15 lines, tried on the shipped trace beside two that come with rota.

    python examples/policy.py

To have it in `rota simulate` and `rota run` too, give it a file in src/rota/policies/cluster and a line in
the registry there: docs/add-a-policy.md.
"""

from dataclasses import dataclass
from pathlib import Path

from rota.core.cluster import Cluster
from rota.core.loop import Needs
from rota.policies.cluster.fifo import Fifo
from rota.policies.cluster.placement import first_fit
from rota.policies.cluster.srtf import Srtf
from rota.replay.simulate import simulate
from rota.results.metrics import measure
from rota.workload.formats import read

TRACE = Path(__file__).parents[1] / "config" / "workload" / "shipped.csv"


@dataclass(frozen=True)
class Aging:
    """Short jobs first, but a second of waiting makes a job `patience` seconds shorter."""

    patience: float = 0.1
    needs = Needs()

    def plan(self, view):
        left_s = view.remaining * view.iteration_s
        waited_s = view.now_s - view.submit_s - view.executed_s
        return first_fit(view, view.rank(left_s - self.patience * waited_s))


def main():
    jobs, cluster = read(TRACE), Cluster.uniform(nodes=8, slots=8)
    print(f"{len(jobs):,} jobs on {cluster.slots} GPUs; hours\n")
    print(f"{'':18}{'mean JCT':>10}{'p99':>8}{'makespan':>10}{'preemptions':>13}")
    for policy in (Fifo(), Srtf(), Aging(), Aging(patience=2.0)):
        found = measure(simulate(jobs, cluster, policy).timeline, jobs, cluster).metrics
        times = f"{found.avg_jct_s / 3600:10.2f}{found.p99_jct_s / 3600:8.2f}{found.makespan_s / 3600:10.2f}"
        name = f"Aging({policy.patience:g})" if isinstance(policy, Aging) else type(policy).__name__
        print(f"{name:18}{times}{found.preemptions:13,}")


if __name__ == "__main__":
    main()
