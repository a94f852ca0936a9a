"""The timeline of a population with one seed: parts of trials on slots, and what became of them then."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rota.core.arrays import Array
from rota.core.population.events import Cloned, Event, Finished, Handed, Reported, Stopped
from rota.figures.population_blocks import Away, Undone, away, shading, undone
from rota.report import looks
from rota.report.compact import Clock, Column, packed
from rota.results.population.summary import SlotInfo

GOES_ON, CLONED, STOPPED, DONE = range(4)
"""What became of a trial after a part."""


def trial_bars(
    events: Sequence[Event],
    slots: Sequence[SlotInfo],
    end_s: float,
    *,
    measured: bool = True,
    sign: float = 1.0,
) -> dict[str, Any]:
    """Columns for the page. All times are positions in `instants`, which are in ticks since the beginning.

    A bar is painted by how good its trial was then, or by which trial it is if that was not measured. For
    people, metrics are multiplied by `sign`.
    """
    nodes = list(dict.fromkeys(slot.node for slot in slots))
    where = [nodes.index(slot.node) for slot in slots]
    clock = Clock.over(0.0, end_s)
    parts = sorted(parts_of(events), key=lambda part: (part[0].slot, part[0].began_s))
    absent, lost = away(events, len(nodes), end_s), undone(events, where)
    edges = [
        *([r.began_s, r.ended_s, r.began_s + r.moved_s] for r, *_ in parts),
        *([each.from_s, each.to_s] for each in absent),
        *([each.began_s, each.lost_s] for each in lost),
    ]
    instants = np.unique(clock.ticks([0.0, end_s, *(at_s for each in edges for at_s in each)]))

    def at(times_s: Sequence[float]) -> Array:
        return np.searchsorted(instants, clock.ticks(times_s))

    columns = {"instants": Column(instants, sorted=True)}
    columns |= _part_columns([part[0] for part in parts], len(slots), at)
    columns |= _then_columns(parts)
    columns["metric"] = Column(np.float32(sign) * columns["metric"].values)
    if not measured:
        columns["paint"] = Column(columns["item"].values % looks.TRIALS)
    columns |= _other_columns(absent, lost, at)
    return {"tick_s": clock.tick_s, "bars": len(parts), **packed(columns)}


Part = tuple[Reported, int, int, int]
"""A report, what became of its trial, of whom that is a clone, and how many trials the list had."""


def parts_of(events: Sequence[Event]) -> list[Part]:
    """All parts that were trained."""
    found: list[Part] = []
    last: dict[int, int] = {}
    lists: dict[int, int] = {}
    for event in events:
        if isinstance(event, Handed):
            lists[event.slot] = event.trials
        elif isinstance(event, Reported):
            last[event.trial] = len(found)
            found.append((event, GOES_ON, 0, lists.get(event.slot, 1)))
        elif isinstance(event, Cloned | Stopped | Finished) and event.trial in last:
            report, *_, listed = found[last[event.trial]]
            found[last[event.trial]] = (report, *_became(event), listed)
    return found


def _became(event: Cloned | Stopped | Finished) -> tuple[int, int]:
    if isinstance(event, Cloned):
        return (GOES_ON, 0) if event.donor == event.trial else (CLONED, event.donor)
    return (STOPPED if isinstance(event, Stopped) else DONE), 0


def _part_columns(reports: Sequence[Reported], slots: int, at: Any) -> dict[str, Column]:
    starts, ends = at([r.began_s for r in reports]), at([r.ended_s for r in reports])
    metric = np.array([r.metric for r in reports], np.float32)
    ones = np.ones(len(reports), np.int64)
    return {
        "counts": Column(np.bincount(np.array([r.slot for r in reports], np.int64), minlength=slots)),
        "start": Column(starts, sorted=True),
        "length": Column(ends - starts),
        "trains": Column(at([r.began_s + r.moved_s for r in reports]), sorted=True),
        "item": Column(np.array([r.trial for r in reports], np.int64)),
        "steps": Column(np.array([r.steps for r in reports], np.int64)),
        "metric": Column(metric),
        "paint": Column(shade([float(each) for each in metric])),
        "height": Column(ones),
        "place": Column(0 * ones),
        "of": Column(ones),
    }


def shade(metrics: Sequence[float]) -> Array:
    """Of each, from 1 for the worst to the last for the best; 0 for what was not measured."""
    scale = shading(metrics)
    if scale is None:
        return np.zeros(len(metrics), np.int64)
    values = np.array(metrics)
    share = np.clip((values - scale.least) / (scale.most - scale.least), 0.0, 1.0) ** scale.power
    return np.where(np.isnan(values), 0, 1 + np.rint(np.nan_to_num(share) * (looks.SHADES - 2))).astype(
        np.int64
    )


def _then_columns(parts: Sequence[Part]) -> dict[str, Column]:
    _, then, donor, listed = zip(*parts, strict=True) if parts else ((), (), (), ())
    named = {"then": then, "donor": donor, "listed": listed}
    return {name: Column(np.array(values, np.int64)) for name, values in named.items()}


def _other_columns(absent: Sequence[Away], lost: Sequence[Undone], at: Any) -> dict[str, Column]:
    return {
        "away_start": Column(at([each.from_s for each in absent])),
        "away_end": Column(at([each.to_s for each in absent])),
        "away_node": Column(np.array([each.node for each in absent], np.int64)),
        "lost_start": Column(at([each.began_s for each in lost])),
        "lost_end": Column(at([each.lost_s for each in lost])),
        "lost_row": Column(np.array([each.slot for each in lost], np.int64)),
    }
