"""What a part of a trial takes while others train beside it: its steps, and what comes with a report.

A population trains on several slots at once, and they slow each other down. So copies are trained side by
side, each on a core of its own, as slots do it: a checkpoint is taken up, so many steps are made, the network
is evaluated, its checkpoint is kept.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rota.core.errors import InputError, RotaError
from rota.core.workers import LOST, WorkerLost, be_a_worker
from rota.training.hyper import Hyperparameters
from rota.training.setup import Setup
from rota.training.trial import NetworkTrial

ROUNDS = 8
"""Parts of each batch size that each copy is measured with, after one to get warm."""
PATIENCE_S = 600.0
"""A copy that does not get ready within this time is not waited for."""


class PartSeconds(NamedTuple):
    """Where the seconds of a part went."""

    load_s: float
    step_s: float
    """For each step."""
    evaluate_s: float
    save_s: float


def mean(parts: list[PartSeconds]) -> PartSeconds:
    """Not the median: what now and then takes longer does so in a run, too, and a run is a sum of parts."""
    return PartSeconds(*map(fmean, zip(*parts, strict=True)))


@dataclass(frozen=True, slots=True)
class Beside:
    """What is to be measured."""

    setup: Setup
    sizes: tuple[int, ...]
    """Batch sizes."""
    steps: int
    """Of a part."""
    seed: int
    copies: int

    def measure(self) -> dict[int, list[PartSeconds]]:
        """Batch size → the parts of all copies."""
        found = self._all()
        return {size: [part for each in found for part in each[size]] for size in self.sizes}

    def _all(self) -> list[dict[int, list[PartSeconds]]]:
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


def _answers(lines: list[Connection]) -> Iterator[dict[int, list[PartSeconds]]]:
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


def _copy(asked: Beside, rank: int, ready: Any, measuring: Any, line: Connection) -> None:
    """The life of a copy: it sends what it measured, or why it could not."""
    _be_like_a_slot(rank)
    try:
        with TemporaryDirectory(prefix="rota-beside-") as folder:
            line.send(_measured(asked, Path(folder), ready, measuring))
    except RotaError as error:
        line.send(error)


def _measured(asked: Beside, folder: Path, ready: Any, measuring: Any) -> dict[int, list[PartSeconds]]:
    parts = {size: Part(asked, size, folder / f"{size}.checkpoint") for size in asked.sizes}
    for part in parts.values():
        part.train()
    ready.wait(PATIENCE_S)
    found: dict[int, list[PartSeconds]] = {size: [] for size in asked.sizes}
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


class Part:
    """A network at a batch size, of which one part after the other is trained."""

    def __init__(self, asked: Beside, size: int, file: Path) -> None:
        hyper = Hyperparameters(batch_size=size)
        setup = replace(asked.setup, hyper=hyper, threads=asked.setup.threads or 1)
        self._trial, self._file, self._steps = NetworkTrial(setup, asked.seed), file, asked.steps
        self._file.write_bytes(self._trial.save())

    def train(self) -> PartSeconds:
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
        return PartSeconds(load_s, train_s / self._steps, evaluate_s, save_s)
