"""Work in other processes, side by side, and signals that stop a process between two steps."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import TypeVar

from rota.core.errors import RotaError

Piece = TypeVar("Piece")
Made = TypeVar("Made")
LOST = "a worker died, perhaps for lack of memory; start again to go on from here"


class WorkerLost(RotaError):
    """A process that did some of the work has died."""


def run_dag(
    work: Callable[[Piece], None],
    ready: Iterable[Piece],
    then: Callable[[Piece], Iterable[Piece]],
    workers: int,
) -> Iterator[Piece]:
    """Do each piece, and what `then` says can be done after it; gives each when it is done.

    What comes after a piece goes before what was ready earlier, so that branches end one by one.
    """
    waiting = list(reversed(list(ready)))
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")  # a forked copy of PyTorch's threads would hang
    with ProcessPoolExecutor(workers, mp_context=context, initializer=be_a_worker) as pool:
        running: dict[Future[None], Piece] = {}
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    piece = waiting.pop()
                    running[pool.submit(work, piece)] = piece
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    piece = running.pop(future)
                    future.result()
                    waiting += reversed(list(then(piece)))
                    yield piece
        except BrokenProcessPool:
            raise WorkerLost(LOST) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()  # whoever waits for the end of a long piece would wait for nothing


@contextmanager
def process_map(workers: int) -> Iterator[Callable[[Callable[[Piece], Made], Iterable[Piece]], list[Made]]]:
    """A `map` over processes that stay; in this one if it is to be one. Results are in order."""
    if workers == 1:
        yield lambda work, pieces: [work(piece) for piece in pieces]
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=be_a_worker) as pool:
        try:
            yield lambda work, pieces: list(pool.map(work, pieces))
        except BrokenProcessPool:
            raise WorkerLost(LOST) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def be_a_worker() -> None:
    """Leave Ctrl-C to the process that started this one, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would go on beside that of the next one, and never end."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


PRINTED = (1, 2)
"""The descriptors that people read."""


class StopRequest:
    """Whether somebody wants training to stop."""

    def __init__(self) -> None:
        self.asked = False
        self._terminals = [number for number in PRINTED if os.isatty(number)]

    def ask(self, number: int, frame: FrameType | None) -> None:
        """The first time it is noted; the second time it is meant at once."""
        self._leave_closed_terminals()
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def _leave_closed_terminals(self) -> None:
        """To print where nobody reads any more would be an error."""
        for number in self._terminals:
            if not os.isatty(number):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, number)
                os.close(nowhere)


@contextmanager
def stopping() -> Iterator[StopRequest]:
    """Ctrl-C, SIGTERM and SIGHUP are noted meanwhile. In a thread they are somebody else's business.

    What was begun with nohup goes on when its terminal is closed.
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
