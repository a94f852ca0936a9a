"""Stop between two steps, not in the middle of one."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

PRINTED = (1, 2)
"""The descriptors that people read."""


class Stop:
    """Whether somebody wants training to stop."""

    def __init__(self) -> None:
        self.asked = False
        self._terminals = [number for number in PRINTED if os.isatty(number)]

    def ask(self, number: int, frame: FrameType | None) -> None:
        """The first time it is noted; the second time it is meant at once."""
        self._leave_closed_terminals()
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def _leave_closed_terminals(self) -> None:
        """To print where nobody reads any more would be an error."""
        for number in self._terminals:
            if not os.isatty(number):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, number)
                os.close(nowhere)


@contextmanager
def stopping() -> Iterator[Stop]:
    """Ctrl-C, SIGTERM and SIGHUP are noted meanwhile. In a thread they are somebody else's business.

    What was begun with nohup goes on when its terminal is closed.
    """
    stop = Stop()
    if current_thread() is not main_thread():
        yield stop
        return
    noted = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        noted.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop.ask) for number in noted}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
