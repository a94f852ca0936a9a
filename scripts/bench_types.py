"""Compares placements on 32 V100, 16 P100 and 16 K80, with the speeds that a Gavel trace comes with.

    python scripts/bench_types.py TRACE              # a trace of Gavel's simulator, beside its throughputs
    python scripts/bench_types.py TRACE --seeds 2    # a smaller one

Mean job completion time as a multiple of blind srtf, V100s listed first. Synthetic jobs have models of the
trace.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import rota
from rota.core.cluster import Cluster, Node
from rota.core.intervals import mean_interval
from rota.workload.jobs import Workload

NODES = [Node(4, kind=kind) for kind, count in (("v100", 8), ("p100", 4), ("k80", 4)) for _ in range(count)]
TYPES = ("blind", "fastest", "advantage")
SCHEDULERS = ("srtf", "tiresias")


def synthetic(like: Workload, load: float, seed: int) -> Workload:
    """Return made-up jobs that have models, with their speeds, of a trace."""
    made = rota.synthetic_trace(jobs=1000, gpus=64, load=load, seed=seed)
    drawn = np.random.default_rng(seed).integers(len(like.models), size=len(made))
    return replace(made, model=drawn, models=like.models, speeds=like.speeds)


def quarters(trace: Workload) -> list[Workload]:
    """Return four windows of a trace, one after the other."""
    size = len(trace) // 4
    return [trace.window(number * size, size) for number in range(4)]


def alone_s(jobs: Workload) -> float:
    """Return the mean time of each job alone on the type on which it is fastest."""
    speeds = [max(jobs.speeds[node.kind].get(model, 1.0) for node in NODES) for model in jobs.models]
    return float((jobs.solo_s / np.array(speeds)[jobs.model]).mean())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--seeds", type=int, default=8)
    args = parser.parse_args()
    trace = rota.read_trace(args.trace, "gavel")
    cases = {f"synthetic, load {load}": [synthetic(trace, load, seed) for seed in range(args.seeds)]
             for load in (0.3, 0.5, 0.7)}  # fmt: skip
    cases |= {
        "Gavel, quarters": quarters(trace),
        "Gavel, quarters, arrivals ×0.6": [q.scale_load(1 / 0.6) for q in quarters(trace)],
    }
    for name, worlds in cases.items():
        ratios: dict[str, list[float]] = {}
        for jobs in worlds:
            found = {
                (scheduler, types): rota.simulate(jobs, Cluster(tuple(NODES)), scheduler, types=types)  # type: ignore[arg-type]
                for scheduler in SCHEDULERS
                for types in TYPES
            }
            base = found["srtf", "blind"].metrics.avg_jct_s
            for (scheduler, types), run in found.items():
                ratios.setdefault(f"{scheduler} {types}", []).append(run.metrics.avg_jct_s / base)
            ratios.setdefault("alone on the fastest type", []).append(alone_s(jobs) / base)
        for policy, values in ratios.items():
            mean, low, high = np.exp(mean_interval(np.log(values)))
            print(f"{name:32}{policy:28}{mean:7.3f} [{low:.3f}, {high:.3f}]", flush=True)


if __name__ == "__main__":
    main()
