"""One rehearsal in numbers; all of them follow from its timeline."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rota.core.population.decisions import Hyper
from rota.core.population.events import Cloned, Event, Finished, Reported, Retired, Stopped
from rota.core.population.fleet import Fleet
from rota.results.population.usage import SlotUse, usage

BATCH_SIZE = "batch_size"
"""The hyper-parameter that is counted per node."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """What came of a population with one seed."""

    seed: int
    makespan_s: float
    lower_bound_s: float
    """The least that the work which was done can take on these slots."""
    decisions: int
    """How often a trial was placed on a slot."""
    wall_s: float
    """How long the rehearsal itself took."""
    finished: int
    """Trials that had their steps, or were as good as asked."""
    stopped: int
    """Trials that were let go."""
    clones: int
    """How often a trial went on as another."""
    retired: int
    """Slots that were given up."""
    best_accuracy: float | None
    """The best that any trial ever reported; None if nothing was measured."""
    final_accuracy: float | None
    """The best of what trials reported last."""
    to_target_s: float | None
    """When the first trial was as good as asked; None if none was."""
    slots: tuple[SlotUse, ...]
    batch_sizes: dict[str, dict[str, int]]
    """Node → batch size → steps; empty if trials have none."""


def measure(
    events: Iterable[Event],
    hypers: Sequence[Hyper],
    fleet: Fleet,
    *,
    seed: int,
    target: float,
    lower_bound_s: float,
    decisions: int,
    wall_s: float,
) -> Repetition:
    """The numbers of a timeline, which is read several times; `hypers` are what trials began with."""
    reports = [event for event in events if isinstance(event, Reported)]
    measured = [report.metric for report in reports if not math.isnan(report.metric)]
    last = {report.trial: report.metric for report in reports if not math.isnan(report.metric)}
    makespan_s = max((event.at_s for event in events if isinstance(event, Finished | Stopped)), default=0.0)
    slots = tuple(usage(events, fleet, makespan_s))
    return Repetition(
        seed=seed,
        makespan_s=makespan_s,
        lower_bound_s=lower_bound_s,
        decisions=decisions,
        wall_s=wall_s,
        finished=_count(events, Finished),
        stopped=_count(events, Stopped),
        clones=sum(isinstance(event, Cloned) and event.donor != event.trial for event in events),
        retired=_count(events, Retired),
        best_accuracy=max(measured, default=None),
        final_accuracy=max(last.values(), default=None),
        to_target_s=next((report.at_s for report in reports if report.metric >= target), None),
        slots=slots,
        batch_sizes=_batch_sizes(events, hypers, fleet),
    )


def _count(events: Iterable[Event], kind: type) -> int:
    return sum(isinstance(event, kind) for event in events)


def _batch_sizes(events: Iterable[Event], hypers: Sequence[Hyper], fleet: Fleet) -> dict[str, dict[str, int]]:
    """Node → batch size → steps, as trials had them when they were trained."""
    now = list(hypers)
    steps: dict[str, dict[str, int]] = {}
    for event in events:
        if isinstance(event, Cloned):
            now[event.trial] = event.hyper
        elif isinstance(event, Reported) and BATCH_SIZE in now[event.trial]:
            node = steps.setdefault(fleet.nodes[fleet.slots[event.slot].node], {})
            size = str(now[event.trial][BATCH_SIZE])
            node[size] = node.get(size, 0) + event.steps
    in_order = {node: dict(sorted(sizes.items(), key=_size)) for node, sizes in steps.items()}
    return dict(sorted(in_order.items(), key=lambda item: fleet.nodes.index(item[0])))


def _size(item: tuple[str, int]) -> float:
    return float(item[0])
