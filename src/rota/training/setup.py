"""The settings that training and recording share: a network, its task and its optimiser."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace

import torch

from rota.core.errors import ConfigError
from rota.core.limits import above, at_least
from rota.core.network import Change
from rota.training.clock import Length, StoppedClock, TrainingClock
from rota.training.data.images import check_seed
from rota.training.device import device
from rota.training.exchange import FromStorage
from rota.training.hyper import Decay, Hyperparameters, OptimizerName
from rota.training.models.registry import build, model
from rota.training.task import Task
from rota.training.tasks import OWN_DATA, check_batch, shared_task, task_of
from rota.training.trainer import Trainer

LIBRARIES = ("torch", "torchvision", "numpy")
"""Libraries that the results of training depend on."""
MOST = 1_000_000
"""Number of trials, or jobs, whose seeds differ for each seed of a run."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A network, its task and its optimiser."""

    model: str = "convnet2"
    """Model of the registry: convnet2, resnet18, transformer, a2c …"""
    data: str | None = None
    """Data set for models that classify images: digits (the default), fashion-mnist, cifar10 or cifar100."""
    size: int | None = None
    """Width and height of the images in pixels; by default as published."""
    validation: int | None = None
    """Number of training images to validate with; by default a tenth."""
    test: int | None = None
    """Number of test images to test with, the same for every seed; by default all."""
    generated: bool = False
    """Whether random images in the shape of the data set take its place, to try a configuration out."""
    augment: bool = False
    """Whether images are shifted and mirrored at random."""
    optimizer: OptimizerName = "adam"
    hyper: Hyperparameters = field(default_factory=Hyperparameters)
    decay: Decay = field(default_factory=Decay)
    device: str = "auto"
    """Device to train on; `auto` is the first GPU, or else the CPU."""
    threads: int | None = None
    """Number of CPU threads; by default one per core."""
    storage_mb_s: float | None = None
    """Megabytes per second of a slot's storage; by default batches do not wait for it."""

    def __post_init__(self) -> None:
        check_batch(self.model, self.hyper.batch_size)
        above(0, storage_mb_s=self.storage_mb_s)
        at_least(1, threads=self.threads)

    @property
    def learns_from(self) -> str:
        """The name of the data set, also if it is the default."""
        return self.data or OWN_DATA.get(model(self.model).task, "digits")

    @property
    def at_once(self) -> "Setup":
        """The same setup without waiting for storage."""
        return replace(self, storage_mb_s=None)

    def task(self, seed: int) -> Task:
        """Return the task; a supervised one is made once and shared."""
        check_seed(seed)
        made = shared_task if model(self.model).task in ("classification", "language") else task_of
        task = made(
            self.model, self.data, device=device(self.device), seed=seed,
            size=self.size, augment=self.augment, validation=self.validation, test=self.test,
            generated=self.generated,
        )  # fmt: skip
        return task if self.storage_mb_s is None else FromStorage(task, self.storage_mb_s)

    def trainer(
        self, clock: TrainingClock, *, seed: int, length: Length | None = None, weights: int | None = None
    ) -> Trainer:
        """Return a new network that is ready to train; `weights` may be a seed of its own."""
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
    """Raise unless the changes differ and `nothing` is among them."""
    changes = [Change.parse(text) for text in actions]
    if "nothing" not in actions or len(set(changes)) < len(changes):
        raise ConfigError("actions must be different from each other, and one of them 'nothing'")


def check_changes(
    setup: Setup, sequences: Iterable[Iterable[Change]], clock: TrainingClock | None = None
) -> None:
    """Raise unless a network can be changed in each of these ways.

    If a clock is given, it must know the step time of what the network becomes. The clock and the global
    random generators are left as they were.
    """
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        for changes in sequences:
            trainer = setup.at_once.trainer(deepcopy(clock) or StoppedClock(), seed=0)
            for change in changes:
                trainer.change(change)


def own_seed(seed: int, number: int) -> int:
    """Return the seed for the weights of one of many trials or jobs of a run."""
    return seed * MOST + number
