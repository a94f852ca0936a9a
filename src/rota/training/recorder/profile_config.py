"""What a `[[profiles]]` table in `config/record` may say."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.core.errors import ConfigError, unknown
from rota.training.data.images import check_seed
from rota.training.hyper import Hyperparameters, OptimizerName
from rota.training.models.registry import MODELS, model
from rota.training.recorder.partial import check_name
from rota.training.setup import Setup

ALL = "all"


class ProfileCell(NamedTuple):
    """What is measured at once."""

    model: str
    batch_size: int
    """Of the whole gang."""
    gang: int

    @property
    def name(self) -> str:
        return f"{self.model}-{self.batch_size}-gang{self.gang}"


@dataclass(frozen=True, slots=True)
class ProfilesConfig:
    """Each of some models at each of some batch sizes, by gangs of each of some sizes."""

    name: str = "profiles"
    """Of the recording."""
    models: tuple[str, ...] = (ALL,)
    """Models of the registry; `all` of them if not said."""
    batch_sizes: tuple[int, ...] = (16, 32, 64, 128)
    """Examples per iteration, over the whole gang."""
    batch_sizes_of: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Model → its batch sizes, where they are to be others."""
    gangs: tuple[int, ...] = (1, 2)
    """How many processes share a batch and exchange gradients; on GPUs each has one of its own."""
    data: str | None = None
    """digits, fashion-mnist, cifar10 or cifar100, for models that classify images; digits if not said."""
    size: int | None = 32
    """Make the images so many pixels wide and high."""
    augment: bool = False
    """Shift and mirror the images at random."""
    optimizer: OptimizerName = "sgd"
    iterations: int = 7
    """So many are measured; the median counts."""
    warm: int = 2
    """So many come before, and are not measured."""
    limit_s: float = 3.0
    """Stop measuring after so long, once three iterations were measured."""
    seed: int = 0
    device: str = "auto"
    """`auto` is the first GPU, or else the CPU."""
    threads: int = 1
    """How many threads each member of a gang computes with on the CPU."""

    def __post_init__(self) -> None:
        check_name(self.name)
        check_seed(self.seed)
        for name, least in (("iterations", 1), ("warm", 0), ("threads", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        if not 0 < self.limit_s < math.inf:
            raise ConfigError(f"limit_s is {self.limit_s:g}; it must be above 0 and finite")
        self._check_models()
        _check_counts("gangs", self.gangs)
        for name, sizes in {"batch_sizes": self.batch_sizes, **self.batch_sizes_of}.items():
            _check_counts(name, sizes)
            self._check_shares(name, sizes)

    def _check_models(self) -> None:
        if not self.models or len(set(self.models)) < len(self.models):
            raise ConfigError("models: give one or more, each of them once")
        if ALL in self.models and len(self.models) > 1:
            raise ConfigError(f"models: give {ALL!r} or names, not both")
        for name in self.names:
            model(name)  # known?
        for name in self.batch_sizes_of:
            if name not in self.names:
                raise ConfigError(f"batch_sizes_of: {unknown('model', name, self.names)}")

    def _check_shares(self, name: str, sizes: tuple[int, ...]) -> None:
        for size in sizes:
            for gang in self.gangs:
                if size % gang:
                    raise ConfigError(f"{name}: {size} cannot be shared equally by a gang of {gang}")

    @property
    def names(self) -> tuple[str, ...]:
        """The models."""
        return tuple(MODELS) if self.models == (ALL,) else self.models

    def cells(self) -> list[ProfileCell]:
        """All that is to be measured, smaller gangs first."""
        return [
            ProfileCell(name, size, gang)
            for gang in sorted(self.gangs)
            for name in self.names
            for size in self.batch_sizes_of.get(name, self.batch_sizes)
        ]

    def setup(self, cell: ProfileCell) -> Setup:
        """The network, its task and its optimiser as one member of the gang has them."""
        takes_images = model(cell.model).task == "classification"
        return Setup(
            model=cell.model,
            data=self.data if takes_images else None,
            size=self.size if takes_images else None,
            augment=self.augment and takes_images,
            optimizer=self.optimizer,
            hyper=Hyperparameters(batch_size=cell.batch_size // cell.gang),
            device=self.device,
            threads=self.threads,
        )


def _check_counts(name: str, counts: tuple[int, ...]) -> None:
    if not counts or len(set(counts)) < len(counts) or min(counts) < 1:
        raise ConfigError(f"{name}: give one or more numbers from 1 on, each of them once")
