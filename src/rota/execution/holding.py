"""The holder of a Slurm allocation: `python -m rota.execution.holding PARENT salloc …`.

That process becomes salloc, and is terminated when the controller dies, which removes a queued job from the
queue. salloc in turn runs `python -m rota.execution.holding`, which prints the job and the node, and waits
until its pipe is closed.
"""

import json
import os
import signal
import sys

from rota.execution.worker import end_with


def hold() -> None:
    found = {"job": os.environ["SLURM_JOB_ID"], "host": os.environ["SLURM_JOB_NODELIST"]}
    """Print the job and the node of this allocation, then wait for the end of the input."""
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


def ask(parent: int, command: list[str]) -> None:
    """Become this command, which is terminated when the controller dies."""
    end_with(parent, signal.SIGTERM)
    os.execvp(command[0], command)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ask(int(sys.argv[1]), sys.argv[2:])
    hold()
