"""Functions and arguments of a script in files that another process can read."""

import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from rota.core.errors import InputError

Plain = Any
"""Values that JSON can hold."""
TAGS = ("tuple", "table", "thing")


class Printed(NamedTuple):
    """A stand-in for an object that is not available."""

    text: str

    def __repr__(self) -> str:
        return self.text


def things_of(value: Any) -> list[Any]:
    """Return all objects in a value that JSON has no form for, including those in tables and lists."""
    found: list[Any] = []
    _gather(value, found)
    return found


def _gather(value: Any, found: list[Any]) -> None:
    if type(value) in (list, tuple):  # one of a kind of its own is a thing
        for part in value:
            _gather(part, found)
    elif isinstance(value, Mapping):
        _gather([*value.keys(), *value.values()], found)
    elif not _is_scalar(value) and not _is_number(value) and not any(value is other for other in found):
        found.append(value)


def _is_scalar(value: Any) -> bool:
    return type(value) in (bool, int, float, str, type(None))


def _is_number(value: Any) -> bool:
    """Return whether it is a NumPy scalar, which a plain number can replace."""
    return (
        type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item")
    )


def to_plain(value: Any, things: Sequence[Any] = ()) -> Plain:
    """Return a value as JSON."""
    if _is_scalar(value):
        return value
    if _is_number(value):
        return value.item()
    if type(value) is list:
        return [to_plain(part, things) for part in value]
    if type(value) is tuple:
        return {"tuple": [to_plain(part, things) for part in value]}
    if isinstance(value, Mapping):
        return _table(value, things)
    for position, thing in enumerate(things):
        if thing is value:
            return {"thing": [position, printed(value)]}
    return {"thing": [None, printed(value)]}


def printed(thing: Any) -> str:
    """Return the repr of an object without its address in memory, so that it is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(thing))


def _table(table: Mapping[Any, Any], things: Sequence[Any]) -> Plain:
    """Return a table as it is, unless it could be mistaken for a tagged value."""
    if all(type(key) is str for key in table) and not (len(table) == 1 and next(iter(table)) in TAGS):
        return {key: to_plain(part, things) for key, part in table.items()}
    return {"table": [[to_plain(key, things), to_plain(part, things)] for key, part in table.items()]}


def from_plain(plain: Plain, things: Sequence[Any] | None = None) -> Any:
    """Return the value again; objects that are not in `things` as they were printed."""
    if isinstance(plain, list):
        return [from_plain(part, things) for part in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1:
        ((tag, body),) = plain.items()
        if tag == "tuple":
            return tuple(from_plain(part, things) for part in body)
        if tag == "table":
            return {from_plain(key, things): from_plain(part, things) for key, part in body}
        if tag == "thing":
            position, text = body
            return _thing(position, text, things)
    return {key: from_plain(part, things) for key, part in plain.items()}


def _thing(position: int | None, text: str, things: Sequence[Any] | None) -> Any:
    """Return the object at its position, or an equal one: a restored experiment may list others."""
    alike = [number for number, thing in enumerate(things or ()) if printed(thing) == text]
    if things is None or not alike:
        return Printed(text)
    return things[position if position in alike else alike[0]]


class Parcel(NamedTuple):
    """What a trial needs apart from its configuration."""

    train: Callable[[dict[str, Any]], object]
    things: list[Any]
    """Objects in configurations that JSON has no form for."""


class NotOurs(InputError):
    """A file is not the one that was written."""


def write(file: Path, parcel: Parcel) -> str:
    """Write a parcel; return the SHA-256 of the file."""
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
    """Pickle a function by value if another process would not find its module."""
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
    """Return whether a process with the same path would import the same file by this name."""
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
    """Return the parcel that was written; raise NotOurs if the file is another one."""
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
