"""Measures the overhead of a population on Ray: ours, and Ray Tune's, on the same machine.

    bash scripts/bench.sh --ray [--without-functions]

8 trials × 10 reports of 0.05 s on two slots under population-based training, three times: by rota, by Ray
Tune with a class whose actors are reused, and by Ray Tune with a function, as most people write it (minutes).
What each report costs is (slots × (last report − first start) − seconds of work) ÷ reports, actors being up.
Under Ray Tune a trial that clones goes on at the iteration of its donor, so reports may be fewer or more.
With networks in place of trials that wait: bash scripts/compare-tune.sh.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import timed_trial
import tune_sides

SLOTS, TRIALS, REPORTS, WORK_S = 2, 8, 10, 0.05
HYPERS = [{"lr": (1.0 + trial) / TRIALS} for trial in range(TRIALS)]
IDLE = "rota.execution.idle:idle"
AT_MOST_S = 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without-functions", action="store_true", help="leave out what takes minutes")
    parser.add_argument("--only", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only:
        print(json.dumps(WAYS[args.only]()))
        return
    print(f"{TRIALS} trials × {REPORTS} reports of {WORK_S} s on {SLOTS} slots")
    for name in WAYS:
        if name != "tune-function" or not args.without_functions:
            began_s = time.perf_counter()
            overhead_s, reports = in_a_process(name)
            whole_s = time.perf_counter() - began_s
            each = f"{1000 * overhead_s:8.1f} ms per report of {reports}"
            print(f"{name:14} {each}   {whole_s:6.1f} s in all", flush=True)


def in_a_process(name: str) -> tuple[float, int]:
    """Each in one of its own, with a cluster of its own."""
    command = [sys.executable, __file__, "--only", name]
    environment = timed_trial.environment()
    done = subprocess.run(command, capture_output=True, text=True, timeout=AT_MOST_S, env=environment)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    overhead_s, reports = json.loads(done.stdout.splitlines()[-1])
    return float(overhead_s), int(reports)


def ours() -> tuple[float, int]:
    from rota.core.population.costs import AssignmentCosts
    from rota.core.population.view import Terms
    from rota.execution.controller import PopulationSpec, control
    from rota.execution.engine import WorkerSetup
    from rota.execution.folder import RunPaths
    from rota.execution.ray_config import RayConfig, RaySlotConfig
    from rota.policies.allocation.fifo import FifoAllocation
    from rota.policies.evolution.pbt import Pbt
    from rota.policies.population import PopulationPolicy
    from rota.simulator.landscapes import Equal

    engine = RayConfig(slots=(RaySlotConfig(count=SLOTS),))
    spec = PopulationSpec(HYPERS, engine.cluster(), Terms(1, REPORTS), AssignmentCosts(), Equal(WORK_S))
    with tempfile.TemporaryDirectory() as folder:
        paths = RunPaths(Path(folder) / "run")
        assignment = WorkerSetup(IDLE, {"step_s": WORK_S}, 0, paths)
        outcome = control(
            spec,
            PopulationPolicy(FifoAllocation(), Pbt()),
            lambda: engine.workers(spec.cluster, assignment),
            paths,
        )
    return outcome.status.overhead_s_per_report or 0.0, outcome.status.reports


def tuned(way: str) -> tuple[float, int]:
    """Return seconds of overhead per report, and reports, under Ray Tune's own population-based training."""
    from rota.policies.evolution.pbt import Pbt
    from rota.results.population.metrics import SideRun

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        log.mkdir()
        settings = timed_trial.settings(IDLE, {"step_s": WORK_S}, log)
        job = tune_sides.Job(settings, 0, HYPERS, 1, REPORTS, 1.0, Pbt())
        finals = tune_sides.tuned(way, job, SLOTS, Path(folder) / "tune")
        run = SideRun(way, 0, SLOTS, timed_trial.parts(log), finals, 0.0, 0.0)
    return run.overhead_s, run.reports


WAYS = {
    "rota": ours,
    "tune-class": lambda: tuned("class"),
    "tune-function": lambda: tuned("function"),
}


if __name__ == "__main__":
    main()
