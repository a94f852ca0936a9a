"""The time of a run, which is not that of the world."""

import time
from collections.abc import Callable


class RunClock:
    """Seconds in which the run was run: they go on where they were when it is resumed."""

    def __init__(self, tick: Callable[[], float] = time.monotonic) -> None:
        self._tick = tick
        self._began = tick()

    def now_s(self) -> float:
        return self._tick() - self._began

    def at_least(self, at_s: float) -> None:
        """It is known to be so late."""
        self._began = min(self._began, self._tick() - at_s)

    def go_on_from(self, at_s: float) -> None:
        self._began = self._tick() - at_s
