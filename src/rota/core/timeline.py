"""The timeline of a run: everything that happened, as columns; it *is* the result."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rota.core.events import Event, Kind, event

EVENT = np.dtype(
    [
        ("at_s", "f8"),
        ("value", "f8"),
        ("begin", "i8"),
        ("job", "i4"),
        ("gpus", "i4"),
        ("kind", "i4"),
    ],
    align=True,
)
"""One thing that happened; `value` is the pace of a start and the work left at a pause or a failure."""


class Journal:
    """A timeline while it is being written: arrays that double when they are full."""

    __slots__ = ("count", "events", "slots", "used")

    def __init__(self, events: int = 1024, slots: int = 4096) -> None:
        self.events = np.zeros(events, EVENT)
        self.slots = np.zeros(slots, np.int32)
        self.count = 0
        self.used = 0

    def reserve(self, events: int, slots: int) -> None:
        """Make room for so many more."""
        if self.count + events > len(self.events):
            self.events = _doubled(self.events, self.count + events)
        if self.used + slots > len(self.slots):
            self.slots = _doubled(self.slots, self.used + slots)

    def timeline(self) -> "Timeline":
        return Timeline(self.events[: self.count], self.slots[: self.used])


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened, in order."""

    events: NDArray[np.void]
    slots: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        for record in self.events:
            yield self._event(record)

    def _event(self, record: np.void) -> Event:
        begin, gpus = int(record["begin"]), int(record["gpus"])
        slots = tuple(self.slots[begin : begin + gpus].tolist())
        return event(
            Kind(record["kind"]), float(record["at_s"]), int(record["job"]), float(record["value"]), slots
        )


def _doubled(array: NDArray, at_least: int) -> NDArray:  # type: ignore[type-arg]
    grown = np.zeros(max(at_least, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown
