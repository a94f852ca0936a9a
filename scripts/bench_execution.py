"""Measures the overhead of `rota run`, on workers of this machine or on Slurm.

    bash scripts/bench.sh --execution [--quick] [--backend slurm]

Once with trials that wait 0.05 s an interval, as Ray Tune's overhead is measured; once with many trials
that do nothing at all, where every second is ours. Memory is that of the controller, after a tenth of the
reports and at the end.

Then, with as many reports in all, few trials and ten times as many of them under pbt, each by a `rota run` of
its own from its start to its results: what a report costs must not grow with the number of trials.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rota.core.errors import InputError
from rota.core.population.costs import AssignmentCosts
from rota.core.population.view import Terms
from rota.execution.controller import PopulationOutcome, PopulationSpec, control
from rota.execution.engine import Engine, WorkerSetup
from rota.execution.folder import RunPaths
from rota.execution.local import LocalConfig, LocalSlotConfig
from rota.execution.slurm_config import SlurmConfig, SlurmNodeConfig
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.evolution.pbt import Pbt
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal

SLOTS = 2
ENGINES: dict[str, Engine] = {
    "local": LocalConfig((LocalSlotConfig(count=SLOTS, cores=0),)),
    "slurm": SlurmConfig((SlurmNodeConfig(slots=SLOTS),)),
}


COMMAND = [sys.executable, "-m", "rota", "run"]
CONFIG = """
trial = "rota.execution.idle:idle"
evolution = "pbt"

[population]
interval = 1

[population.start]
lr = { low = 0.001, high = 0.3, log = true }

[local]
slots = [{ count = 2, cores = 0 }]

[slurm]
nodes = [{ slots = 2 }]
"""


class Memory:
    """What the controller needs, when a tenth of the reports is there."""

    def __init__(self, reports: int) -> None:
        self._at, self.early_mb = reports // 10, 0.0

    def __call__(self, status: object, events: object) -> None:
        if not self.early_mb and getattr(status, "reports", 0) >= self._at:
            self.early_mb = peak_mb()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials that do nothing")
    parser.add_argument("--backend", choices=ENGINES, default="local", help="which machines (local)")
    parser.add_argument(
        "--rounds", type=int, default=1, help="how often few and many trials are compared (1)"
    )
    args = parser.parse_args()
    many, engine = 100 if args.quick else 1000, ENGINES[args.backend]
    said = "{} trials × {} reports of {} s on {} slots: {:.1f} s, {:.2f} ms of overhead per report, {}"
    for trials, reports, interval_s, policy in (
        (8, 10, 0.05, PopulationPolicy(FifoAllocation(), Pbt())),
        (many, 100, 0.0, PopulationPolicy(FifoAllocation())),
    ):
        memory = Memory(trials * reports)
        began = time.perf_counter()
        outcome = run(engine, trials, reports, interval_s, policy, memory)
        wall_s = time.perf_counter() - began
        overhead_s = outcome.status.overhead_s_per_report or 0.0
        used = f"{memory.early_mb:.0f} MB early on, {peak_mb():.0f} MB at most"
        print(said.format(trials, reports, interval_s, SLOTS, wall_s, 1000 * overhead_s, used))
    compare(many, args.rounds, args.backend)


def compare(few: int, rounds: int, backend: str) -> None:
    """Few trials and many, one after the other, with as many reports in all."""
    ratios = []
    for _ in range(rounds):
        small_s, large_s = (
            whole_run(trials, reports, backend) for trials, reports in ((few, 100), (10 * few, 10))
        )
        ratios.append(large_s / small_s)
    print(
        f"a report of {10 * few} trials takes {statistics.median(ratios):.2f} times as long as one of {few} "
        f"(median of {rounds}: {', '.join(f'{ratio:.2f}' for ratio in ratios)})"
    )


def whole_run(trials: int, reports: int, backend: str) -> float:
    """Seconds that `rota run` takes per report, with all that it writes."""
    with tempfile.TemporaryDirectory() as folder:
        (config := Path(folder) / "run.toml").write_text(CONFIG)
        settings = [f"population.trials={trials}", f"population.steps={reports}", f"backend={backend}"]
        command = [*COMMAND, str(config), "--out", str(Path(folder) / "run")]
        began = time.perf_counter()
        process = subprocess.Popen(
            [*command, *(word for each in settings for word in ("--set", each))],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise InputError(f"rota run of {trials} trials ended with exit code {process.returncode}")
    each_ms = 1000 * wall_s / (trials * reports)
    print(
        f"{trials} trials × {reports} reports under pbt, from start to results: {wall_s:.1f} s, "
        f"{each_ms:.3f} ms per report, {used.ru_maxrss / 1024:.0f} MB at most",
        flush=True,
    )
    return wall_s / (trials * reports)


def run(
    engine: Engine, trials: int, reports: int, interval_s: float, policy: PopulationPolicy, memory: Memory
) -> PopulationOutcome:
    """A population of trials that only wait."""
    hypers = [{"lr": (1.0 + trial) / trials} for trial in range(trials)]
    spec = PopulationSpec(
        hypers, engine.cluster(), Terms(1, reports), AssignmentCosts(), Equal(interval_s or 1e-4)
    )
    with tempfile.TemporaryDirectory() as folder:
        paths = RunPaths(Path(folder) / "run")
        assignment = WorkerSetup("rota.execution.idle:idle", {"step_s": interval_s}, 0, paths)
        return control(
            spec,
            policy,
            lambda: engine.workers(spec.cluster, assignment),
            paths,
            watch=memory,
        )


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(f"bench_execution.py: {error}", file=sys.stderr)
        sys.exit(2)
