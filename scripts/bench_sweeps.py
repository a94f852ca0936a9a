"""What sweeps cost: seconds and memory of trials that do nothing but log."""

import resource
import sys
import tempfile
import time
from contextlib import redirect_stdout
from os import devnull
from pathlib import Path

import rota.sweeps as ss


def train(cfg):
    for step in range(cfg["logs"]):
        ss.log({"error": cfg["x"] / (step + 1)}, step)


def measure(trials: int, logs: int, folder: Path) -> str:
    """One sweep, without pruning: so every trial logs as often as it is told to."""
    cfg = {"logs": logs, "x": ss.Uniform(0, 1, seed=0)}
    experiment = ss.Experiment(train, cfg, name=f"{trials}x{logs}", local_dir=folder)
    began_s = time.perf_counter()
    with Path(devnull).open("w") as nothing, redirect_stdout(nothing):
        result = experiment.run(n_trials=trials)
    took_s = time.perf_counter() - began_s
    kept = sum(len(trial.metrics["error"]) for trial in result.trials)
    assert kept == trials * logs, f"{kept} of {trials * logs} logs were kept"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    busy_s = sum(trial.runtime.total_seconds() for trial in result.trials if trial.runtime) / trials
    size = f"{trials:6,} trials × {logs:6,} logs"
    return f"{size} {took_s:8.1f} s {1e3 * busy_s:8.0f} ms per trial {memory:6} MB so far"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for trials, logs in [(50, 20), (1, 10_000), (10, 10_000), (1000, 1)]:
            print(measure(trials, logs, Path(folder)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
