"""The least time that what was really computed can have taken."""

from collections.abc import Iterable

from rota.core.population.events import Event, Reported

LEAST_S = 1e-9
"""If nothing was ever reported: others divide by it."""


def measured_bound_s(events: Iterable[Event], slots: int) -> float:
    """If slots had never waited, and trials could be moved at any moment: none is on two slots at once."""
    trials: dict[int, float] = {}
    for event in events:
        if isinstance(event, Reported):
            computing_s = event.ended_s - event.began_s - event.moved_s
            trials[event.trial] = trials.get(event.trial, 0.0) + computing_s
    return max(sum(trials.values()) / slots, *trials.values(), LEAST_S)
