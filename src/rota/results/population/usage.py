"""What slots did with their time: computing, communicating, work that was lost, and nothing."""

from dataclasses import dataclass, field

from rota.core.population.events import Emptied, Event, Failed, Handed, Joined, Lost, Reported, Retired
from rota.core.population.fleet import Fleet


@dataclass(slots=True)
class SlotUse:
    """The seconds of one slot."""

    there_s: float = 0.0
    """In which its node was there and the slot not given up."""
    computing_s: float = 0.0
    communicating_s: float = 0.0
    """Moving checkpoints, and handing lists over."""
    lost_s: float = 0.0
    """On what was to be done again, because the node or the trial failed."""
    lists: int = 0
    """That it was handed."""
    parts: int = 0
    """Of trials that it trained."""

    @property
    def idle_s(self) -> float:
        return max(0.0, self.there_s - self.computing_s - self.communicating_s - self.lost_s)

    @property
    def idle_share(self) -> float:
        """Of the time in which it was there."""
        return self.idle_s / self.there_s if self.there_s > 0.0 else 0.0


@dataclass(slots=True)
class _Watch:
    """What is known of a slot while events pass by."""

    use: SlotUse = field(default_factory=SlotUse)
    since_s: float | None = None
    """When it was there again; None while it is not."""
    busy_since_s: float | None = None
    """When it was handed what it is at; None while it is idle."""
    retires: bool = False
    """Once it is idle."""

    def leave(self, at_s: float) -> None:
        if self.since_s is not None:
            self.use.there_s += at_s - self.since_s
            self.since_s = None

    def join(self, at_s: float) -> None:
        if self.since_s is None and not self.retires:
            self.since_s = at_s

    def fail(self, at_s: float) -> None:
        if self.busy_since_s is not None:
            self.use.lost_s += at_s - self.busy_since_s
            self.busy_since_s = None
        self.leave(at_s)

    def fail_part(self, at_s: float) -> None:
        if self.busy_since_s is not None:
            self.use.lost_s += at_s - self.busy_since_s
            self.busy_since_s = at_s

    def hand(self, at_s: float) -> None:
        """Whoever is handed a list is there, even if it had been given up."""
        self.retires = False
        self.join(at_s)
        self.use.lists += 1
        self.busy_since_s = at_s

    def report(self, event: Reported) -> None:
        self.use.parts += 1
        self.use.communicating_s += event.moved_s
        self.use.computing_s += event.ended_s - event.began_s - event.moved_s
        self.busy_since_s = event.at_s

    def empty(self, at_s: float) -> None:
        self.busy_since_s = None
        if self.retires:
            self.leave(at_s)

    def retire(self, at_s: float) -> None:
        self.retires = True
        if self.busy_since_s is None:
            self.leave(at_s)


class Usage:
    """What each slot did, told event by event from the beginning of a run."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._watches = [_Watch() for _ in fleet.slots]

    def see(self, event: Event) -> None:
        if isinstance(event, Lost | Joined):
            for watch, slot in zip(self._watches, self._fleet.slots, strict=True):
                if slot.node == event.node:
                    watch.fail(event.at_s) if isinstance(event, Lost) else watch.join(event.at_s)
        elif isinstance(event, Handed | Reported | Emptied | Failed | Retired):
            _follow(self._watches[event.slot], event)

    def until(self, end_s: float) -> list[SlotUse]:
        """Of each slot, to the end of the run."""
        for watch in self._watches:
            watch.leave(end_s)
        return [watch.use for watch in self._watches]


def _follow(watch: _Watch, event: Handed | Reported | Emptied | Failed | Retired) -> None:
    match event:
        case Handed():
            watch.hand(event.at_s)
        case Reported():
            watch.report(event)
        case Failed():
            watch.fail_part(event.at_s)
        case Emptied():
            watch.empty(event.at_s)
        case Retired():
            watch.retire(event.at_s)
