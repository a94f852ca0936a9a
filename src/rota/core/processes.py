"""Parallel work in processes, and signals that stop a process between two steps."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any, Protocol, TypeVar

from rota.core.errors import RotaError

Task = TypeVar("Task")
Result = TypeVar("Result")
LOST = "a worker died, perhaps out of memory; start again to resume"


class WorkerLost(RotaError):
    """A worker process that died."""


def run_dag(
    work: Callable[[Task], None],
    ready: Iterable[Task],
    then: Callable[[Task], Iterable[Task]],
    workers: int,
) -> Iterator[Task]:
    """Do each task in a worker process, then those that `then` names after it; yield each task that is done.

    Follow-up tasks come before tasks that were ready earlier, so that branches finish one by one.
    """
    waiting = list(reversed(list(ready)))
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")  # a forked copy of PyTorch's threads would hang
    with ProcessPoolExecutor(workers, mp_context=context, initializer=be_a_worker) as pool:
        running: dict[Future[None], Task] = {}
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    task = waiting.pop()
                    running[pool.submit(work, task)] = task
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    task = running.pop(future)
                    future.result()
                    waiting += reversed(list(then(task)))
                    yield task
        except BrokenProcessPool:
            raise WorkerLost(LOST) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()  # the result of a long task is not needed any more


class WorkerPool(Protocol):
    """A pool of workers that make calls."""

    def each(
        self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Result]]:
        """Give the position of a call and its result, in the order in which they are done."""


def map_over(pool: WorkerPool, function: Callable[[Task], Result], tasks: Iterable[Task]) -> list[Result]:
    """Return the result of each task, in the order of the tasks."""
    done = dict(pool.each(function, [(task,) for task in tasks]))
    return [done[number] for number in range(len(done))]


def be_a_worker() -> None:
    """Leave Ctrl-C to the parent process, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Exit when the parent does; a worker whose parent was killed would otherwise never end."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


PRINTED = (1, 2)
"""Descriptors that people read: stdout and stderr."""


class StopRequest:
    """A flag that is set by a signal that asks the process to stop."""

    def __init__(self) -> None:
        self.asked = False
        self._terminals = [number for number in PRINTED if os.isatty(number)]

    def ask(self, number: int, frame: FrameType | None) -> None:
        """Set the flag at the first signal; raise KeyboardInterrupt at the second."""
        self._leave_closed_terminals()
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def _leave_closed_terminals(self) -> None:
        """Redirect output from closed terminals, where printing would be an error."""
        for number in self._terminals:
            if not os.isatty(number):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, number)
                os.close(nowhere)


@contextmanager
def stopping() -> Iterator[StopRequest]:
    """Yield a flag that Ctrl-C, SIGTERM and SIGHUP set; in other threads than the main one, no signal does.

    A process started with nohup ignores SIGHUP, and goes on when its terminal is closed.
    """
    stop = StopRequest()
    if current_thread() is not main_thread():
        yield stop
        return
    noted = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        noted.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop.ask) for number in noted}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
