"""Training speed of this machine: images per second of one bundle of cores, or of one GPU.

Whole steps count: loading, forward, backward, optimiser. Bundles are measured one at a time, each in a new
process. Other load on the machine shows: the rates differ, or threads wait for a processor.
"""

import math
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import torch

from rota.core.cluster import own_cores
from rota.core.errors import ConfigError, InputError, RotaError, unknown
from rota.core.limits import above
from rota.core.processes import WorkerLost
from rota.training.children import children
from rota.training.clock import Length, WallClock
from rota.training.data import NAMES
from rota.training.device import description, device
from rota.training.hyper import Hyperparameters
from rota.training.models.registry import MODELS, model
from rota.training.setup import Setup
from rota.training.trainer import Trainer

RUNS = 5
"""Number of short runs of which the median counts."""
WARM_STEPS = 3
"""Least number of steps to warm up."""
SIZE = 32
"""Width and height of the images in pixels, whatever the data."""
ENDLESS = Length(steps=2**62)


class Bundle(NamedTuple):
    """The devices of one trial: cores, or GPUs, of which it trains on the first."""

    device: str
    """CPU or GPU."""
    core: int


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A short training that measures a bundle."""

    model: str = "convnet2"
    data: str = "digits"
    batch_size: int = 64
    seconds: float = 5.0
    """Seconds for all runs of a bundle together; a run has at least one step."""

    def __post_init__(self) -> None:
        if model(self.model).task != "classification":
            names = ", ".join(name for name, entry in MODELS.items() if entry.task == "classification")
            raise ConfigError(f"model {self.model!r}: takes no images; give one of {names}")
        if self.data not in NAMES:
            raise ConfigError(unknown("data set", self.data, NAMES))
        above(0, finite=True, seconds=self.seconds)
        Hyperparameters(batch_size=self.batch_size)  # possible?

    def __str__(self) -> str:
        return f"{self.model}, {self.data} of {SIZE} pixels, batches of {self.batch_size}"

    def trainer(self, bundle: Bundle) -> Trainer:
        """Return a network that is ready to train on a bundle; a GPU is fed by one core."""
        on_cpu = bundle.device == "CPU"
        setup = Setup(
            model=self.model,
            data=self.data,
            size=SIZE,
            optimizer="sgd",
            hyper=Hyperparameters(batch_size=self.batch_size),
            device="cpu" if on_cpu else "cuda",
            threads=bundle.core if on_cpu else 1,
        )
        return setup.trainer(WallClock(device(setup.device)), seed=0, length=ENDLESS)


@dataclass(frozen=True, slots=True)
class MeasuredBundle:
    """The measurements of a bundle."""

    rates: tuple[float, ...]
    """Images per second of each run."""
    waited: float
    """Share of the time for which a thread waited for a processor; 0 if not known."""
    device: str
    """The maker's name of the device."""

    @property
    def score(self) -> float:
        """The median rate in images per second."""
        return median(self.rates)

    @property
    def spread(self) -> float:
        """The interquartile range of the rates, in images per second."""
        first, _, third = quantiles(self.rates, n=4, method="inclusive")
        return third - first


def check_fits(bundle: Bundle) -> None:
    """Raise if this machine has fewer devices than the bundle."""
    there = len(own_cores()) if bundle.device == "CPU" else torch.cuda.device_count()
    if bundle.core > there:
        what = "cores" if bundle.device == "CPU" else "GPUs that PyTorch sees"
        raise InputError(
            f"a bundle of {bundle.core} {bundle.device}: this machine has {there} {what}; "
            + (f"give {there} or fewer" if there else "leave it out")
        )


def measure(
    benchmark: Benchmark, bundle: Bundle, on_run: Callable[[], None] = lambda: None
) -> MeasuredBundle:
    """Warm up and make the runs in this process; `on_run` is called after each."""
    trainer = benchmark.trainer(bundle)
    run_s = benchmark.seconds / RUNS
    _run(trainer, run_s, at_least=WARM_STEPS)
    on_run()
    rates = []
    began_s, waits_s = time.perf_counter(), _waits_s()
    for _ in range(RUNS):
        rates.append(_run(trainer, run_s))
        on_run()
    passed_s = time.perf_counter() - began_s
    waited_s = max((wait_s - waits_s.get(thread, 0.0) for thread, wait_s in _waits_s().items()), default=0.0)
    where = next(trainer.network.parameters()).device
    return MeasuredBundle(tuple(rates), min(1.0, waited_s / passed_s), description(where))


def measure_apart(
    benchmark: Benchmark, bundle: Bundle, on_run: Callable[[], None] = lambda: None
) -> MeasuredBundle:
    """Do as `measure`, in a new process."""
    with children(1, _serve, benchmark, bundle) as (_, (line,)):
        try:
            while (answer := line.recv()) is None:
                on_run()
        except (EOFError, ConnectionError):
            raise WorkerLost(
                f"a bundle of {bundle.core} {bundle.device}: the process that measured it died, perhaps for "
                "lack of memory; try smaller batches"
            ) from None
    if isinstance(answer, RotaError):
        raise answer
    found: MeasuredBundle = answer
    return found


def _serve(benchmark: Benchmark, bundle: Bundle, rank: int, line: Connection) -> None:
    """Measure in a child process: send None after each run, at last the result or the error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that was started
    try:
        line.send(measure(benchmark, bundle, lambda: line.send(None)))
    except RotaError as error:
        line.send(error)


def _run(trainer: Trainer, seconds: float, *, at_least: int = 1) -> float:
    """Train for so many seconds and at least so many steps; return images per second."""
    before, began_s = trainer.progress.steps, trainer.clock.now_s()
    _train(trainer, until_steps=before + at_least)
    _train(trainer, until_s=began_s + seconds)
    passed_s = trainer.clock.now_s() - began_s
    return (trainer.progress.steps - before) * trainer.hyper.batch_size / passed_s


def _train(trainer: Trainer, *, until_s: float = math.inf, until_steps: int | None = None) -> None:
    epoch = trainer.epoch(until_s=until_s, until_steps=until_steps, evaluate=False)
    if epoch.ended == "failed":
        raise InputError(f"the benchmark cannot be trained: {epoch.failure}")


def _waits_s() -> dict[str, float]:
    """Return thread → seconds it was ready but not running; empty if the kernel does not count them."""
    found = {}
    for thread in Path("/proc/self/task").glob("*"):
        try:
            found[thread.name] = int((thread / "schedstat").read_text("ascii").split()[1]) / 1e9
        except (OSError, ValueError, IndexError):  # it has ended, or the kernel does not count
            continue
    return found
