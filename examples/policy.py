"""A cluster scheduler of one's own, compared with two that come with rota on the shipped trace.

    python examples/policy.py

`rota simulate --schedulers srtf,examples/policy.py:Aging` compares it, too: docs/add-a-policy.md.
"""

from dataclasses import dataclass
from pathlib import Path

import rota

TRACE = Path(__file__).parents[1] / "config" / "workload" / "shipped.csv"


@dataclass(frozen=True)
class Aging(rota.Scheduler):
    """Short jobs first, but a second of waiting makes a job `patience` seconds shorter."""

    patience: float = 0.1

    def plan(self, view):
        return view.first_fit(view.rank(view.remaining_s - self.patience * view.waited_s))


def main():
    jobs, cluster = rota.read_trace(TRACE), rota.Cluster.uniform(nodes=8, gpus=8)
    print(rota.compare(jobs, cluster, ["fifo", "srtf", Aging(), Aging(patience=2.0)]))


if __name__ == "__main__":
    main()
