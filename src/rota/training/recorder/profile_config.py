"""The settings of a `[[profiles]]` table in `config/record`."""

from dataclasses import dataclass, field
from typing import NamedTuple

from rota.core.errors import ConfigError, unknown
from rota.core.limits import above, at_least
from rota.training.data.images import check_seed
from rota.training.hyper import Hyperparameters, OptimizerName
from rota.training.models.registry import MODELS, model
from rota.training.recorder.partial import check_name
from rota.training.setup import Setup

ALL = "all"


class ProfileCell(NamedTuple):
    """One measurement: a model, a batch size and a gang size."""

    model: str
    batch_size: int
    """Examples per iteration, over the whole gang."""
    gang: int

    @property
    def name(self) -> str:
        """The name of the cell in files: model, batch size and gang size."""
        return f"{self.model}-{self.batch_size}-gang{self.gang}"


@dataclass(frozen=True, slots=True)
class ProfilesConfig:
    """Profiles of several models, batch sizes and gang sizes."""

    name: str = "profiles"
    """Name of the recording."""
    models: tuple[str, ...] = (ALL,)
    """Models of the registry; by default `all` of them."""
    batch_sizes: tuple[int, ...] = (16, 32, 64, 128)
    """Examples per iteration, over the whole gang."""
    batch_sizes_of: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Model → its batch sizes, instead of `batch_sizes`."""
    gangs: tuple[int, ...] = (1, 2)
    """Gang sizes: processes that share a batch and exchange gradients, on GPUs each with its own."""
    data: str | None = None
    """Data set for models that classify images: digits (the default), fashion-mnist, cifar10 or cifar100."""
    size: int | None = 32
    """Width and height of the images in pixels."""
    augment: bool = False
    """Whether images are shifted and mirrored at random."""
    optimizer: OptimizerName = "sgd"
    iterations: int = 7
    """Number of measured iterations, of which the median counts."""
    warm: int = 2
    """Number of iterations to warm up."""
    limit_s: float = 3.0
    """Seconds after which measuring ends, once three iterations were measured."""
    seed: int = 0
    device: str = "auto"
    """Device to train on; `auto` is the first GPU, or else the CPU."""
    threads: int = 1
    """Number of CPU threads of each member of a gang."""

    def __post_init__(self) -> None:
        check_name(self.name)
        check_seed(self.seed)
        at_least(1, iterations=self.iterations, threads=self.threads)
        at_least(0, warm=self.warm)
        above(0, finite=True, limit_s=self.limit_s)
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
        """The names of the models."""
        return tuple(MODELS) if self.models == (ALL,) else self.models

    def cells(self) -> list[ProfileCell]:
        """Return all cells to measure, smaller gangs first."""
        return [
            ProfileCell(name, size, gang)
            for gang in sorted(self.gangs)
            for name in self.names
            for size in self.batch_sizes_of.get(name, self.batch_sizes)
        ]

    def setup(self, cell: ProfileCell) -> Setup:
        """Return the setup of one member of the gang."""
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
