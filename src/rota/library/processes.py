"""Calls in other processes that need nothing of the calling script, with progress."""

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, TypeVar

import cloudpickle

from rota.core.processes import LOST, WorkerLost
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
LENGTH = struct.Struct("<Q")


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
        if module != "__main__" and module in sys.modules and not can_be_imported(module):
            cloudpickle.register_pickle_by_value(sys.modules[module])
    idle: SimpleQueue[_Worker] = SimpleQueue()
    started: list[_Worker] = []

    def ask(arguments: tuple[Any, ...]) -> Made:
        worker = idle.get()
        try:
            found: Made = worker.call(function, arguments)
            return found
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(workers)
    try:
        for _ in range(min(workers, len(calls))):
            started.append(_Worker(files))
            idle.put(started[-1])
        futures = {pool.submit(ask, arguments): number for number, arguments in enumerate(calls)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in started:
            worker.stop()
        pool.shutdown()


def can_be_imported(module: str) -> bool:
    """Return whether another process can import it with the same paths and files."""
    top = module.partition(".")[0]
    return top.startswith(PREFIX) or top in sys.stdlib_module_names or PathFinder.find_spec(top) is not None


class _Worker:
    """A process that makes the calls it is sent, one at a time."""

    def __init__(self, files: Sequence[Path]) -> None:
        package = str(Path(__file__).parents[2])
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rota.library.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        self._first: tuple[list[str], list[str]] | None = (sys.path, [str(file) for file in files])

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return what the function returns there, or raise what it raises."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            if self._first is not None:
                send(self._process.stdin, pickle.dumps(self._first))
                self._first = None
            send(self._process.stdin, cloudpickle.dumps((function, arguments)))
            answer = receive(self._process.stdout)
        except OSError:
            answer = None
        if answer is None:
            raise WorkerLost(LOST)
        error, result = pickle.loads(answer)
        if error is not None:
            raise error
        return result

    def stop(self) -> None:
        """End it, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def send(stream: IO[bytes], content: bytes) -> None:
    """Write a message with its length before it."""
    stream.write(LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Return what was sent; None if the stream has ended."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    content = stream.read(length)
    return content if len(content) == length else None


def prepare(first: bytes) -> None:
    """Import as the parent does, and know the classes that it knows from files."""
    paths, files = pickle.loads(first)
    sys.path[:] = paths
    for file in files:
        load_file(Path(file))


def answer(content: bytes) -> bytes:
    """Make the call, and say what came of it."""
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
