"""Calls in other processes that need nothing of the calling script, with progress."""

import os
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import cloudpickle

from rota.core.processes import worker_pool
from rota.core.registry import PREFIX, files_of, load_file


def progress_bar(
    total: float | None, unit: str, shown: bool | None = None, *, leave: bool = False, **look: Any
) -> Any:
    """Return a bar of `tqdm` on stderr; without `shown`, it is seen on a terminal and in a notebook only.

    With `leave` it stays when it is done. `look` are further arguments of `tqdm`.
    """
    from tqdm import tqdm

    seen = (sys.stderr.isatty() or "ipykernel" in sys.modules) if shown is None else shown
    return tqdm(total=total, unit=unit, leave=leave, disable=not seen, file=sys.stderr, **look)


Made = TypeVar("Made")


def call_all(
    function: Callable[..., Made],
    calls: Sequence[tuple[Any, ...]],
    workers: int,
    classes: Iterable[type] = (),
) -> Iterator[tuple[int, Made]]:
    """Call a function with each tuple of arguments; gives the position of a call and its result when done.

    `classes` are those from outside that arguments have: what they need is made known there first.
    """
    if workers <= 1 or len(calls) <= 1:
        for number, arguments in enumerate(calls):
            yield number, function(*arguments)
        return
    files = sorted({file for each in classes for file in files_of(each)})
    for module in {base.__module__ for each in classes for base in each.__mro__}:
        pickle_by_value(module)
    waiting, running = deque(enumerate(calls)), dict[Future[bytes], int]()
    with worker_pool(workers, partial(_prepare, files)) as pool:
        while waiting or running:
            while waiting and len(running) < workers:  # no more of them are pickled at a time
                number, arguments = waiting.popleft()
                content = cloudpickle.dumps((function, arguments))
                with _without_script():
                    running[pool.submit(_answer, content)] = number
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                error, result = pickle.loads(future.result())
                if error is not None:
                    raise error
                yield running.pop(future), result


def pickle_by_value(module: str) -> None:
    """Have the functions and classes of a module pickled by value if other processes cannot import it."""
    if module != "__main__" and module in sys.modules and not _can_be_imported(module):
        cloudpickle.register_pickle_by_value(sys.modules[module])


def _can_be_imported(module: str) -> bool:
    """Return whether another process can import it with the same paths and files."""
    top = module.partition(".")[0]
    return top.startswith(PREFIX) or top in sys.stdlib_module_names or PathFinder.find_spec(top) is not None


@contextmanager
def _without_script() -> Iterator[None]:
    """Hide the script from processes that start: they would run it, and it may have no guard."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _prepare(files: Sequence[Path]) -> None:
    """Know the classes that the parent knows from files; print to stderr, as stdout is the parent's."""
    os.dup2(2, 1)
    for file in files:
        load_file(file)


def _answer(content: bytes) -> bytes:
    """Make a call; return the error that it raised and its result, pickled."""
    try:
        function, arguments = pickle.loads(content)
        return bytes(cloudpickle.dumps((None, function(*arguments))))
    except Exception as error:
        return _pickled_error(error)


def _pickled_error(error: Exception) -> bytes:
    """Return the error, pickled; as text if it cannot be."""
    try:
        content = bytes(cloudpickle.dumps((error, None)))
        pickle.loads(content)
    except Exception:
        return bytes(cloudpickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), None)))
    return content
