"""Data sets as torchvision keeps them in a folder, and its download of them."""

from pathlib import Path
from typing import Any

import numpy as np

from rota.core.errors import InputError
from rota.training.data.catalogue import DataSet
from rota.training.data.decoded import Decoded, checked, everywhere

CLASSES = {"fashion-mnist": "FashionMNIST", "cifar10": "CIFAR10", "cifar100": "CIFAR100"}
"""What torchvision calls them."""


def read_cifar(folder: Path, dataset: DataSet) -> Decoded:
    """CIFAR from the folder of its files; torchvision compares their checksums with the published ones."""
    again = f"delete the folder, and get the data set again: bash scripts/data.sh {dataset.name}"
    try:
        train, test = (_of(dataset)(folder.parent, train=train) for train in (True, False))
    except (RuntimeError, OSError) as error:
        raise InputError(f"{folder}: damaged ({_sentence(error)}); {again}") from None
    return checked(Decoded(*_arrays(train), *_arrays(test)), dataset, everywhere(folder), again)


def download(dataset: DataSet, root: Path) -> None:
    """Fetch the files from where torchvision gets them."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        _of(dataset)(root, download=True)
    except (OSError, RuntimeError) as error:
        reason = f"cannot be downloaded into {root} ({_sentence(error)})"
        raise InputError(f"{dataset.name}: {reason}; see that the network and the folder allow it") from None


def _of(dataset: DataSet) -> Any:
    from rota.training.torchvision import torchvision  # slow to import, and mostly not needed

    return getattr(torchvision.datasets, CLASSES[dataset.name])


def _arrays(found: Any) -> tuple[Any, Any]:
    """Images in rota's order of dimensions, and labels."""
    images = np.ascontiguousarray(found.data.transpose(0, 3, 1, 2))
    return images, np.array(found.targets, dtype=np.int64)


def _sentence(error: Exception) -> str:
    return str(error).partition(".")[0].strip() or type(error).__name__
