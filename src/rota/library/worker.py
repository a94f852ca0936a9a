"""`python -m rota.library.worker`: a process that makes the calls it is sent over its standard input."""

import os
import signal
import sys
from queue import SimpleQueue
from threading import Thread
from typing import IO

from rota.library.processes import answer, prepare, receive, send


def main() -> None:
    """Answer each call until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the code of others prints is no answer
    calls: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(sys.stdin.buffer, calls), daemon=True).start()
    prepare(calls.get())
    while True:
        send(answers, answer(calls.get()))


def _listen(stream: IO[bytes], calls: "SimpleQueue[bytes]") -> None:
    """Take in calls while others are made; with the parent, this process ends at once."""
    while (content := receive(stream)) is not None:
        calls.put(content)
    os._exit(1)


if __name__ == "__main__":
    main()
