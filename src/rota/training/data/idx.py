"""IDX files, plain or compressed: the format of MNIST and its successors."""

import gzip
import zlib
from pathlib import Path

import numpy as np

from rota.core.arrays import Array
from rota.core.errors import InputError
from rota.training.data.catalogue import DataSet
from rota.training.data.decoded import Decoded, checked

BYTES = 8
"""The code of the type of the elements: unsigned bytes."""
AGAIN = "delete its folder, and get the data set again: bash scripts/data.sh fashion-mnist"
FILES = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}


def has_idx(folder: Path) -> bool:
    """Whether any of the four files is there."""
    return any(_there(folder, name) for name in FILES.values())


def read_idx_folder(folder: Path, dataset: DataSet) -> Decoded:
    """The four files of a data set of MNIST's kind."""
    files = {kind: _there(folder, name) or folder / f"{name}.gz" for kind, name in FILES.items()}
    arrays = {kind: read_idx(file) for kind, file in files.items()}
    decoded = Decoded(
        arrays["train_images"][:, None],
        arrays["train_labels"].astype(np.int64),
        arrays["test_images"][:, None],
        arrays["test_labels"].astype(np.int64),
    )
    return checked(decoded, dataset, files, AGAIN)


def read_idx(file: Path) -> Array:
    """The array in one file: two zero bytes, type, dimensions, the length of each, then the elements."""
    content = _content(file)
    dimensions = content[3] if len(content) > 3 and content[:3] == bytes((0, 0, BYTES)) else 0
    start = 4 + 4 * dimensions
    if not dimensions or len(content) < start:
        raise InputError(f"{file}: not an IDX file of bytes; {AGAIN}")
    shape = tuple(np.frombuffer(content, ">u4", dimensions, 4).tolist())
    expected = int(np.prod(shape, dtype=object))
    if len(content) - start != expected:
        raise InputError(f"{file}: {len(content) - start} elements where it says {expected}; {AGAIN}")
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
        raise InputError(f"{file}: cannot be read ({reason}); {AGAIN}") from None
