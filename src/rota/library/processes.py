"""Calls in other processes, here or on Ray, that need nothing of the calling script; and progress."""

import os
import pickle
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from importlib.machinery import PathFinder
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import IO, Any, TypeVar

import cloudpickle

from rota.core.errors import ConfigError
from rota.core.processes import LOST, WorkerLost, WorkerPool
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
Workers = int | str
"""A number of processes, or a Ray cluster: `ray`, or `ray:ADDRESS`."""
RAY = "ray"
MOST_WORKERS = 1024
LENGTH = struct.Struct("<Q")


class LocalPool:
    """Processes of this machine that make calls, started when they are needed."""

    def __init__(self, workers: int, files: Sequence[Path]) -> None:
        self._files = files
        self._threads = ThreadPoolExecutor(workers)
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._started: list[_Worker] = []
        self._lock, self._closed = Lock(), False

    def each(
        self, function: Callable[..., Made], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Made]]:
        """Give the position of a call and its result, in the order in which they are done."""
        futures = {
            self._threads.submit(self._ask, function, arguments): number
            for number, arguments in enumerate(calls)
        }
        for future in as_completed(futures):
            yield futures[future], future.result()

    def _ask(self, function: Callable[..., Made], arguments: tuple[Any, ...]) -> Made:
        try:
            worker = self._idle.get_nowait()
        except Empty:
            worker = self._start()
        try:
            found: Made = worker.call(function, arguments)
            return found
        finally:
            self._idle.put(worker)

    def _start(self) -> "_Worker":
        with self._lock:
            if self._closed:
                raise WorkerLost(LOST)
            self._started.append(_Worker(self._files))
            return self._started[-1]

    def close(self) -> None:
        """End all processes, whatever they are doing."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._closed = True
        for worker in self._started:
            worker.stop()
        self._threads.shutdown()


class SerialPool:
    """Calls in this process, one after the other."""

    def each(
        self, function: Callable[..., Made], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Made]]:
        """Give the position of a call and its result."""
        for number, arguments in enumerate(calls):
            yield number, function(*arguments)


@contextmanager
def worker_pool(workers: Workers, classes: Iterable[type] = ()) -> Iterator[WorkerPool]:
    """Yield a pool: this process for 1, else as many processes, or `ray`, the CPUs of a Ray cluster.

    `ray` is the cluster that RAY_ADDRESS names, else one that is started for this on this machine;
    `ray:ADDRESS` is that at an address. `classes` are those from outside that arguments have: what they need
    is made known to the workers first. Raises ConfigError if there is no such pool.
    """
    count = check_workers(workers)
    if count == 1:
        yield SerialPool()
        return
    files = sorted({file for each in classes for file in files_of(each)})
    for module in {base.__module__ for each in classes for base in each.__mro__}:
        pickle_by_value(module)
    if isinstance(count, str):
        from rota.library.ray_pool import RayPool

        pool: LocalPool | RayPool = RayPool(count.partition(":")[2], files)
    else:
        pool = LocalPool(count, files)
    try:
        yield pool
    finally:
        pool.close()


def check_workers(workers: Any) -> Workers:
    """Return a number of workers, or the name of a Ray cluster. Raises ConfigError if it is neither."""
    text = str(workers)
    if text.partition(":")[0] == RAY:
        return text
    if isinstance(workers, bool) or not re.fullmatch(r"[0-9]+", text) or not 1 <= int(text) <= MOST_WORKERS:
        raise ConfigError(f"workers is {workers!r}; give a number from 1 to {MOST_WORKERS:,}, or {RAY}")
    return int(text)


def call_all(
    function: Callable[..., Made],
    calls: Sequence[tuple[Any, ...]],
    workers: Workers,
    classes: Iterable[type] = (),
) -> Iterator[tuple[int, Made]]:
    """Call a function with each tuple of arguments; gives the position of a call and its result when done.

    `workers` and `classes` are those of `worker_pool`.
    """
    if not calls:
        return
    with worker_pool(workers if len(calls) > 1 or isinstance(workers, str) else 1, classes) as pool:
        yield from pool.each(function, calls)


def pickle_by_value(module: str) -> None:
    """Have the functions and classes of a module pickled by value if other processes cannot import it."""
    if module != "__main__" and module in sys.modules and not can_be_imported(module):
        cloudpickle.register_pickle_by_value(sys.modules[module])


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
        self._first = preparation(files)

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return what the function returns there, or raise what it raises."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            if self._first:
                send(self._process.stdin, self._first)
                self._first = b""
            send(self._process.stdin, cloudpickle.dumps((function, arguments)))
            answer = receive(self._process.stdout)
        except OSError:
            answer = None
        if answer is None:
            raise WorkerLost(LOST)
        return result_of(answer)

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


def preparation(files: Sequence[Path]) -> bytes:
    """Return what `prepare` needs to know of this process."""
    return pickle.dumps((sys.path, [str(file) for file in files], str(Path.cwd())))


def prepare(first: bytes) -> None:
    """Import as the parent does, in the same folder, and know the classes that it knows from files."""
    paths, files, folder = pickle.loads(first)
    sys.path[:] = [*paths, *(path for path in sys.path if path not in paths)]
    if Path(folder).is_dir():  # not on another node, perhaps
        os.chdir(folder)
    for file in files:
        load_file(Path(file))


def answer(content: bytes) -> bytes:
    """Make the call, and say what came of it."""
    try:
        function, arguments = pickle.loads(content)
        return bytes(cloudpickle.dumps((None, function(*arguments))))
    except Exception as error:
        return _pickled_error(error)


def result_of(content: bytes) -> Any:
    """Return the result of a call from its answer, or raise what it raised."""
    error, result = pickle.loads(content)
    if error is not None:
        raise error
    return result


def _pickled_error(error: Exception) -> bytes:
    """Return the error, pickled; as text if it cannot be."""
    try:
        content = bytes(cloudpickle.dumps((error, None)))
        pickle.loads(content)
    except Exception:
        return bytes(cloudpickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), None)))
    return content
