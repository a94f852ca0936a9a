"""Images: splits, augmentation, normalisation, resizing, and the endless stream of training examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor
from torch.nn.functional import interpolate

from rota.core.arrays import Array
from rota.core.errors import ConfigError


def check_seed(seed: int) -> None:
    """Raise if the seed is negative."""
    if seed < 0:
        raise ConfigError(f"seed {seed}: give a whole number, 0 or more")


def chance(seed: int, *purpose: int) -> np.random.Generator:
    """Return a random generator of a seed and a purpose: one or more numbers that tell its uses apart.

    Trailing zeros do not: `chance(seed)` is `chance(seed, 0)`.
    """
    check_seed(seed)
    return np.random.default_rng((seed, *purpose))


@dataclass(frozen=True, eq=False)
class Images:
    """Images and their labels, in the same order."""

    images: Tensor
    """Bytes: images × channels × height × width."""
    labels: Tensor
    """The class of each image, as an index."""

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Tensor) -> "Images":
        """Return the images at these indices, in that order."""
        return Images(self.images.index_select(0, indices), self.labels.index_select(0, indices))


@dataclass(frozen=True, eq=False)
class Splits:
    """A data set in three splits without common images."""

    name: str
    classes: tuple[str, ...]
    train: Images
    validation: Images
    """Drawn from the training images; the test images are those that the authors of the data set chose."""
    test: Images
    mirrored: bool = True
    """Whether an image and its mirror image show the same thing."""


def stratified(labels: Array, count: int, seed: int) -> tuple[Array, Array]:
    """Return the indices that stay and `count` drawn ones, both ascending, the same share of every class."""
    random = chance(seed)
    classes, sizes = np.unique(labels, return_counts=True)
    drawn = [
        random.choice(np.flatnonzero(labels == found), share, replace=False)
        for found, share in zip(classes, _shares(sizes, count), strict=True)
    ]
    apart = np.zeros(len(labels), dtype=bool)
    apart[np.concatenate(drawn)] = True
    return np.flatnonzero(~apart), np.flatnonzero(apart)


def _shares(sizes: Array, count: int) -> Array:
    """Divide `count` among the classes by size; rounding favours the largest remainders."""
    whole, remainder = np.divmod(sizes * count, sizes.sum())
    missing = count - whole.sum()
    whole[np.argsort(-remainder, kind="stable")[:missing]] += 1
    return np.asarray(whole)


CHUNK = 512
"""Number of images counted at once; they fit into the processor's cache."""


class Normal:
    """Normalises images to mean 0 and standard deviation 1 over the images it was made from."""

    def __init__(self, images: Tensor, where: torch.device) -> None:
        mean, deviation = statistics(images)
        contrast = torch.where(deviation > 0, deviation, 1.0)  # a channel of one shade becomes 0
        self._mean = mean.float().view(1, -1, 1, 1).to(where)
        self._scale = contrast.reciprocal().float().view(1, -1, 1, 1).to(where)
        self._where = where

    def __call__(self, pixels: Tensor) -> Tensor:
        """Return these images normalised on the device; they are sent as bytes, a quarter of the size."""
        return pixels.to(self._where).float().sub_(self._mean).mul_(self._scale)


def statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of every channel, from counts of byte values."""
    channels = images.shape[1]
    counts = torch.zeros(channels, 256, dtype=torch.int64)
    for start in range(0, len(images), CHUNK):
        for channel in range(channels):
            pixels = images[start : start + CHUNK, channel].flatten()
            counts[channel] += torch.bincount(pixels, minlength=256)
    shares = counts.double() / counts.sum(1, keepdim=True)
    shades = torch.arange(256, dtype=torch.float64)
    mean = shares @ shades
    variance = (shares * (shades - mean[:, None]) ** 2).sum(1)
    return mean, variance.sqrt()


RESIZE_CHUNK = 256
"""Number of images held as floating-point numbers at once."""


def resized(images: Tensor, size: int) -> Tensor:
    """Return the images as size × size, by the mean over the area of each pixel, rounded to bytes."""
    if tuple(images.shape[2:]) == (size, size):
        return images
    result = torch.empty((*images.shape[:2], size, size), dtype=torch.uint8)
    for start in range(0, len(images), RESIZE_CHUNK):
        part = images[start : start + RESIZE_CHUNK].float()
        result[start : start + RESIZE_CHUNK] = interpolate(part, (size, size), mode="area").round_()
    return result


@dataclass(frozen=True, eq=False)
class TakenExamples:
    """Examples taken from the stream, with the random augmentation of each."""

    order: Array
    """Index of each example."""
    shifts: Array
    """Shift of each crop, in two rows (down, right), from 0 to 2 × the margin."""
    mirrored: Array
    """Whether each example is mirrored."""

    def part(self, start: int, stop: int) -> "TakenExamples":
        """Return the examples from `start` up to `stop`."""
        return TakenExamples(self.order[start:stop], self.shifts[:, start:stop], self.mirrored[start:stop])


class Stream:
    """An endless stream of examples by position. Pass p depends on (seed, p) alone, not on the batches."""

    def __init__(self, examples: int, *, seed: int, margin: int = 0) -> None:
        self._examples = examples
        self._margin = margin
        self._seed = seed
        self._pass = lru_cache(maxsize=2)(self._drawn)  # a batch takes from two at most, unless it is huge

    def take(self, position: int, size: int) -> TakenExamples:
        """Return the `size` examples from `position` on."""
        number, start = divmod(position, self._examples)
        if start + size <= self._examples:
            return self._pass(number).part(start, start + size)
        parts = list(self._parts(position, size))
        return TakenExamples(
            np.concatenate([part.order for part in parts]),
            np.concatenate([part.shifts for part in parts], axis=1),
            np.concatenate([part.mirrored for part in parts]),
        )

    def _parts(self, position: int, size: int) -> Iterator[TakenExamples]:
        end = position + size
        while position < end:
            number, start = divmod(position, self._examples)
            stop = min(self._examples, start + end - position)
            yield self._pass(number).part(start, stop)
            position += stop - start

    def _drawn(self, number: int) -> TakenExamples:
        random = chance(self._seed, number)
        order = random.permutation(self._examples)
        shifts = random.integers(0, 2 * self._margin, (2, self._examples), endpoint=True)
        return TakenExamples(order, shifts, random.random(self._examples) < 0.5)


class Crops:
    """Images with a black margin, from which crops of the original size are taken."""

    def __init__(self, images: Array, *, margin: int, mirror: bool) -> None:
        height, width = images.shape[2:]
        around = ((0, 0), (0, 0), (margin, margin), (margin, margin))
        self._windows = sliding_window_view(np.pad(images, around), (height, width), axis=(2, 3))
        self._mirror = mirror

    def take(self, taken: TakenExamples) -> Array:
        """Return the crops of these examples, in their order."""
        down, right = taken.shifts
        crops: Array = self._windows[taken.order, :, down, right]
        if self._mirror:
            crops[taken.mirrored] = crops[taken.mirrored, :, :, ::-1]
        return crops
