"""The side of a trial: what it says to its sweep, and what it hears.

A trial and its sweep talk in lines over two pipes, which are the trial's own standard input and output
(`srun` carries them from and to other machines). When the sweep is gone the pipe is closed, and the trial
ends, with all it has started.
"""

import json
import os
import select
import signal
from threading import Lock, Thread
from typing import Any

from rota.sweeps.trial import TrialPruned

TAG = "rota-sweep "
"""Before each line of ours: what a site prints before a task begins is not for the sweep."""


class Connection:
    """The two pipes between a trial and its sweep."""

    def __init__(self, hears: int, says: int) -> None:
        self._hears = os.fdopen(hears, "rb")
        self._says = says
        self._lock = Lock()

    def hear(self) -> dict[str, Any]:
        """The next line, which the sweep has sent or will send."""
        found: dict[str, Any] = json.loads(self._hears.readline())
        return found

    def say(self, message: dict[str, Any]) -> None:
        """A line to the sweep."""
        left = memoryview(f"{TAG}{json.dumps(message)}\n".encode())
        while left:
            left = left[os.write(self._says, left) :]

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """A line to the sweep, and its answer."""
        with self._lock:
            self.say(message)
            return self.hear()

    def end_with_sweep(self) -> None:
        """From now on: when nobody can send any more, end whatever is going on."""
        Thread(target=_end_when_closed, args=[self._hears.fileno()], daemon=True).start()


def _end_when_closed(pipe: int) -> None:
    poller = select.poll()
    poller.register(pipe, 0)  # only that it was closed
    poller.poll()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


_connection: Connection | None = None
"""To the sweep whose trial this process is."""


def connect(connection: Connection) -> None:
    """From now on this process is a trial."""
    global _connection
    _connection = connection


def rank() -> int:
    """Which of the processes of its trial this one is; 0 if it is the only one."""
    return int(os.environ.get("RANK") or os.environ.get("SLURM_PROCID") or 0)


def log(metrics: dict[str, float | int], iteration: int) -> None:
    """Tell the sweep how the trial is doing; raises `TrialPruned` if it should not go on.

    Of a trial of several processes, the one of rank 0 is heard. It is kept once this returns.
    """
    if _connection is None:
        raise TypeError(
            "log was called outside a trial: call it in the train function that Experiment.run starts"
        )
    for name, value in metrics.items():
        if not isinstance(value, float | int):
            raise TypeError(f"metric {name!r} is {value!r}, a {type(value).__name__}; give a float or an int")
    if rank() != 0:
        return
    values = {
        str(name): int(value) if isinstance(value, int) else float(value) for name, value in metrics.items()
    }
    if _connection.ask({"metrics": values, "iteration": int(iteration)})["prune"]:
        raise TrialPruned(f"iteration {iteration}: not among the best")
