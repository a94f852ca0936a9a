"""Which network learns what, and how: the settings that training and recording share."""

import os
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import lru_cache

import torch

from rota.core.errors import ConfigError
from rota.core.network import Change
from rota.training.clock import Length, StoppedClock, TrainingClock
from rota.training.data.images import check_seed
from rota.training.device import device
from rota.training.exchange import FromStorage
from rota.training.hyper import Decay, Hyperparameters, OptimizerName
from rota.training.models.registry import build, model
from rota.training.task import Task
from rota.training.tasks import OWN_DATA, check_batch, task_of
from rota.training.trainer import Trainer

LIBRARIES = ("torch", "torchvision", "numpy")
"""Those that what is trained depends on."""
MOST = 1_000_000
"""Trials, or jobs, that one seed is enough for."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A network, its task and its optimiser."""

    model: str = "convnet2"
    """A model of the registry: convnet2, resnet18, transformer, a2c …"""
    data: str | None = None
    """digits, fashion-mnist, cifar10 or cifar100, for models that classify images; digits if not said."""
    size: int | None = None
    """Make the images so many pixels wide and high."""
    validation: int | None = None
    """So many training images are put aside to validate with; a tenth if not said."""
    augment: bool = False
    """Shift and mirror the images at random."""
    optimizer: OptimizerName = "adam"
    hyper: Hyperparameters = field(default_factory=Hyperparameters)
    decay: Decay = field(default_factory=Decay)
    device: str = "auto"
    """`auto` is the first GPU, or else the CPU."""
    threads: int | None = None
    """How many threads compute on the CPU; one per core if not said."""
    storage_mb_s: float | None = None
    """Batches come from storage that gives a slot so many megabytes a second; as fast as they can be made if
    not said."""

    def __post_init__(self) -> None:
        check_batch(self.model, self.hyper.batch_size)
        if self.storage_mb_s is not None and not self.storage_mb_s > 0.0:
            raise ConfigError(f"storage_mb_s is {self.storage_mb_s:g}; it must be above 0")
        if self.threads is not None and self.threads < 1:
            raise ConfigError(f"threads is {self.threads}; it must be at least 1")

    @property
    def learns_from(self) -> str:
        """The name of its data, also if that was not said."""
        return self.data or OWN_DATA.get(model(self.model).task, "digits")

    @property
    def at_once(self) -> "Setup":
        """The same without waiting for storage: for those who know how long it takes, or need not."""
        return replace(self, storage_mb_s=None)

    def task(self, seed: int) -> Task:
        """Where batches come from and what the loss is. A supervised task is made once and shared."""
        check_seed(seed)
        made = _shared_task if model(self.model).task in ("classification", "language") else _task
        task = made(self.model, self.data, self.device, seed, self.size, self.augment, self.validation)
        return task if self.storage_mb_s is None else FromStorage(task, self.storage_mb_s)

    def trainer(
        self, clock: TrainingClock, *, seed: int, length: Length | None = None, weights: int | None = None
    ) -> Trainer:
        """A new network, ready to train. Its weights may have a seed of their own."""
        drawn = seed if weights is None else weights
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        task = self.task(seed)
        network = build(self.model, task.inputs, task.outputs, drawn).to(device(self.device))
        return Trainer(
            network,
            task,
            clock,
            self.hyper,
            optimizer_name=self.optimizer,
            decay=self.decay,
            length=length,
            seed=drawn,
        )


def check_actions(actions: Sequence[str]) -> None:
    """Whether these are changes that one may be chosen from at each decision."""
    changes = [Change.parse(text) for text in actions]
    if "nothing" not in actions or len(set(changes)) < len(changes):
        raise ConfigError("actions must be different from each other, and one of them 'nothing'")


def check_changes(
    setup: Setup, sequences: Iterable[Iterable[Change]], clock: TrainingClock | None = None
) -> None:
    """Make sure, before anything is begun, that a network can be changed in each of these ways.

    If a clock is given, it must know the pace of what the network becomes; it is left as it was. A trainer
    seeds the global generators; they are as they were afterwards, too.
    """
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        for changes in sequences:
            trainer = setup.at_once.trainer(deepcopy(clock) or StoppedClock(), seed=0)
            for change in changes:
                trainer.change(change)


def own_seed(seed: int, number: int) -> int:
    """Of the weights of one of many trials or jobs that share the seed of a run."""
    return seed * MOST + number


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _task(
    name: str,
    data: str | None,
    where: str,
    seed: int,
    size: int | None,
    augment: bool,
    validation: int | None,
) -> Task:
    return task_of(
        name, data, device=device(where), seed=seed, size=size, augment=augment, validation=validation
    )


_shared_task = lru_cache(maxsize=2)(_task)
