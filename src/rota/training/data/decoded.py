"""A data set as arrays, as it was published, and the check that it is whole."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from rota.core.arrays import Array
from rota.core.errors import InputError
from rota.training.data.catalogue import DataSet


@dataclass(frozen=True, eq=False)
class Decoded:
    """Images are bytes, images × channels × height × width; labels are 64-bit indices of classes."""

    train_images: Array
    train_labels: Array
    test_images: Array
    test_labels: Array

    def arrays(self) -> dict[str, Array]:
        """The four arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def checked(decoded: Decoded, dataset: DataSet, files: Mapping[str, Path], again: str) -> Decoded:
    """What was decoded, if it is all of that data set.

    `files` has the file or folder that each array came from, and `again` says what to do if it is not whole.
    """
    for split, count in (("train", dataset.train), ("test", dataset.test)):
        for kind, wrong in (("images", _wrong_images), ("labels", _wrong_labels)):
            name = f"{split}_{kind}"
            found = wrong(getattr(decoded, name), count, dataset)
            if found:
                raise InputError(f"{files[name]}: {split} {kind} are {found}; {again}")
    return decoded


def everywhere(place: Path) -> dict[str, Path]:
    """All arrays come from one place."""
    return {field.name: place for field in fields(Decoded)}


def _wrong_images(images: Array, count: int, dataset: DataSet) -> str:
    whole = (count, *dataset.shape)
    if images.dtype == np.uint8 and images.shape == whole:
        return ""
    return f"{images.dtype} {_times(images.shape)}, not uint8 {_times(whole)}"


def _wrong_labels(labels: Array, count: int, dataset: DataSet) -> str:
    if labels.dtype != np.int64 or labels.shape != (count,):
        return f"{labels.dtype} {_times(labels.shape)}, not int64 {count}"
    last = len(dataset.classes) - 1
    if labels.min() < 0 or labels.max() > last:
        return f"{labels.min()} to {labels.max()}, not 0 to {last}"
    return ""


def _times(shape: tuple[int, ...]) -> str:
    return "×".join(str(length) for length in shape)
