"""Measured step times of every structure that a network can grow into."""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from statistics import median

import torch

from rota.core.errors import InputError
from rota.core.network import Change
from rota.training.clock import StepKey, StoppedClock
from rota.training.device import device, synchronise
from rota.training.hyper import Hyperparameters
from rota.training.setup import Setup
from rota.training.trainer import Trainer

ROUNDS = 12
STEPS_PER_ROUND = 4
WARM_STEPS = 2


def grown(setup: Setup, actions: Iterable[Change], decisions: int, seed: int) -> Iterator[Trainer]:
    """Yield a trainer for each structure that so many decisions can lead to, the unchanged one first."""
    seen = set()
    for changes in product(sorted(actions, key=lambda change: change.grows), repeat=decisions):
        trainer = setup.trainer(StoppedClock(), seed=seed)
        for change in changes:
            trainer.change(change)
        if trainer.structure.fingerprint not in seen:
            seen.add(trainer.structure.fingerprint)
            yield trainer


def measure(
    trainers: list[Trainer], where: torch.device, clock: Callable[[], float] = time.perf_counter
) -> dict[StepKey, float]:
    """Return the median step time of each trainer, measured in turns.

    With `time.process_time` as the clock, waiting for a busy processor does not count; what others do to its
    caches still does.
    """
    turns = list(range(len(trainers)))
    order = random.Random(0)
    found: list[list[float]] = [[] for _ in trainers]
    for _ in range(ROUNDS):
        order.shuffle(turns)
        for turn in turns:
            timed = _timed(trainers[turn], WARM_STEPS + STEPS_PER_ROUND, where, clock)
            found[turn] += timed[WARM_STEPS:]
    return {
        (trainer.structure.fingerprint, trainer.hyper.batch_size): median(seconds)
        for trainer, seconds in zip(trainers, found, strict=True)
    }


def structure_step_times(
    setup: Setup, actions: Iterable[Change], decisions: int, seed: int = 0
) -> dict[StepKey, float]:
    """Return the measured step time of every reachable structure on this machine.

    It uses the default learning rate, at which training does not fail; step times do not depend on it.
    """
    usual = replace(setup, hyper=Hyperparameters(batch_size=setup.hyper.batch_size))
    return measure(list(grown(usual, actions, decisions, seed)), device(setup.device))


def _timed(trainer: Trainer, steps: int, where: torch.device, clock: Callable[[], float]) -> list[float]:
    seconds = []
    for _ in range(steps):
        synchronise(where)
        began_s = clock()
        step(trainer)
        synchronise(where)
        seconds.append(clock() - began_s)
    return seconds


def step(trainer: Trainer) -> None:
    """Make one step; raise if it fails, as it could not be timed."""
    epoch = trainer.epoch(until_steps=trainer.progress.steps + 1, evaluate=False)
    if epoch.ended == "failed":
        raise InputError(f"seconds per step cannot be measured: {epoch.failure}")
