"""Measures how fast the simulator is on this machine: events and jobs per second, growth, memory.

    bash scripts/bench.sh [--quick] [--schedulers A,B] [--jobs N,…] [--reference DIR]

Every measurement runs in a process of its own, so that its memory is its own. With --reference (the folder
of `reference.json` and its traces) it also gives the ratio to the Muri simulator's CPU seconds, scaled to
this machine by the loop that is recorded there; about 1.3 s of each of those is that simulator's start-up.
"""

import argparse
import json
import multiprocessing
import resource
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import rota
from rota.core.cluster import Cluster
from rota.core.costs import INTERVAL, RESTART, CostModel
from rota.core.policy import Policy
from rota.core.timeline import EventKind
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.simulator.jobs import Simulation, simulate, warm_up
from rota.workload.formats import read
from rota.workload.jobs import Workload
from rota.workload.synthetic import SyntheticConfig, generate

GPUS = 512
LOAD, BACKLOG_LOAD = 0.85, 2.0
TOO_LONG_S = 300.0
REPEATS = 3


class Measurement(NamedTuple):
    jobs: int
    instants: int
    cpu_s: float
    peak_active: int
    megabytes: float


def measure(name: str, jobs: int, load: float) -> Measurement:
    """One scheduler on a made-up workload, under the default cost model, with the timeline kept."""
    work = generate(SyntheticConfig(jobs=jobs, gpus=GPUS, load=load, arrivals="poisson"))
    policy = scheduler_class(name)()
    warm_up(policy)
    return _measurement(work, *timed(work, Cluster.uniform(GPUS // 8, 8), policy))


def measure_philly(name: str, path: Path) -> Measurement:
    """All of Philly on 448 GPUs."""
    policy = scheduler_class(name)()
    warm_up(policy)
    work = read(path, "philly", draw_models=True)
    return _measurement(work, *timed(work, Cluster.uniform(56, 8), policy))


def timed(
    work: Workload, cluster: Cluster, policy: Policy, cost: CostModel = RESTART
) -> tuple[float, Simulation]:
    """Seconds of CPU time of a simulation, and the simulation: others may use the machine, too."""
    began = time.process_time()
    done = simulate(work, cluster, policy, cost)
    return time.process_time() - began, done


def _measurement(work: Workload, cpu_s: float, done: Simulation) -> Measurement:
    kinds = done.timeline.events["kind"]
    active = np.cumsum((kinds == EventKind.ARRIVED).astype(int) - (kinds == EventKind.FINISHED))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measurement(len(work), done.instants, cpu_s, int(active.max()), megabytes)


def alone(function, *arguments):
    """Call a function in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def print_growth(names: list[str], sizes: list[int]) -> None:
    print(f"{GPUS} GPUs, offered load {LOAD}, restart cost, timeline kept; one core")
    titles = f"{'CPU s':>9}{'events/s':>11}{'jobs/s':>9}{'µs/event':>10}{'growth':>8}{'MB':>6}"
    print(f"{'scheduler':20}{'jobs':>9}{titles}")
    for name in names:
        before = None
        for jobs in sizes:
            if before and before.cpu_s * (jobs / before.jobs) ** 1.2 > TOO_LONG_S:
                print(f"{name:20}{jobs:>9,}   left out: it would take more than {TOO_LONG_S:.0f} s")
                break
            found = alone(measure, name, jobs, LOAD)
            growth = f"{found.cpu_s / before.cpu_s:.1f}×" if before else ""
            print(_line(name, found, growth), flush=True)
            before = found


def _line(name: str, found: Measurement, growth: str = "") -> str:
    per_event_us = found.cpu_s / found.instants * 1e6
    return (
        f"{name:20}{found.jobs:>9,}{found.cpu_s:>9.2f}{found.instants / found.cpu_s:>11,.0f}"
        f"{found.jobs / found.cpu_s:>9,.0f}{per_event_us:>10.1f}{growth:>8}{found.megabytes:>6.0f}"
    )


def print_backlog(jobs: int) -> None:
    found = alone(measure, "srtf", jobs, BACKLOG_LOAD)
    print(f"\nWith a backlog (offered load {BACKLOG_LOAD}, up to {found.peak_active:,} active jobs)")
    print(_line("srtf", found))


def measure_library(jobs: int) -> tuple[float, float]:
    """What `rota.simulate` takes by what its loop takes, and the seconds for all frames of the run."""
    work = rota.synthetic_trace(jobs=jobs, gpus=GPUS, load=LOAD, arrivals="poisson")
    cluster = rota.Cluster.uniform(GPUS // 8, 8)
    small = rota.simulate(work.head(10), cluster, "srtf")  # compiled, and pandas imported
    assert len(small.jobs) == 10
    began = time.perf_counter()
    run = rota.simulate(work, cluster, "srtf")
    whole_s = time.perf_counter() - began
    began = time.perf_counter()
    rows = len(run.jobs) + len(run.timeline) + len(run.series("utilisation"))
    frames_s = time.perf_counter() - began
    assert rows > jobs
    return whole_s / run.wall_s, frames_s


def print_library(jobs: int) -> None:
    ratio, frames_s = alone(measure_library, jobs)
    print(f"\nrota.simulate, {jobs:,} jobs under srtf: {ratio:.3f} × its loop; its frames: {frames_s:.2f} s")


def print_reference(folder: Path) -> None:
    """Ratios to the recorded CPU seconds of the Muri simulator, by the median of a few runs of ours."""
    recorded = json.loads((folder / "reference.json").read_text())
    scale = calibrate(recorded["calibration"]["code"]) / recorded["calibration"]["cpu_s"]
    print(f"\nAgainst the Muri simulator, interval cost (its seconds × {scale:.2f} for this machine)")
    print(f"{'trace':20}{'scheduler':20}{'theirs s':>10}{'ours s':>9}{'ratio':>8}{'µs/event':>10}")
    for run in recorded["runs"]:
        work = _trace(folder, run["trace"])
        policy = scheduler_class(run["scheduler"])()
        warm_up(policy, INTERVAL)
        runs = [timed(work, Cluster.uniform(8, 8), policy, INTERVAL) for _ in range(REPEATS)]
        cpu_s = statistics.median(seconds for seconds, _ in runs)
        theirs_s = run["reference_cpu_s"] and run["reference_cpu_s"] * scale
        ratio = f"{theirs_s / cpu_s:.0f}×" if theirs_s else "-"
        theirs = f"{theirs_s:.1f}" if theirs_s else "over 600"
        per_event_us = cpu_s / runs[0][1].instants * 1e6
        print(
            f"{run['trace']:20}{run['scheduler']:20}{theirs:>10}{cpu_s:>9.3f}{ratio:>8}{per_event_us:>10.1f}",
            flush=True,
        )
    philly = folder / "philly" / "philly.csv"
    if philly.exists():
        print("\nAll of Philly on 448 GPUs, restart cost")
        print(_line("srtf", alone(measure_philly, "srtf", philly)))


def _trace(folder: Path, name: str) -> Workload:
    """`trace3_pr_first120`: the first 120 rows of trace3, all submitted at once."""
    base, *rest = name.split("_")
    work = read(folder / "muri" / f"{base}.csv", "muri")
    if "pr" in rest:
        work = replace(work, submit_s=np.zeros(len(work)))
    first = [int(part.removeprefix("first")) for part in rest if part.startswith("first")]
    return work.head(first[0]) if first else work


def calibrate(code: str) -> float:
    """CPU seconds of the loop that the reference was timed with, run as it was: outside any function."""
    loop = compile(code.replace("\\n", "\n"), "calibration", "exec")
    began = time.process_time()
    exec(loop, {})
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedulers", default=",".join(SCHEDULERS), metavar="A,B")
    parser.add_argument("--jobs", default="1000,10000,100000", metavar="N,…")
    parser.add_argument("--reference", type=Path, metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="only 100 and 1,000 jobs, no backlog")
    args = parser.parse_args()
    sizes = [100, 1000] if args.quick else [int(n) for n in args.jobs.split(",")]
    print_growth(args.schedulers.split(","), sizes)
    if not args.quick:
        print_backlog(max(sizes))
    print_library(max(sizes))
    if args.reference:
        print_reference(args.reference)


if __name__ == "__main__":
    main()
