"""Loading of a data set by name."""

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import torch

from rota.core.arrays import Array
from rota.core.errors import ConfigError, InputError, unknown
from rota.training.data.catalogue import (
    CATALOGUE,
    DataSet,
    Decoded,
    cache_file,
    data_folder,
    generate,
    read_cache,
    write_cache,
)
from rota.training.data.images import Images, Splits, resized, stratified
from rota.training.data.sources import TEST_SEED, decode, is_somewhere, read_digits

NAMES = tuple(CATALOGUE)
GENERATED = 1000
"""Number of generated images to train with."""


def load(
    name: str,
    *,
    root: Path | None = None,
    size: int | None = None,
    validation: int | None = None,
    test: int | None = None,
    seed: int = 0,
    download: bool = False,
    generated: bool = False,
) -> Splits:
    """Return the splits of a data set.

    `size` makes the images size × size. `validation` images (by default a tenth) are drawn from the training
    images by the seed, the same share of every class; `test` keeps so many of the test images, the same for
    every seed. Only `download` uses the network. With `generated`, random images take its place.
    """
    if name not in CATALOGUE:
        raise ConfigError(unknown("data set", name, NAMES))
    dataset = CATALOGUE[name]
    if generated:
        dataset = replace(dataset, train=GENERATED, test=GENERATED // 5)
    count = dataset.train // 10 if validation is None else validation
    if not 0 < count < dataset.train:
        raise ConfigError(
            f"validation {count}: give 1 to {dataset.train - 1}, of the training images of {name}"
        )
    if size is not None and size < 1:
        raise ConfigError(f"size {size}: give the pixels along one side of an image, 1 or more")
    if test is not None and not 0 < test <= dataset.test:
        raise ConfigError(f"test {test}: give 1 to {dataset.test}, of the test images of {name}")
    folder = None if generated else data_folder(root)
    train, tested = _images(dataset, folder, size, download)
    if test is not None and test < dataset.test:
        tested = tested.take(torch.from_numpy(stratified(tested.labels.numpy(), test, TEST_SEED)[1]))
    rest, apart = stratified(train.labels.numpy(), count, seed)
    kept, validated = train.take(torch.from_numpy(rest)), train.take(torch.from_numpy(apart))
    return Splits(name, dataset.classes, kept, validated, tested, dataset.mirrored)


def is_here(name: str, root: Path | None = None) -> bool:
    """Return whether a data set is available without the network; it is not read."""
    dataset = CATALOGUE[name]
    if name == "digits":
        return find_spec("sklearn") is not None
    folder = data_folder(root)
    return cache_file(folder, dataset).exists() or is_somewhere(dataset, folder)


@lru_cache(maxsize=4)
def _images(dataset: DataSet, root: Path | None, size: int | None, download: bool) -> tuple[Images, Images]:
    """Return training and test images, generated ones without a folder; the last four stay in memory."""
    decoded = generate(dataset) if root is None else _decoded(dataset, root, download)
    train = _sized(decoded.train_images, decoded.train_labels, size)
    return train, _sized(decoded.test_images, decoded.test_labels, size)


def _sized(images: Array, labels: Array, size: int | None) -> Images:
    pixels = torch.from_numpy(images)
    return Images(pixels if size is None else resized(pixels, size), torch.from_numpy(labels))


def _decoded(dataset: DataSet, root: Path, download: bool) -> Decoded:
    """Return a data set as published: from the cache, or from the original files, which fills the cache."""
    if dataset.name == "digits":
        return read_digits()
    file = cache_file(root, dataset)
    if file.exists():
        return read_cache(file, dataset)
    decoded = decode(dataset, root, download=download)
    with suppress(InputError):  # a folder that cannot be written makes the next start slower, not wrong
        write_cache(file, decoded)
    return decoded
