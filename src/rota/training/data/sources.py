"""Where the original files of a data set may be, and what to do when they are nowhere."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rota.core.errors import InputError
from rota.training.data import folder, published
from rota.training.data.catalogue import DataSet
from rota.training.data.decoded import Decoded
from rota.training.data.idx import has_idx, read_idx_folder
from rota.training.data.npm import has_package, read_package
from rota.training.data.npm import places as package_places


@dataclass(frozen=True)
class Source:
    """A place where a data set may be."""

    place: Path
    has: Callable[[Path], bool]
    read: Callable[[Path, DataSet], Decoded]


def decode(dataset: DataSet, root: Path, *, download: bool) -> Decoded:
    """The data set from the first place that has it; from the network only if none has, and if asked for."""
    found = _found(dataset, root)
    if found is None and download:
        published.download(dataset, root)
        found = _found(dataset, root)
    if found is None:
        raise InputError(_missing(dataset, root))
    return found.read(found.place, dataset)


def is_somewhere(dataset: DataSet, root: Path) -> bool:
    """Whether there are original files of it, whole or not."""
    return _found(dataset, root) is not None


def _found(dataset: DataSet, root: Path) -> Source | None:
    return next((source for source in _sources(dataset, root) if source.has(source.place)), None)


def _sources(dataset: DataSet, root: Path) -> list[Source]:
    """Every place, the cheapest to read first."""
    match dataset.name:
        case "cifar10":
            packages = [Source(place, has_package, read_package) for place in package_places(root)]
            return [*packages, Source(root / "cifar-10-batches-py", Path.is_dir, published.read_cifar)]
        case "cifar100":
            return [Source(root / "cifar-100-python", Path.is_dir, published.read_cifar)]
        case _:
            places = (root / dataset.name, folder.DEBIAN / dataset.name, root / "FashionMNIST" / "raw")
            return [Source(place, has_idx, read_idx_folder) for place in places]


def _missing(dataset: DataSet, root: Path) -> str:
    places = ", ".join(str(source.place) for source in _sources(dataset, root))
    debian = ", or apt-get install dataset-fashion-mnist" if dataset.name == "fashion-mnist" else ""
    return (
        f"{dataset.name}: not here; looked for {root / dataset.name}.npz, {places}. "
        f"Get it with: bash scripts/data.sh {dataset.name}{debian}, or --download (over the network, by "
        "torchvision), or set ROTA_DATA to the folder that has it"
    )
