"""Measures what an event costs the engine: with a policy in Python, and with its compiled form.

    bash scripts/bench.sh --engine [--quick] [--large [CASE,…]] [--schedulers A,B]

Times are CPU time: medians of runs of both sides in turn. With --large it measures large traces instead, each
in a process of its own: 1,000,000 jobs without and with a backlog, 10,000,000 jobs, and 100,000 at once.
"""

import argparse
import multiprocessing
import resource
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np

from rota.core.cluster import Cluster
from rota.core.driver import compiled_of
from rota.core.timeline import EventKind
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.simulator.jobs import Simulation, simulate, warm_up
from rota.workload.jobs import Workload
from rota.workload.synthetic import SyntheticConfig, generate

GPUS = 512
CLUSTER = Cluster.uniform(GPUS // 8, 8)
LOAD, BACKLOG_LOAD = 0.85, 2.0
REPEATS = 5
RANKINGS = "fifo,srtf,tiresias"
CASES = {
    # jobs, offered load (0: all at once), schedulers
    "load": (1_000_000, LOAD, RANKINGS),
    "backlog": (1_000_000, BACKLOG_LOAD, RANKINGS),
    "at-once": (100_000, 0.0, ",".join(SCHEDULERS)),
    "ten-million": (10_000_000, LOAD, "srtf"),
}


def made(jobs: int, load: float) -> Workload:
    work = generate(SyntheticConfig(jobs=jobs, gpus=GPUS, load=load or LOAD, arrivals="poisson"))
    return work if load else replace(work, submit_s=np.zeros(jobs))


def timed(work: Workload, name: str, compiled: bool) -> tuple[float, Simulation]:
    """Seconds of CPU time of a simulation, and the simulation."""
    began = time.process_time()
    done = simulate(work, CLUSTER, scheduler_class(name)(), compiled=compiled)
    return time.process_time() - began, done


def active_jobs(done: Simulation) -> int:
    """Return the largest number of jobs that were active at one time."""
    kinds = done.timeline.events["kind"]
    change = (kinds == EventKind.ARRIVED).view(np.int8) - (kinds == EventKind.FINISHED).view(np.int8)
    return int(np.cumsum(change, dtype=np.int32).max())


def print_events(names: list[str], jobs: int, repeats: int) -> None:
    work = made(jobs, LOAD)
    print(f"{jobs:,} jobs, {GPUS} GPUs, offered load {LOAD}: µs of CPU time per event, medians of {repeats}")
    print(f"{'scheduler':20}{'events':>10}{'most active':>13}{'Python':>9}{'compiled':>10}{'ratio':>7}")
    for name in names:
        policy = scheduler_class(name)()
        warm_up(policy)
        sides: tuple[list[float], list[float]] = ([], [])
        has_form = compiled_of(policy) is not None
        for _ in range(repeats):
            for compiled in (False, True)[: 1 + has_form]:
                seconds, done = timed(work, name, compiled)
                sides[compiled].append(seconds / done.instants * 1e6)
        python_us = statistics.median(sides[False])
        fast = ""
        if has_form:
            compiled_us = statistics.median(sides[True])
            fast = f"{compiled_us:>10.2f}{python_us / compiled_us:>6.1f}×"
        print(f"{name:20}{done.instants:>10,}{active_jobs(done):>13,}{python_us:>9.2f}{fast}", flush=True)


def measure(name: str, jobs: int, load: float) -> tuple[float, int, int, float]:
    """Seconds of CPU time, events, most active jobs and the peak of memory in MB of a large trace."""
    warm_up(scheduler_class(name)())
    seconds, done = timed(made(jobs, load), name, True)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seconds, done.instants, active_jobs(done), megabytes


def print_large(cases: list[str], names: list[str]) -> None:
    print(f"{'case':14}{'scheduler':20}{'jobs':>11}{'CPU s':>9}{'µs/event':>10}{'most active':>13}{'MB':>8}")
    context = multiprocessing.get_context("spawn")
    for case in cases:
        jobs, load, schedulers = CASES[case]
        for name in schedulers.split(","):
            if names and name not in names:
                continue
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                seconds, events, active, megabytes = pool.submit(measure, name, jobs, load).result()
            each = f"{seconds:>9.1f}{seconds / events * 1e6:>10.2f}{active:>13,}{megabytes:>8,.0f}"
            print(f"{case:14}{name:20}{jobs:>11,}{each}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedulers", default="", metavar="A,B")
    parser.add_argument("--quick", action="store_true", help="500 jobs, once")
    every = ",".join(CASES)
    parser.add_argument("--large", nargs="?", const=every, metavar="CASE,…", help=f"of {every}")
    args = parser.parse_args()
    names = args.schedulers.split(",") if args.schedulers else []
    if args.large:
        print_large(args.large.split(","), names)
    else:
        print_events(names or list(SCHEDULERS), 500 if args.quick else 20_000, 1 if args.quick else REPEATS)


if __name__ == "__main__":
    main()
