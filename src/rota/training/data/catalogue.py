"""The catalogue of data sets, the folder they are kept in, and the cache of decoded ones."""

import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from rota.core.arrays import Array
from rota.core.errors import InputError
from rota.core.files import atomic_write

DEBIAN = Path("/usr/share/datasets")
"""Folder in which Debian's packages put data sets."""


def data_folder(root: Path | None = None) -> Path:
    """Return the folder given, or else ROTA_DATA, or else one in the user's cache."""
    if root is not None:
        return Path(root)
    named = os.environ.get("ROTA_DATA")
    return Path(named) if named else Path.home() / ".cache" / "rota" / "data"


FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal
shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""


@dataclass(frozen=True)
class DataSet:
    """The classes, shape and size of a complete data set."""

    name: str
    classes: tuple[str, ...]
    shape: tuple[int, int, int]
    """Channels, height and width of an image."""
    train: int
    """Number of training images, including the later validation split."""
    test: int
    mirrored: bool = True
    """Whether an image and its mirror image show the same thing."""


CATALOGUE = {
    found.name: found
    for found in (
        DataSet("digits", tuple("0123456789"), (1, 8, 8), 1437, 360, mirrored=False),
        DataSet("fashion-mnist", FASHION, (1, 28, 28), 60_000, 10_000),
        DataSet("cifar10", tuple(CIFAR10.split()), (3, 32, 32), 50_000, 10_000),
        DataSet("cifar100", tuple(CIFAR100.split()), (3, 32, 32), 50_000, 10_000),
    )
}


@dataclass(frozen=True, eq=False)
class Decoded:
    """A decoded data set.

    Images are bytes, images × channels × height × width; labels are 64-bit indices of classes.
    """

    train_images: Array
    train_labels: Array
    test_images: Array
    test_labels: Array

    def arrays(self) -> dict[str, Array]:
        """Return the four arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def checked(decoded: Decoded, dataset: DataSet, files: Mapping[str, Path], again: str) -> Decoded:
    """Return a decoded data set if it is complete; else raise.

    `files` has the file or folder that each array came from; `again` says how to get the data set again.
    """
    for split, count in (("train", dataset.train), ("test", dataset.test)):
        for kind, wrong in (("images", _wrong_images), ("labels", _wrong_labels)):
            name = f"{split}_{kind}"
            found = wrong(getattr(decoded, name), count, dataset)
            if found:
                raise InputError(f"{files[name]}: {split} {kind} are {found}; {again}")
    return decoded


def everywhere(place: Path) -> dict[str, Path]:
    """Return one origin for all arrays."""
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


def generate(dataset: DataSet) -> Decoded:
    """Return random images in the shape of a data set: a pattern of each class, and noise."""
    random, classes = np.random.default_rng(0), len(dataset.classes)
    patterns = random.integers(0, 128, (classes, *dataset.shape), np.uint8)

    def split(count: int) -> tuple[Array, Array]:
        labels = np.arange(count, dtype=np.int64) % classes
        return patterns[labels] + random.integers(0, 128, (count, *dataset.shape), np.uint8), labels

    return Decoded(*split(dataset.train), *split(dataset.test))


AGAIN = "delete it, and it is made again from the original files"


def cache_file(root: Path, dataset: DataSet) -> Path:
    """Return the file that caches a decoded data set."""
    return root / f"{dataset.name}.npz"


def read_cache(file: Path, dataset: DataSet) -> Decoded:
    """Return what `write_cache` wrote, with the checksum of every array checked."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            decoded = Decoded(**{name: arrays[name] for name in arrays.files})
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error}); {AGAIN}") from None
    except (ValueError, TypeError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error):
        raise InputError(f"{file}: damaged; {AGAIN}") from None
    return checked(decoded, dataset, everywhere(file), AGAIN)


def write_cache(file: Path, decoded: Decoded) -> None:
    """Write a decoded data set atomically."""
    with atomic_write(file) as stream:
        np.savez(stream, allow_pickle=False, **decoded.arrays())
