"""Record curves: one network per point of a grid of hyper-parameters, also with concurrent copies."""

import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from itertools import pairwise, product
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rota.core.errors import ConfigError, InputError, RotaError, unknown
from rota.core.processes import LOST, WorkerLost, be_a_worker, run_dag
from rota.recordings.curve import CurvePoint, Curves, CurveSetting, write_curves
from rota.recordings.folder import provenance
from rota.training.clock import Length, StoppedClock
from rota.training.data.images import check_seed
from rota.training.device import description, device
from rota.training.hyper import Hyperparameters
from rota.training.recorder.partial import Partial, RecordingProgress, as_asked, check_name, recorded
from rota.training.recorder.step_times import measure, step
from rota.training.setup import LIBRARIES, Setup
from rota.training.trainer import Trainer
from rota.training.trial import NetworkTrial

HYPER = tuple(field.name for field in fields(Hyperparameters))


@dataclass(frozen=True, slots=True)
class CurvesConfig:
    """One network, trained at each point of a grid of hyper-parameters."""

    name: str
    """Of the recording."""
    setup: Setup = field(default_factory=Setup)
    grid: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Hyper-parameter → its values; every combination is trained."""
    intervals: int = 20
    steps: int = 50
    """In each interval."""
    seed: int = 0
    copies: int = 0
    """Number of concurrent copies, each on a core of its own, with which seconds are measured: as many as
    there will be slots; then also the overhead of a report. If 0: alone, in turns."""

    def __post_init__(self) -> None:
        check_name(self.name)
        check_seed(self.seed)
        for name in ("intervals", "steps"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.copies < 0:
            raise ConfigError(f"copies is {self.copies}; it must be 0 or more")
        for name, values in self.grid.items():
            if name not in HYPER:
                raise ConfigError(f"grid: {unknown('hyper-parameter', name, HYPER)}")
            if not values or len(set(values)) < len(values):
                raise ConfigError(f"grid: {name}: give one or more values, each of them once")
        if any(not float(size).is_integer() for size in self.grid.get("batch_size", ())):
            raise ConfigError("grid: batch_size: give whole numbers")
        self.settings()  # in range?

    def settings(self) -> dict[str, Hyperparameters]:
        """Name → hyper-parameters, the last of the grid varying fastest."""
        found = {}
        for values in product(*self.grid.values()):
            given = dict(zip(self.grid, values, strict=True))
            name = ",".join(f"{key}={value:.12g}" for key, value in given.items()) or "only"
            found[name] = Hyperparameters(**{**_own(self.setup.hyper), **given})  # type: ignore[arg-type]
        return found


def _own(hyper: Hyperparameters) -> dict[str, float]:
    return {name: getattr(hyper, name) for name in HYPER}


ROUNDS = 8
"""Parts of each batch size that each copy is measured with, after one to get warm."""
PATIENCE_S = 600.0
"""A copy that does not get ready within this time is not waited for."""


class IntervalTimes(NamedTuple):
    """Where the seconds of a part went."""

    load_s: float
    step_s: float
    """For each step."""
    evaluate_s: float
    save_s: float


def mean(parts: list[IntervalTimes]) -> IntervalTimes:
    """Not the median: what now and then takes longer does so in a run, too, and a run is a sum of parts."""
    return IntervalTimes(*map(fmean, zip(*parts, strict=True)))


@dataclass(frozen=True, slots=True)
class CopyTimings:
    """What is to be measured."""

    setup: Setup
    sizes: tuple[int, ...]
    """Batch sizes."""
    steps: int
    """Of a part."""
    seed: int
    copies: int

    def measure(self) -> dict[int, list[IntervalTimes]]:
        """Batch size → the parts of all copies."""
        found = self._all()
        return {size: [part for each in found for part in each[size]] for size in self.sizes}

    def _all(self) -> list[dict[int, list[IntervalTimes]]]:
        """What each copy measured. They begin together, and go on until the last has measured enough."""
        context = multiprocessing.get_context("spawn")  # a forked copy of PyTorch's threads would hang
        together: tuple[Any, Any] = (context.Barrier(self.copies), context.Value("i", self.copies))
        lines: list[Connection] = []
        processes: list[BaseProcess] = []
        try:
            for rank in range(self.copies):
                ours, theirs = context.Pipe(duplex=False)
                process: BaseProcess = context.Process(
                    target=_copy, args=(self, rank, *together, theirs), daemon=True
                )
                process.start()
                theirs.close()  # so that a copy that dies is noticed at its end of the line
                processes.append(process)
                lines.append(ours)
            return list(_answers(lines))
        finally:
            for process in processes:
                process.kill()
                process.join()


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


def _copy(asked: CopyTimings, rank: int, ready: Any, measuring: Any, line: Connection) -> None:
    """The life of a copy: it sends what it measured, or why it could not."""
    _be_like_a_slot(rank)
    try:
        with TemporaryDirectory(prefix="rota-beside-") as folder:
            line.send(_measured(asked, Path(folder), ready, measuring))
    except RotaError as error:
        line.send(error)


def _measured(asked: CopyTimings, folder: Path, ready: Any, measuring: Any) -> dict[int, list[IntervalTimes]]:
    parts = {size: TimedNetwork(asked, size, folder / f"{size}.checkpoint") for size in asked.sizes}
    for part in parts.values():
        part.train()
    ready.wait(PATIENCE_S)
    found: dict[int, list[IntervalTimes]] = {size: [] for size in asked.sizes}
    for size in [size for _ in range(ROUNDS) for size in asked.sizes]:
        found[size].append(parts[size].train())
    with measuring.get_lock():
        measuring.value -= 1
    while measuring.value:  # the others are to have company as long as they measure
        for part in parts.values():
            part.train()
    return found


def _be_like_a_slot(rank: int) -> None:
    """On a core of its own, and in a session of its own: on a busy machine Linux is fair between sessions."""
    be_a_worker()
    os.setsid()
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})


class TimedNetwork:
    """A network at a batch size, of which one part after the other is trained."""

    def __init__(self, asked: CopyTimings, size: int, file: Path) -> None:
        hyper = Hyperparameters(batch_size=size)
        setup = replace(asked.setup, hyper=hyper, threads=asked.setup.threads or 1)
        self._trial, self._file, self._steps = NetworkTrial(setup, asked.seed), file, asked.steps
        self._file.write_bytes(self._trial.save())

    def train(self) -> IntervalTimes:
        """From its checkpoint to the next; an error if it fails, since its steps are then not all made."""
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
"""Seconds of a report that are not steps: loading a checkpoint, evaluating, saving a checkpoint."""
SITTINGS = 5
"""In which parts are measured side by side, the first before any setting, the last after all of them: a
machine that others share is faster in one minute than in the next."""


@dataclass(frozen=True, slots=True)
class CurvesRecorder:
    """Records curves into `out/curves`."""

    out: Path
    config: CurvesConfig
    workers: int
    command: str

    @property
    def folder(self) -> Path:
        return self.out / "curves" / self.config.name

    @property
    def partial(self) -> Partial:
        return Partial(self.out, f"curves-{self.config.name}")

    def record(self, progress: RecordingProgress) -> Iterator[Path]:
        """Record what is missing; gives the folder when all of it is there."""
        asked = as_asked(asdict(self.config))
        with self.partial.alone():
            if not recorded(self.folder, asked):
                self._check()
                self.partial.claim(asked)
                self._train(progress)
                self._write(asked)
                yield self.folder
            self.partial.remove()

    def _check(self) -> None:
        """The data must be there, and batches of each size possible, before anything is begun."""
        for trainer in self._trainers():
            step(trainer)

    def _train(self, progress: RecordingProgress) -> None:
        """What is still open; and seconds are measured."""
        open_ = [name for name in self.config.settings() if self.partial.get(name) is None]
        self._measure(progress)
        steps = self.config.steps * self.config.intervals
        sizes = {name: hyper.batch_size for name, hyper in self.config.settings().items()}
        each_s = {name: steps * self._part_seconds()[size].step_s for name, size in sizes.items()}
        progress.expect(sum(each_s[name] for name in open_))
        for group in _groups(open_, SITTINGS - 1 if self.config.copies else 1):
            progress.say(self.config.name)
            work = partial(train, self.config, self.partial)
            for name in run_dag(work, group, lambda _: (), min(self.workers, len(group))):
                progress.advance(each_s[name])
            self._measure(progress)

    def _measure(self, progress: RecordingProgress) -> None:
        """Alone it is done once: turns are short, so that what else the machine does is the same for all."""
        sittings = self.partial.get("sittings") or []
        if not sittings or self.config.copies:
            progress.say(f"{self.config.name}: seconds per step")
            self.partial.put("sittings", [*sittings, self._sitting()])

    def _sitting(self) -> list[tuple[int, list[IntervalTimes]]]:
        """Batch size, and what was measured at it."""
        config = self.config
        if config.copies:
            sizes = tuple(sorted({hyper.batch_size for hyper in config.settings().values()}))
            parts = CopyTimings(config.setup, sizes, config.steps, config.seed, config.copies).measure()
            return list(parts.items())
        paces = measure(list(self._trainers()), device(config.setup.device))
        return [(size, [IntervalTimes(0.0, step_s, 0.0, 0.0)]) for (_, size), step_s in paces.items()]

    def _trainers(self) -> Iterator[Trainer]:
        """One for each batch size."""
        for size in sorted({hyper.batch_size for hyper in self.config.settings().values()}):
            setup = replace(self.config.setup, hyper=Hyperparameters(batch_size=size))
            yield setup.trainer(StoppedClock(), seed=self.config.seed)

    def _part_seconds(self) -> dict[int, IntervalTimes]:
        """Batch size → means over all sittings so far."""
        found: dict[int, list[IntervalTimes]] = {}
        for size, parts in (each for sitting in self.partial.get("sittings") or () for each in sitting):
            found.setdefault(size, []).extend(IntervalTimes(*part) for part in parts)
        return {size: mean(parts) for size, parts in found.items()}

    def _write(self, asked: dict[str, Any]) -> None:
        config = self.config
        where = description(device(config.setup.device), config.setup.threads)
        hyper = tuple(config.grid)
        parts = self._part_seconds()
        settings, failed = {}, {}
        for name, values in config.settings().items():
            seconds = config.steps * parts[values.batch_size].step_s
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
            details=self._details(asked, parts),
        )
        write_curves(self.folder, curves)

    def _details(self, asked: dict[str, Any], parts: dict[int, IntervalTimes]) -> dict[str, Any]:
        prints = {trainer.hyper.batch_size: trainer.structure.fingerprint for trainer in self._trainers()}
        paces = [[prints[size], size, part.step_s] for size, part in parts.items()]
        overhead = mean(list(parts.values()))
        measured = {name: getattr(overhead, name) for name in OVERHEAD}
        found = {"asked": asked, "seconds_per_step": paces}
        return {**found, "overhead": measured} if self.config.copies else found


def _groups(names: list[str], count: int) -> list[list[str]]:
    """At most so many, about equally many in each; none is empty."""
    ends = [len(names) * number // count for number in range(count + 1)]
    return [names[start:end] for start, end in pairwise(ends) if start < end]


def train(config: CurvesConfig, kept: Partial, name: str) -> None:
    """Train one setting and keep how good it became; how long it takes is measured elsewhere.

    A setting that fails ends there: it has fewer intervals.
    """
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
    """`loss` is that of training."""
    return "validation_loss" if name == "loss" else name
