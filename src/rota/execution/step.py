"""The process of a Slurm worker: `srun … python -m rota.execution.step module:function LOG`.

Assignments and answers go through srun's pipes; what a trial prints goes to the log. When the pipe is closed,
because the controller closed it or died, the worker exits at once.
"""

import json
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Iterator

from rota.execution.worker import work


def main(name: str, log: str) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the controller
    assignments, answers = os.dup(0), os.dup(1)
    with os.fdopen(answers, "wb") as stream:
        try:
            _turn_away(log)
        except OSError as error:
            stream.write(json.dumps({"ready": False, "why": _unseen(log, error)}).encode() + b"\n")
            return 2
        return work(name, _until_the_end(assignments), stream)


def _turn_away(log: str) -> None:
    """Redirect standard input and output, so that the pipes carry assignments and answers only.

    What is printed through srun would be lost with a killed step.
    """
    nothing, printed = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(nothing, 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)


def _unseen(log: str, error: OSError) -> str:
    where = f"{log}: cannot be written on {socket.gethostname()} ({error.strerror})"
    return f"{where}; the folder of a run must be where all nodes see it"


def _until_the_end(assignments: int) -> Iterator[bytes]:
    """Yield assignments. A thread reads them, so that the end of the pipe is noticed during training."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(assignments, lines), daemon=True).start()
    while True:
        yield lines.get()


def _listen(assignments: int, lines: "queue.SimpleQueue[bytes]") -> None:
    try:
        with os.fdopen(assignments, "rb") as stream:
            for line in stream:
                lines.put(line)
    finally:
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
