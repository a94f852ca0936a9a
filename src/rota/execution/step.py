"""The process of a worker that is a job step: `srun … python -m rota.execution.step module:function LOG`.

Orders come in and answers go out through srun's pipes; whatever a trial prints goes to the log. When the
orders end, because the controller closed the pipe or died, the worker ends at once, whatever it is at.
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
    orders, answers = os.dup(0), os.dup(1)
    with os.fdopen(answers, "wb") as stream:
        try:
            _turn_away(log)
        except OSError as error:
            stream.write(json.dumps({"ready": False, "why": _unseen(log, error)}).encode() + b"\n")
            return 2
        return work(name, _until_the_end(orders), stream)


def _turn_away(log: str) -> None:
    """The pipes are for orders and answers alone. What went through srun would be lost with a killed step."""
    nothing, printed = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(nothing, 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)


def _unseen(log: str, error: OSError) -> str:
    where = f"{log}: cannot be written on {socket.gethostname()} ({error.strerror})"
    return f"{where}; the folder of a run must be where all nodes see it"


def _until_the_end(orders: int) -> Iterator[bytes]:
    """Orders in their turn. They are listened for all the time: their end is noticed while training."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(orders, lines), daemon=True).start()
    while True:
        yield lines.get()


def _listen(orders: int, lines: "queue.SimpleQueue[bytes]") -> None:
    try:
        with os.fdopen(orders, "rb") as stream:
            for line in stream:
                lines.put(line)
    finally:
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
