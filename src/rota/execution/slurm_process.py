"""The processes that Slurm runs: `python -m rota.execution.slurm_process step|ask|hold …`.

`step module:function LOG`, started by srun, is a worker. Assignments and answers go through srun's pipes, and
what a trial prints to the log. When the controller closes the pipe or dies, the worker exits at once.

`ask PARENT salloc …` becomes salloc, and is terminated when the controller dies, which also removes a queued
job. salloc starts `hold`, which prints the job and the node, and waits until its pipe is closed.
"""

import json
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator

from rota.execution.worker import end_with, work


def hold() -> int:
    """Print the job and the node of this allocation, then wait for the end of the input."""
    found = {"job": os.environ["SLURM_JOB_ID"], "host": os.environ["SLURM_JOB_NODELIST"]}
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    return 0


def ask(parent: str, *command: str) -> int:
    """Become this command, which is terminated when the controller dies."""
    end_with(int(parent), signal.SIGTERM)
    os.execvp(command[0], command)


def step(name: str, log: str) -> int:
    """Be a worker; return the exit code if it cannot start."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the controller
    assignments, answers = os.dup(0), os.dup(1)
    with os.fdopen(answers, "wb") as stream:
        try:
            _redirect(log)
        except OSError as error:
            where = f"{log}: cannot be written on {socket.gethostname()} ({error.strerror})"
            why = f"{where}; the folder of a run must be where all nodes see it"
            stream.write(json.dumps({"ready": False, "why": why}).encode() + b"\n")
            return 2
        return work(name, _until_the_end(assignments), stream)


def _redirect(log: str) -> None:
    """Leave the pipes to assignments and answers. Output through srun would be lost with a killed step."""
    nothing, printed = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(nothing, 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)


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
    KINDS: dict[str, Callable[..., int]] = {"step": step, "ask": ask, "hold": hold}
    sys.exit(KINDS[sys.argv[1]](*sys.argv[2:]))
