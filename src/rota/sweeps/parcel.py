"""The train function as a file: written by a sweep, read by its trials, and by nobody else.

It is the only pickle that rota loads. Before it does, the file must belong to the user, be closed to all
others, and be the one whose SHA-256 the sweep wrote into its journal.
"""

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from rota.core.errors import InputError


class Parcel(NamedTuple):
    """What a trial needs besides its configuration."""

    train: Callable[[dict[str, Any]], object]
    things: list[Any]
    """What is in configurations and JSON has no form for."""


class NotOurs(InputError):
    """A file is not the one that was written."""


def write(file: Path, parcel: Parcel) -> str:
    """The SHA-256 of what is in the file then."""
    try:
        import cloudpickle  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise InputError("a sweep needs cloudpickle: pip install 'rota[sweeps]'") from None
    with _by_value(cloudpickle, parcel.train):
        content: bytes = cloudpickle.dumps(tuple(parcel))
    begun = file.with_name(f"{file.name}.partial")
    begun.unlink(missing_ok=True)
    with os.fdopen(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)
    begun.replace(file)
    return sha256(content).hexdigest()


@contextmanager
def _by_value(cloudpickle: Any, train: object) -> Iterator[None]:
    """A function of a module that another process would not find is written whole."""
    while isinstance(train, partial):
        train = train.func
    module = sys.modules.get(getattr(train, "__module__", None) or "")
    if module is None or module.__name__ == "__main__" or _can_be_found(module):
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _can_be_found(module: ModuleType) -> bool:
    """Whether a process with the same folders to look in would import the same file by this name."""
    file = getattr(module, "__file__", None)
    if file is None:
        return True
    parts = module.__name__.split(".")
    folders: Sequence[str] | None = None
    spec = None
    for depth in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:depth]), folders)
        if spec is None:
            return False
        folders = spec.submodule_search_locations
    return spec is not None and spec.origin == file


def read(file: Path, digest: str) -> Parcel:
    """What was written, if it is that."""
    try:
        opened = os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW), "rb")
    except OSError as error:
        raise NotOurs(f"{file}: cannot be read ({error.strerror}); start the sweep again") from None
    with opened:
        about = os.fstat(opened.fileno())
        content = opened.read()
    if about.st_uid != os.geteuid():
        raise NotOurs(f"{file}: belongs to user {about.st_uid}, not to {os.geteuid()}; it is not loaded")
    if about.st_mode & 0o077:
        raise NotOurs(f"{file}: is open to other users; it is not loaded. chmod 600, if you trust it")
    if sha256(content).hexdigest() != digest:
        raise NotOurs(f"{file}: is not what the sweep wrote; it is not loaded. Start the sweep again")
    return Parcel(*pickle.loads(content))
