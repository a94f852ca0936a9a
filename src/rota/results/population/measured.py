"""The least time that what was really computed can have taken."""

from rota.core.population.events import Event, Reported

LEAST_S = 1e-9
"""If nothing was ever reported: others divide by it."""


class MeasuredBound:
    """If slots had never waited, and trials could be moved at any moment: none is on two slots at once."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._trials: dict[int, float] = {}

    def see(self, event: Event) -> None:
        if isinstance(event, Reported):
            computing_s = event.ended_s - event.began_s - event.moved_s
            self._trials[event.trial] = self._trials.get(event.trial, 0.0) + computing_s

    @property
    def seconds(self) -> float:
        return max(sum(self._trials.values()) / self._slots, *self._trials.values(), LEAST_S)
