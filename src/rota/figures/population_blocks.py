"""What the Gantt chart of a population shows: blocks of training, nodes that are away, and clones."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rota.core.population.events import (
    Cloned,
    Emptied,
    Event,
    Failed,
    Handed,
    Joined,
    Lost,
    Reported,
    Retired,
)
from rota.figures.durations import Unit, unit_for
from rota.results.population.run import PopulationRun
from rota.results.population.summary import SlotInfo, Summary

MIDDLE = (0.5, 0.75)
"""Where the median may be between the worst and the best: what is beyond is taken for it."""


class Trained(NamedTuple):
    """A part of a trial, on a slot."""

    slot: int
    trial: int
    began_s: float
    """With what had to be moved first."""
    trains_s: float
    """When training began."""
    ended_s: float
    metric: float


class Undone(NamedTuple):
    """What a slot was at when its node or its trial failed."""

    slot: int
    began_s: float
    lost_s: float


class Away(NamedTuple):
    """A node that is not there."""

    node: int
    from_s: float
    to_s: float


class Copied(NamedTuple):
    """A clone: from where the donor was to where the trial goes on."""

    from_s: float
    from_slot: int
    to_s: float
    to_slot: int


class Shading(NamedTuple):
    """How accuracies become shades."""

    least: float
    most: float
    power: float
    """Of what is in between: most blocks are nearly as good as the best, but should not all look alike."""


class PopulationChart(NamedTuple):
    """Everything to be drawn."""

    allocation: str
    slots: tuple[SlotInfo, ...]
    done_s: float
    """When all trials were."""
    end_s: float
    """Of the axis."""
    until_s: list[float]
    """Slot → when it was last in use."""
    blocks: list[Trained]
    undone: list[Undone]
    away: list[Away]
    copied: list[Copied]
    summary: Summary

    @property
    def unit(self) -> Unit:
        return unit_for(self.end_s)

    @property
    def nodes(self) -> list[str]:
        return list(dict.fromkeys(slot.node for slot in self.slots))


def population_chart(run: PopulationRun, end_s: float | None = None) -> PopulationChart:
    """What happened with the first seed."""
    summary, events = run.summary, run.events()
    done_s = summary.repetitions[0].makespan_s
    end_s = end_s or done_s
    nodes = list(dict.fromkeys(slot.node for slot in summary.slots))
    where = [nodes.index(slot.node) for slot in summary.slots]
    return PopulationChart(
        allocation=summary.allocation,
        slots=summary.slots,
        done_s=done_s,
        end_s=end_s,
        until_s=given_up(events, len(summary.slots), done_s),
        blocks=trained(events),
        undone=undone(events, where),
        away=away(events, len(nodes), done_s),
        copied=copied(events),
        summary=summary,
    )


def trained(events: Sequence[Event]) -> list[Trained]:
    """Every part, by the time of its report."""
    return [
        Trained(
            event.slot, event.trial, event.began_s, event.began_s + event.moved_s, event.ended_s, event.metric
        )
        for event in events
        if isinstance(event, Reported)
    ]


def undone(events: Sequence[Event], slots: Sequence[int]) -> list[Undone]:
    """Work that was lost; `slots` gives the node of each."""
    busy: dict[int, float] = {}
    found = []
    for event in events:
        if isinstance(event, Handed | Reported):
            busy[event.slot] = event.at_s
        elif isinstance(event, Emptied):
            busy.pop(event.slot, None)
        elif isinstance(event, Failed) and event.slot in busy:
            found.append(Undone(event.slot, busy[event.slot], event.at_s))
            busy[event.slot] = event.at_s
        elif isinstance(event, Lost):
            at = [slot for slot in busy if slots[slot] == event.node]
            found += [Undone(slot, busy.pop(slot), event.at_s) for slot in at]
    return found


def away(events: Sequence[Event], nodes: int, end_s: float) -> list[Away]:
    """When nodes are not there; all are away before they join."""
    since: dict[int, float] = dict.fromkeys(range(nodes), 0.0)
    found = []
    for event in events:
        if isinstance(event, Lost):
            since.setdefault(event.node, event.at_s)
        elif isinstance(event, Joined) and event.node in since:
            found.append(Away(event.node, since.pop(event.node), event.at_s))
    found += [Away(node, from_s, end_s) for node, from_s in since.items()]
    return [each for each in found if each.to_s > each.from_s]


def given_up(events: Sequence[Event], slots: int, end_s: float) -> list[float]:
    """Slot → until when it was in use: the end of the run, or of its last list if it was given up."""
    until_s = [end_s] * slots
    for event in events:
        if isinstance(event, Retired):
            until_s[event.slot] = event.at_s
        elif isinstance(event, Emptied):  # a busy slot is given up when its list is done
            until_s[event.slot] = max(until_s[event.slot], event.at_s)
    return until_s


def copied(events: Sequence[Event]) -> list[Copied]:
    """Each clone whose trial went on: from the donor's last report to where the trial is trained next."""
    last: dict[int, Reported] = {}
    open_clones: dict[int, tuple[float, int]] = {}
    found = []
    for event in events:
        if isinstance(event, Reported):
            if event.trial in open_clones:
                found.append(Copied(*open_clones.pop(event.trial), event.began_s, event.slot))
            last[event.trial] = event
        elif isinstance(event, Cloned) and event.donor != event.trial and event.donor in last:
            open_clones[event.trial] = (event.at_s, last[event.donor].slot)
    return found


def shading(metrics: Sequence[float]) -> Shading | None:
    """Of all that was measured; None if nothing was."""
    known = np.array([metric for metric in metrics if not math.isnan(metric)])
    if not len(known):
        return None
    least, most = float(known.min()), float(known.max())
    if most <= least:
        return Shading(least, least + 1.0, 1.0)
    middle = float(np.clip((np.median(known) - least) / (most - least), *MIDDLE))
    return Shading(least, most, math.log(0.5) / math.log(middle))
