"""A trial's connection to its sweep.

They exchange lines over the trial's standard input and output, which `srun` forwards between nodes. When the
sweep ends, the pipe is closed, and the trial ends with everything that it started.
"""

import json
import os
import select
import signal
from threading import Lock, Thread
from typing import Any

from rota.sweeps.trial import TrialPruned

TAG = "rota-sweep "
"""The prefix of messages, to tell them from what a cluster prints before a task begins."""


class Connection:
    """The two pipes between a trial and its sweep."""

    def __init__(self, hears: int, says: int) -> None:
        self._hears = os.fdopen(hears, "rb")
        self._says = says
        self._lock = Lock()

    def hear(self) -> dict[str, Any]:
        """Return the next message of the sweep."""
        found: dict[str, Any] = json.loads(self._hears.readline())
        return found

    def say(self, message: dict[str, Any]) -> None:
        """Send a message to the sweep."""
        left = memoryview(f"{TAG}{json.dumps(message)}\n".encode())
        while left:
            left = left[os.write(self._says, left) :]

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message to the sweep; return its answer."""
        with self._lock:
            self.say(message)
            return self.hear()

    def end_with_sweep(self) -> None:
        """From now on, kill this trial when the sweep closes the pipe."""
        Thread(target=_end_when_closed, args=[self._hears.fileno()], daemon=True).start()


def _end_when_closed(pipe: int) -> None:
    poller = select.poll()
    poller.register(pipe, 0)  # only that it was closed
    poller.poll()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


_connection: Connection | None = None
"""The connection to the sweep; None outside a trial."""


def connect(connection: Connection) -> None:
    """Make this process a trial."""
    global _connection
    _connection = connection


def rank() -> int:
    """Return the rank of this process in its trial; 0 if it is the only one."""
    return int(os.environ.get("RANK") or os.environ.get("SLURM_PROCID") or 0)


def log(metrics: dict[str, float | int], iteration: int) -> None:
    """Report metrics to the sweep; raise `TrialPruned` if the trial should stop.

    Metrics are recorded once this returns. In a trial of several processes only rank 0 reports.
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
