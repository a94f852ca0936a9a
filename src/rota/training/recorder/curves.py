"""Recorder of curves: one network per point of a grid, timed alone or as concurrent copies."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rota.core.cluster import own_cores
from rota.core.errors import InputError, RotaError
from rota.core.limits import at_least
from rota.core.processes import LOST, WorkerLost, be_a_worker, run_dag
from rota.recordings.curve import CurvePoint, Curves, CurveSetting, write_curves
from rota.recordings.folder import provenance
from rota.training.children import SPAWN, children
from rota.training.clock import Length, StoppedClock
from rota.training.data.images import check_seed
from rota.training.device import description, device
from rota.training.hyper import Hyperparameters, grid_settings
from rota.training.recorder.partial import Partial, Recorder, RecordingProgress, check_name
from rota.training.recorder.step_times import measure, step
from rota.training.setup import LIBRARIES, Setup
from rota.training.trainer import Trainer
from rota.training.trial import NetworkTrial


@dataclass(frozen=True, slots=True)
class CurvesConfig:
    """One network, trained at each point of a grid of hyper-parameters."""

    name: str
    """Name of the recording."""
    setup: Setup = field(default_factory=Setup)
    grid: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Hyper-parameter → its values; every combination is trained."""
    intervals: int = 20
    steps: int = 50
    """Steps in each interval."""
    seed: int = 0
    copies: int = 0
    """Number of concurrent copies during timing, each on a core of its own: as many as there will be slots.

    The overhead of a report is then measured too. If 0, step times are measured alone, in turns.
    """

    def __post_init__(self) -> None:
        check_name(self.name)
        check_seed(self.seed)
        at_least(1, intervals=self.intervals, steps=self.steps)
        at_least(0, copies=self.copies)
        self.settings()

    def settings(self) -> dict[str, Hyperparameters]:
        """Return name → hyper-parameters, the last of the grid varying fastest."""
        return grid_settings(self.setup.hyper, self.grid)


TIMED_INTERVALS = 8
"""Intervals of each batch size that each copy times, after one to warm up."""
PATIENCE_S = 600.0
"""Seconds to wait for a copy to get ready."""


class IntervalTimes(NamedTuple):
    """Seconds of an interval, by purpose."""

    load_s: float
    step_s: float
    """Seconds per step."""
    evaluate_s: float
    save_s: float


def mean(intervals: list[IntervalTimes]) -> IntervalTimes:
    """Return the mean, not the median: occasional delays also occur in a run, which sums its intervals."""
    return IntervalTimes(*map(fmean, zip(*intervals, strict=True)))


@dataclass(frozen=True, slots=True)
class CopyTimings:
    """A measurement of interval times with concurrent copies."""

    setup: Setup
    sizes: tuple[int, ...]
    """Batch sizes."""
    steps: int
    """Steps in an interval."""
    seed: int
    copies: int

    def measure(self) -> dict[int, list[IntervalTimes]]:
        """Return batch size → the interval times of all copies."""
        found = self._all()
        return {size: [interval for each in found for interval in each[size]] for size in self.sizes}

    def _all(self) -> list[dict[int, list[IntervalTimes]]]:
        """Return what each copy measured.

        All start together and train until the last has finished measuring.
        """
        together = (SPAWN.Barrier(self.copies), SPAWN.Value("i", self.copies))
        with children(self.copies, _copy, self, *together) as copies:
            return list(_answers(copies.lines))


def _answers(lines: list[Connection]) -> Iterator[dict[int, list[IntervalTimes]]]:
    open_ = list(lines)
    while open_:
        ready = set(wait(open_))
        for line in [line for line in open_ if line in ready]:
            try:
                answer = line.recv()
            except (EOFError, OSError):
                raise WorkerLost(LOST) from None
            if isinstance(answer, RotaError):
                raise answer
            yield answer
            open_.remove(line)


def _copy(asked: CopyTimings, ready: Any, measuring: Any, rank: int, line: Connection) -> None:
    """Run one copy in its process: send its measurements, or the error."""
    _be_like_a_slot(rank)
    try:
        with TemporaryDirectory(prefix="rota-copies-") as folder:
            line.send(_measured(asked, Path(folder), ready, measuring))
    except RotaError as error:
        line.send(error)


def _measured(asked: CopyTimings, folder: Path, ready: Any, measuring: Any) -> dict[int, list[IntervalTimes]]:
    networks = {size: TimedNetwork(asked, size, folder / f"{size}.checkpoint") for size in asked.sizes}
    for network in networks.values():
        network.train()
    ready.wait(PATIENCE_S)
    found: dict[int, list[IntervalTimes]] = {size: [] for size in asked.sizes}
    for size in [size for _ in range(TIMED_INTERVALS) for size in asked.sizes]:
        found[size].append(networks[size].train())
    with measuring.get_lock():
        measuring.value -= 1
    while measuring.value:  # keep the load on the others while they measure
        for network in networks.values():
            network.train()
    return found


def _be_like_a_slot(rank: int) -> None:
    """Use one core and a session of its own: a busy Linux shares processors fairly between sessions."""
    be_a_worker()
    os.setsid()
    if hasattr(os, "sched_setaffinity"):
        cores = own_cores()
        os.sched_setaffinity(0, {cores[rank % len(cores)]})


class TimedNetwork:
    """A network at one batch size, trained interval by interval."""

    def __init__(self, asked: CopyTimings, size: int, file: Path) -> None:
        hyper = Hyperparameters(batch_size=size)
        setup = replace(asked.setup, hyper=hyper, threads=asked.setup.threads or 1)
        self._trial, self._file, self._steps = NetworkTrial(setup, asked.seed), file, asked.steps
        self._file.write_bytes(self._trial.save())

    def train(self) -> IntervalTimes:
        """Train from a checkpoint to the next and return the times; raise if not all steps were made."""
        at_s = [time.perf_counter()]
        self._trial.load(self._file.read_bytes())
        at_s.append(time.perf_counter())
        before = self._trial.steps
        self._trial.train(self._steps, {}, ())
        at_s.append(time.perf_counter())
        if self._trial.steps < before + self._steps:
            raise InputError("seconds per step cannot be measured: the loss is no longer a number")
        self._trial.evaluate()
        at_s.append(time.perf_counter())
        self._file.write_bytes(self._trial.save())
        at_s.append(time.perf_counter())
        load_s, train_s, evaluate_s, save_s = (after - before for before, after in pairwise(at_s))
        return IntervalTimes(load_s, train_s / self._steps, evaluate_s, save_s)


OVERHEAD = ("load_s", "evaluate_s", "save_s")
"""Overhead of a report: loading a checkpoint, evaluating, saving a checkpoint."""
TIMING_ROUNDS = 5
"""Rounds of timing with concurrent copies, from before the first setting until after the last.

They are spread over the recording because the speed of a shared machine changes over minutes.
"""


@dataclass(frozen=True, slots=True)
class CurvesRecorder(Recorder):
    """A recorder of curves into `out/curves`."""

    config: CurvesConfig
    workers: int = 1

    KIND = "curves"

    def _check(self) -> None:
        """Check first that the data are there and that batches of each size are possible."""
        for trainer in self._trainers():
            step(trainer)

    def _record(self, progress: RecordingProgress) -> None:
        """Train the settings that are missing, with timing rounds in between."""
        open_ = [name for name in self.config.settings() if self.partial.get(name) is None]
        self._measure(progress)
        steps = self.config.steps * self.config.intervals
        sizes = {name: hyper.batch_size for name, hyper in self.config.settings().items()}
        each_s = {name: steps * self._interval_times()[size].step_s for name, size in sizes.items()}
        progress.expect(sum(each_s[name] for name in open_))
        for group in _groups(open_, TIMING_ROUNDS - 1 if self.config.copies else 1):
            progress.say(self.config.name)
            work = partial(train, self.config, self.partial)
            for name in run_dag(work, group, lambda _: (), min(self.workers, len(group))):
                progress.advance(each_s[name])
            self._measure(progress)

    def _measure(self, progress: RecordingProgress) -> None:
        """Make a timing round; without concurrent copies only once, as its turns are short."""
        rounds = self.partial.get("sittings") or []
        if not rounds or self.config.copies:
            progress.say(f"{self.config.name}: seconds per step")
            self.partial.put("sittings", [*rounds, self._timing_round()])

    def _timing_round(self) -> list[tuple[int, list[IntervalTimes]]]:
        """Return batch sizes with the interval times of one timing round."""
        config = self.config
        if config.copies:
            sizes = tuple(sorted({hyper.batch_size for hyper in config.settings().values()}))
            timings = CopyTimings(config.setup, sizes, config.steps, config.seed, config.copies)
            return list(timings.measure().items())
        step_times = measure(list(self._trainers()), device(config.setup.device))
        return [(size, [IntervalTimes(0.0, step_s, 0.0, 0.0)]) for (_, size), step_s in step_times.items()]

    def _trainers(self) -> Iterator[Trainer]:
        """Yield a trainer for each batch size."""
        for size in sorted({hyper.batch_size for hyper in self.config.settings().values()}):
            setup = replace(self.config.setup, hyper=Hyperparameters(batch_size=size))
            yield setup.trainer(StoppedClock(), seed=self.config.seed)

    def _interval_times(self) -> dict[int, IntervalTimes]:
        """Return batch size → mean times over all timing rounds so far."""
        found: dict[int, list[IntervalTimes]] = {}
        for size, intervals in (each for made in self.partial.get("sittings") or () for each in made):
            found.setdefault(size, []).extend(IntervalTimes(*interval) for interval in intervals)
        return {size: mean(intervals) for size, intervals in found.items()}

    def _write(self, asked: dict[str, Any]) -> None:
        config = self.config
        where = description(device(config.setup.device), config.setup.threads)
        hyper = tuple(config.grid)
        times = self._interval_times()
        settings, failed = {}, {}
        for name, values in config.settings().items():
            seconds = config.steps * times[values.batch_size].step_s
            rows = self.partial.get(name) or ()
            intervals = [CurvePoint(number, steps, seconds, metrics) for number, steps, metrics in rows]
            given = {key: getattr(values, key) for key in hyper}
            if intervals:
                settings[name] = CurveSetting.of(name, given, where, config.seed, intervals)
            if len(intervals) < config.intervals:
                failed[name] = given
        curves = Curves(
            model=config.setup.model,
            data=config.setup.learns_from,
            hyper=hyper,
            intervals=config.intervals,
            settings=settings,
            provenance=provenance(device=where, seed=config.seed, command=self.command, libraries=LIBRARIES),
            planned=tuple(config.settings()),
            failed=failed,
            metrics=tuple(dict.fromkeys(name for each in settings.values() for name in each.metrics)),
            details=self._details(asked, times),
        )
        write_curves(self.folder, curves)

    def _details(self, asked: dict[str, Any], times: dict[int, IntervalTimes]) -> dict[str, Any]:
        prints = {trainer.hyper.batch_size: trainer.structure.fingerprint for trainer in self._trainers()}
        step_times = [[prints[size], size, each.step_s] for size, each in times.items()]
        average = mean(list(times.values()))
        measured = {name: getattr(average, name) for name in OVERHEAD}
        found = {"asked": asked, "seconds_per_step": step_times}
        return {**found, "overhead": measured} if self.config.copies else found


def _groups(names: list[str], count: int) -> list[list[str]]:
    """Divide names into at most `count` groups of about equal size, none empty."""
    ends = [len(names) * number // count for number in range(count + 1)]
    return [names[start:end] for start, end in pairwise(ends) if start < end]


def train(config: CurvesConfig, kept: Partial, name: str) -> None:
    """Train one setting without timing it, and store its metrics; a failure ends it with fewer intervals."""
    setup = replace(config.setup.at_once, hyper=config.settings()[name])
    trainer = setup.trainer(StoppedClock(), seed=config.seed, length=Length(steps=config.steps))
    rows = []
    for number in range(config.intervals):
        epoch = trainer.epoch()
        if epoch.ended != "whole":
            break
        metrics = {"loss": epoch.loss, **{_metric(key): v for key, v in epoch.metrics.items()}}
        rows.append([number, epoch.steps, metrics])
    kept.put(name, rows)


def _metric(name: str) -> str:
    """Rename the validation loss, as `loss` is the training loss."""
    return "validation_loss" if name == "loss" else name
