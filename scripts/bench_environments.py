"""Steps that environments which schedule jobs take in a second: one in Python, and a batch.

Seconds are CPU seconds of all threads together, so other work on the machine hardly counts.
"""

import os
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import rota
from rota.learning.scheduling.kernels import JOB_FEATURES
from rota.policies.cluster.srtf import Srtf
from rota.simulator.jobs import simulate

TURNS = 7
LANES = 64
CLUSTER = rota.Cluster.uniform(nodes=8, gpus=8)
WORLDS = [rota.synthetic_trace(jobs=400, gpus=64, load=1.0, seed=seed) for seed in range(16)]
REMAINING = JOB_FEATURES.index("remaining")


def engine_alone() -> int:
    """Simulate under srtf, compiled; return the number of instants."""
    return sum(simulate(jobs, CLUSTER, Srtf()).instants for jobs in WORLDS)


def one() -> Callable[[], int]:
    """Return a function that takes steps in one environment, and says how many."""
    env = rota.SchedulingEnv(WORLDS, CLUSTER)

    def run() -> int:
        steps = 0
        for world in range(4):
            observation, _ = env.reset(seed=0, options={"world": world})
            ended = False
            while not ended:
                observation, _, ended, _, _ = env.step(-observation["jobs"][:, REMAINING])
                steps += 1
        return steps

    return run


def batch(threads: int) -> Callable[[], int]:
    """Return the same of a batch, with scores that NumPy computes."""
    envs = rota.SchedulingVectorEnv(LANES, WORLDS, CLUSTER, threads=threads)

    def run() -> int:
        observations, _ = envs.reset(seed=0)
        for _ in range(800):
            observations, *_ = envs.step(-observations["jobs"][:, :, REMAINING])
        return 800 * LANES

    return run


def compiled(threads: int) -> Callable[[], int]:
    """Return the same of a batch with a compiled linear scorer, resets included."""
    envs = rota.SchedulingVectorEnv(LANES, WORLDS, CLUSTER, threads=threads)
    weights = np.zeros(envs.job_features)
    weights[REMAINING] = -1.0

    def run() -> int:
        envs.reset(seed=0)
        return int(envs.play(weights)["steps"].sum())

    return run


def per_second(run: Callable[[], int]) -> float:
    """Return the steps per CPU second."""
    began_s = time.process_time()
    return run() / (time.process_time() - began_s)


def main() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    sides = {"the engine alone, srtf compiled": engine_alone, "one environment in Python": one()}
    for threads in sorted({1, cores}):
        on = f"{threads} {'thread' if threads == 1 else 'threads'}"
        sides[f"a batch of {LANES}, NumPy scores, {on}"] = batch(threads)
        sides[f"a batch of {LANES}, compiled scorer, {on}"] = compiled(threads)
    for run in sides.values():
        run()  # compiles, and makes the engines
    turns = [{name: per_second(run) for name, run in sides.items()} for _ in range(TURNS)]
    print("400 jobs on 64 GPUs                       steps per CPU second")
    for name in sides:
        print(f"{name:42}{median(turn[name] for turn in turns):20,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
