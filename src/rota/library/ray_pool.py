"""Calls on the CPUs of a Ray cluster."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle

from rota.core.cluster import own_cores
from rota.core.processes import WorkerLost
from rota.execution.ray_cluster import RayCluster, first_line
from rota.library.processes import answer, preparation, prepare, result_of

Made = TypeVar("Made")
AHEAD = 2
"""Number of calls per CPU that are at the cluster at a time: one is under way, others wait for a CPU."""
TRIES = 5
"""Number of times that a call is repeated after the death of its worker or node."""


class RayPool:
    """The CPUs of a Ray cluster, each of which makes one call at a time.

    Calls are Ray tasks, so a call whose node dies is made again on another. Files that arguments name, and
    those of classes from outside, must be found on every node.
    """

    def __init__(self, address: str, files: Sequence[Path]) -> None:
        """Connect to the cluster at an address, or to that of RAY_ADDRESS; else start one here."""
        address = address or os.environ.get("RAY_ADDRESS", "")
        self._cluster = RayCluster(address, cpus=len(own_cores()))
        self._ray = self._cluster.connect()
        self._prepared = self._ray.put(preparation(files))
        self._made = self._ray.remote(num_cpus=1, max_retries=TRIES)(_answer)

    def each(
        self, function: Callable[..., Made], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Made]]:
        """Give the position of a call and its result, in the order in which they are done."""
        waiting = enumerate(calls)
        at_cluster: dict[Any, int] = {}
        try:
            while True:
                for number, arguments in waiting:
                    content = cloudpickle.dumps((function, arguments))
                    at_cluster[self._made.remote(self._prepared, content)] = number
                    if len(at_cluster) >= self._most:
                        break
                if not at_cluster:
                    return
                done, _ = self._ray.wait(list(at_cluster), num_returns=1)
                yield at_cluster.pop(done[0]), result_of(self._got(done[0]))
        finally:
            with suppress(self._ray.exceptions.RaySystemError):  # disconnected already
                for left in at_cluster:
                    self._ray.cancel(left, force=True)

    @property
    def _most(self) -> int:
        return AHEAD * max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _got(self, asked: Any) -> bytes:
        try:
            found: bytes = self._ray.get(asked)
        except self._ray.exceptions.RayError as error:
            raise WorkerLost(f"Ray: {first_line(error)}; start again to resume") from error
        return found

    def close(self) -> None:
        """Disconnect; a cluster that was started for this ends."""
        self._cluster.close()


_known: set[bytes] = set()


def _answer(prepared: bytes, content: bytes) -> bytes:
    """Make a call in a worker of Ray."""
    if prepared not in _known:
        prepare(prepared)
        _known.add(prepared)
    return answer(content)
