"""Measures how steady this machine is: how far any simulation of work that only computes can be off on it.

    bash scripts/bench.sh --steadiness [--minutes N]

A small network is trained on every core at once, and nothing else. Then each stretch as long as a run is
predicted: by what was measured just before it, as a recording would, and by the mean of all measured,
which no recording can know. What is left is the machine's own.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable

import numpy as np

from rota.core.processes import be_a_worker
from rota.training.trial import network

SETTINGS = {"model": "convnet2", "data": "digits", "optimizer": "sgd", "threads": 1}
STEPS = 50
"""That are timed at once."""
RUN_S, RECORDED_S, EVERY_S = 75.0, 100.0, 5.0
LIMIT = 5.0
"""Per cent."""

Timed = np.ndarray
"""Rows of when, and of seconds per step."""


def train(asked: tuple[int, float]) -> list[tuple[float, float]]:
    """On one core, until that many seconds are over."""
    core, seconds = asked
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    trial = network(SETTINGS, 0)
    trial.train(STEPS, {}, ())
    found, began_s = [], time.monotonic()
    while (at_s := time.monotonic()) < began_s + seconds:
        trial.train(STEPS, {}, ())
        found.append((at_s, (time.monotonic() - at_s) / STEPS))
    return found


def measured(cores: list[int], seconds: float) -> Timed:
    """By all cores at once, in the order of time, which counts from the first."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(len(cores), be_a_worker) as pool:
        rows = [row for each in pool.map(train, [(core, seconds) for core in cores], 1) for row in each]
    found = np.array(sorted(rows))
    found[:, 0] -= found[0, 0]
    return found


def mean_s(timed: Timed, begin_s: float, length_s: float) -> float:
    """Per step, in a stretch of time."""
    first, last = np.searchsorted(timed[:, 0], [begin_s, begin_s + length_s])
    return float(timed[first:last, 1].mean())


def errors(timed: Timed, predicted_s: Callable[[float], float]) -> np.ndarray:
    """Of runs that begin whenever there was time to record before, in per cent of what they took."""
    begins_s = np.arange(RECORDED_S, timed[-1, 0] - RUN_S, EVERY_S)
    return np.array([100.0 * (predicted_s(at_s) / mean_s(timed, at_s, RUN_S) - 1.0) for at_s in begins_s])


def line(name: str, off: np.ndarray) -> str:
    beyond = np.mean(np.abs(off) > LIMIT)
    return f"{name:20}{off.std():10.1f} %{np.abs(off).max():10.1f} %{beyond:12.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.sh --steadiness", description="How steady is this machine?")
    parser.add_argument("--minutes", type=float, default=15.0, metavar="N", help="at least 4 (default: 15)")
    seconds = 60.0 * parser.parse_args().minutes
    if not seconds >= RECORDED_S + RUN_S + 60.0:
        parser.error("--minutes: give 4 or more: it takes three to predict the first run")
    pins = hasattr(os, "sched_getaffinity")
    cores = sorted(os.sched_getaffinity(0)) if pins else list(range(os.cpu_count() or 1))
    print(f"{seconds / 60.0:g} minutes; leave the machine alone meanwhile", file=sys.stderr)
    timed = measured(cores, seconds)
    print(f"convnet2 on digits, on {len(cores)} cores at once, for {seconds / 60.0:g} minutes\n")
    print(f"{'ms per step':20}{'least':>12}{'most':>12}")
    for length_s in (EVERY_S, RUN_S):
        found = [mean_s(timed, at_s, length_s) for at_s in np.arange(0.0, timed[-1, 0] - length_s, EVERY_S)]
        print(f"{f'over {length_s:g} s':20}{1e3 * min(found):12.2f}{1e3 * max(found):12.2f}")
    print(f"\n{f'{RUN_S:g} s, predicted by':20}{'off (sd)':>12}{'at worst':>12}{f'beyond {LIMIT:g} %':>12}")
    whole_s = float(timed[:, 1].mean())
    before = errors(timed, lambda at_s: mean_s(timed, at_s - RECORDED_S, RECORDED_S))
    print(line(f"the {RECORDED_S:g} s before", before))
    print(line("the mean of all", errors(timed, lambda _: whole_s)))


if __name__ == "__main__":
    main()
