"""Trains the same population under rota's population-based training on Ray and under Ray Tune's own.

    bash scripts/compare-tune.sh [CONFIG] [--quick] [--repeat N] [--without-functions] [--out DIR]

All sides train the same networks with the same stopwatch (timed_trial.py), from the same first weights and
hyper-parameters, on the same number of slots; only who schedules them differs. Each run is a process of its
own with a Ray of its own; the sides take turns, seed by seed.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import timed_trial
import tomli_w
from cpu_time import CpuTime
from tune_sides import Job, tuned

from rota.config.load import override, read
from rota.core.cluster import own_cores
from rota.core.errors import ConfigError, RotaError
from rota.core.files import atomic_write
from rota.core.population.events import Reported
from rota.figures.files import draw_sides
from rota.figures.page import Pen
from rota.library.real_run import RunSpec, ordered
from rota.policies.evolution.pbt import Pbt
from rota.results.population.metrics import SideRun, Sides, table, write_sides
from rota.results.population.run import read_population

ROOT = Path(os.path.relpath(Path(__file__).resolve().parents[1]))
OURS = "rota"
TUNE = {"Ray Tune, class": "class", "Ray Tune, function": "function"}
QUICK = ("population.trials=4", "population.steps=100")
AT_MOST_S, ENDS_S = 1800.0, 30.0
FINALS = "finals.json"
NOTE = """\
Medians; in brackets from the least to the most. Overhead: (slots × (last report − first start) − seconds of
training and evaluating) ÷ reports. A slot is in use from the first part of a process to its last.
A clone goes on at the iteration of its donor under Ray Tune, with its own steps under rota."""


def main() -> int:
    args = parsed()
    try:
        if args.only:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that its cluster is cleared away
            (args.folder / FINALS).write_text(json.dumps(under_tune(args.only, args.config, args.folder)))
        else:
            compare(args)
    except RotaError as error:
        print(f"compare-tune: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="compare-tune.sh", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("config", nargs="?", type=Path, default=ROOT / "config/run/ray.toml", help="what is trained")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="set any key of the configuration")
    add("--quick", action="store_true", help="4 trials × 100 steps, once, and without functions")
    add("--repeat", type=int, metavar="N", help="so many seeds (3)")
    add("--without-functions", action="store_true", help="leave out what takes minutes")
    add("--out", type=Path, metavar="DIR", help="for the results and the figure (results/…, plots)")
    add("--only", choices=TUNE, help=argparse.SUPPRESS)
    add("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.repeat is not None and args.repeat < 1:
        parser.error(f"--repeat {args.repeat}: give 1 or more")
    return args


def compare(args: argparse.Namespace) -> None:
    """What has been measured is kept run by run."""
    settings = [*(QUICK if args.quick else ()), *args.set]
    order = checked(ordered(override(read(args.config), settings), args.config))
    short = args.quick or args.without_functions
    names = [OURS, *(name for name in TUNE if not short or TUNE[name] == "class")]
    repeat = args.repeat or (1 if args.quick else 3)
    print(f"{about(order)}: {' | '.join(names)}; {repeat} seed{'s' if repeat > 1 else ''}", flush=True)
    sides = Sides(about(order), shlex.join(["bash", "scripts/compare-tune.sh", *sys.argv[1:]]), ())
    for seed in range(order.config.seed, order.config.seed + repeat):
        for name in names:
            sides = replace(sides, runs=(*sides.runs, run(name, order, seed)))
            write_sides(folder_of(args), sides)
            print(progress(sides.runs[-1]), flush=True)
    show(sides, folder_of(args), ROOT / "plots" if not (args.out or args.quick) else folder_of(args))


def folder_of(args: argparse.Namespace) -> Path:
    return args.out or ROOT / "results" / ("quick-compare-tune" if args.quick else "compare-tune")


def checked(order: RunSpec) -> RunSpec:
    config = order.config
    if config.backend != "ray" or config.evolution != "pbt" or config.ray.address:
        raise ConfigError("what is compared has backend ray, without an address, and evolution pbt")
    if len({slot.cpus for slot in config.ray.slots}) > 1 or any(slot.gpus for slot in config.ray.slots):
        raise ConfigError("ray.slots: Ray Tune's are all alike; give as many CPUs to each, and no GPU")
    if config.population.steps % config.population.interval:
        raise ConfigError(
            "population.steps: Ray Tune knows whole intervals only; give a multiple of interval"
        )
    return order


def about(order: RunSpec) -> str:
    """What is trained, and on what."""
    config, training = order.config, order.training
    slots = f"{len(config.ray.cluster().all_slots)} slots of {config.ray.slots[0].cpus:g} CPU"
    what = f"{training.get('model', config.trial)} on {training.get('data', 'its data')}"
    population = f"{config.population.said()}, a report every {config.population.interval}"
    return f"{population}; {what}; {slots}, {len(own_cores())} cores, Ray {version('ray')}"


def run(name: str, order: RunSpec, seed: int) -> SideRun:
    """In a process of its own, with a cluster of its own."""
    with tempfile.TemporaryDirectory(prefix="rota-compare-") as path:
        folder = Path(path)
        config = described(order, seed, folder)
        began_s = time.perf_counter()
        cpu_s = carried_out(name, command(name, config, folder))
        process_s = time.perf_counter() - began_s
        finals = finals_of(folder, seed, ours=name == OURS)
        slots = len(order.config.ray.cluster().all_slots)
        return SideRun(name, seed, slots, timed_trial.parts(folder / "log"), finals, process_s, cpu_s)


def described(order: RunSpec, seed: int, folder: Path) -> Path:
    """The configuration that all sides read: with a stopwatch, and as many threads as a slot has CPUs."""
    (folder / "log").mkdir()
    threads = max(1, int(order.config.ray.slots[0].cpus))
    training = {"threads": threads, **order.training}
    found: dict[str, Any] = tomllib.loads(order.text())
    found |= {"seed": seed, "repeat": 1, "trial": timed_trial.NAME}
    found["training"] = timed_trial.settings(order.config.trial, training, folder / "log")
    file = folder / "run.toml"
    file.write_text(tomli_w.dumps(found))
    return file


def command(name: str, config: Path, folder: Path) -> list[str]:
    if name == OURS:
        return [
            sys.executable,
            "-P",
            "-m",
            "rota",
            "run",
            str(config),
            "--out",
            str(folder / "run"),
            "--json",
        ]
    return [sys.executable, __file__, str(config), "--only", name, "--folder", str(folder)]


def carried_out(name: str, words: list[str]) -> float:
    """The CPU seconds of a process and all that it starts."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=said, env=timed_trial.environment()
        )
        try:
            cpu_s = CpuTime(process.pid).until_over(process, AT_MOST_S)
        finally:
            end(process)
        if process.returncode:
            said.seek(0)
            raise RotaError(f"{name}: ended with {process.returncode}:\n{said.read()[-4000:]}")
    return cpu_s


def end(process: subprocess.Popen[bytes]) -> None:
    """So that its cluster ends with it, whatever stopped us."""
    process.terminate()
    try:
        process.wait(ENDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def under_tune(name: str, file: Path, folder: Path) -> list[float]:
    order = ordered(read(file), file)
    config, population = order.config, order.config.population
    evolution = order.variant.policy.evolution
    assert isinstance(evolution, Pbt)
    slots = config.ray.slots
    job = Job(
        order.training,
        config.seed,
        population.hypers(config.seed),
        population.interval,
        -(-population.steps // population.interval),
        slots[0].cpus,
        evolution,
    )
    return tuned(TUNE[name], job, sum(slot.count for slot in slots), folder / "tune")


def finals_of(folder: Path, seed: int, *, ours: bool) -> list[float]:
    if not ours:
        return list(json.loads((folder / FINALS).read_text()))
    found: dict[int, float] = {}
    for event in read_population(folder / "run").events(seed):
        if isinstance(event, Reported):
            found[event.trial] = event.metric
    return [found[trial] for trial in sorted(found)]


def progress(run: SideRun) -> str:
    overhead = f"{1000 * run.overhead_s:8,.1f} ms per report of {run.reports}"
    return f"seed {run.seed}   {run.side:18} {overhead}   {run.training_s:7.2f} s   best {run.best:.1%}"


def show(sides: Sides, out: Path, figures: Path) -> None:
    """Print the table, and write it next to the numbers, and the figure."""
    alike = "the same on all sides" if sides.begin_alike else "NOT the same on all sides"
    text = f"{sides.about}\n\n{table(sides)}\n\n{NOTE}\nWhat trials report first is {alike}.\n"
    with atomic_write(out / "compare.txt") as stream:
        stream.write(text.encode())
    print(f"\n{text}")
    for file in draw_sides(sides, figures, Pen(svg=True)):
        print(file)


if __name__ == "__main__":
    sys.exit(main())
