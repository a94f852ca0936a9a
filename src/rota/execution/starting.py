"""Attempts to start workers, of which some end before they are ready."""

from rota.core.errors import InputError

STARTS = 3
"""Number of deaths in a row, before it is ready, after which a worker is not restarted."""


class CannotStart(InputError):
    """Workers end before they are ready."""


class StartAttempts:
    """The attempts in a row to start the worker of each slot."""

    def __init__(self, trial: str, slots: int) -> None:
        self._trial, self._failed = trial, [0] * slots

    def succeeded(self, slot: int) -> None:
        """Note that a worker is ready."""
        self._failed[slot] = 0

    def failed(self, slot: int, why: str) -> None:
        """Note that a worker died before it was ready; raise CannotStart if that was the last attempt."""
        self._failed[slot] += 1
        if self._failed[slot] >= STARTS:
            raise CannotStart(f"workers of {self._trial} end before they are ready: {why}")
