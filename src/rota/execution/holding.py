"""An allocation that lasts as long as its controller: `python -m rota.execution.holding PARENT salloc …`.

That process becomes the salloc, and is told to end when the controller dies: then a job that still waits in
the queue is taken out of it. What salloc starts is `python -m rota.execution.holding`: it says which job and
which node that is, and waits for the end of its pipe.
"""

import json
import os
import signal
import sys

from rota.execution.worker import end_with


def hold() -> None:
    found = {"job": os.environ["SLURM_JOB_ID"], "host": os.environ["SLURM_JOB_NODELIST"]}
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


def ask(parent: int, command: list[str]) -> None:
    end_with(parent, signal.SIGTERM)
    os.execvp(command[0], command)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ask(int(sys.argv[1]), sys.argv[2:])
    hold()
