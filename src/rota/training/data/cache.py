"""What a data set was decoded to, so that it is decoded once."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from rota.core.atomic import written
from rota.core.errors import InputError
from rota.training.data.catalogue import DataSet
from rota.training.data.decoded import Decoded, checked, everywhere

AGAIN = "delete it, and it is made again from the original files"


def cache_file(root: Path, dataset: DataSet) -> Path:
    """Where a data set is kept once decoded."""
    return root / f"{dataset.name}.npz"


def read_cache(file: Path, dataset: DataSet) -> Decoded:
    """What `write_cache` wrote; every array has a checksum, which reading it checks."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            decoded = Decoded(**{name: arrays[name] for name in arrays.files})
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error}); {AGAIN}") from None
    except (ValueError, TypeError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error):
        raise InputError(f"{file}: damaged; {AGAIN}") from None
    return checked(decoded, dataset, everywhere(file), AGAIN)


def write_cache(file: Path, decoded: Decoded) -> None:
    """Keep a decoded data set; a reader sees all of it or nothing."""
    with written(file) as stream:
        np.savez(stream, allow_pickle=False, **decoded.arrays())
