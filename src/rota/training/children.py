"""Processes that compute with PyTorch for this one, each with a line to it."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

SPAWN = multiprocessing.get_context("spawn")  # a forked copy of PyTorch's threads would hang


class ChildProcesses(NamedTuple):
    """Processes, and our ends of the lines to them."""

    processes: list[BaseProcess]
    lines: list[Connection]


@contextmanager
def children(count: int, target: Callable[..., object], *given: Any) -> Iterator[ChildProcesses]:
    """Start processes that call `target` with what is given, their rank, and a line; kill them at the end."""
    found = ChildProcesses([], [])
    try:
        for rank in range(count):
            ours, theirs = SPAWN.Pipe()
            process = SPAWN.Process(target=target, args=(*given, rank, theirs), daemon=True)
            process.start()
            theirs.close()  # so that a process that dies is noticed at its end of the line
            found.processes.append(process)
            found.lines.append(ours)
        yield found
    finally:
        for child in found.processes:
            child.kill()  # it has nothing to tidy up, and may be waiting for one that is gone
        for child in found.processes:
            child.join()
        for line in found.lines:
            line.close()
