"""The work that a simulated population did, and lower bounds on its makespan."""

from collections.abc import Sequence
from itertools import accumulate

from rota.core.cluster import Cluster
from rota.core.population.events import Cloned, Event, Grown, Hyper, Reported
from rota.core.population.view import Work


def lower_bound_s(trials: int, work_s: float, speeds: Sequence[float]) -> float:
    """Return the lower bound for trials of equal work (seconds at speed 1), if migration were free.

    No slot does more than its speed, and k trials never use more than the k fastest slots.
    """
    return bound_s([k * work_s for k in range(1, trials + 1)], speeds)


def bound_s(largest: Sequence[float], speeds: Sequence[float]) -> float:
    """Return the lower bound, given the total work of the k largest trials for each k."""
    fastest = list(accumulate(sorted(speeds, reverse=True)))
    each = (work_s / speed for work_s, speed in zip(largest, fastest, strict=False))
    return max(largest[-1] / fastest[-1], *each)


Done = list[dict[str, float]]
"""Trial → kind of trial → seconds that its steps take on a slot of speed 1."""


def work_done(events: Sequence[Event], hypers: Sequence[Hyper], work: Work) -> Done:
    """Return the work of each trial, by its kind at the time."""
    known: list[tuple[Hyper, tuple[str, ...]]] = [(hyper, ()) for hyper in hypers]
    kinds = [work.kind(*each) for each in known]
    done: Done = [{} for _ in hypers]
    for event in events:
        if isinstance(event, Reported):
            kind = kinds[event.trial]
            before_s = done[event.trial].get(kind, 0.0)
            done[event.trial][kind] = before_s + event.steps * work.step_s(kind)
        elif isinstance(event, Cloned):
            kinds[event.trial] = work.kind(event.hyper, event.changes)
            known[event.trial] = event.hyper, event.changes
        elif isinstance(event, Grown):
            hyper, changes = known[event.trial]
            known[event.trial] = hyper, (*changes, event.change)
            kinds[event.trial] = work.kind(*known[event.trial])
    return done


def bound_of_s(done: Done, cluster: Cluster) -> float:
    """Return the lower bound for this work, if trials could migrate at any time for free.

    If slots are not equally good at all kinds of trials, work is weighted by how slow slots are with its kind
    on average, and each slot counts as if it did only what it is best at: no schedule can be better.
    """
    kinds = dict.fromkeys(kind for each in done for kind in each)
    speeds = {kind: best_speeds(cluster, kind) for kind in kinds}
    worth = {kind: len(each) / sum(each) for kind, each in speeds.items()}
    works_s = [sum(worth[kind] * work_s for kind, work_s in each.items()) for each in done]
    per_slot = zip(*([worth[kind] * speed for speed in each] for kind, each in speeds.items()), strict=True)
    return unequal_bound_s(works_s, [max(weighed) for weighed in per_slot])


def unequal_bound_s(works_s: Sequence[float], speeds: Sequence[float]) -> float:
    """Return the lower bound for unequal trials: the k largest never use more than the k fastest slots."""
    return bound_s(list(accumulate(sorted(works_s, reverse=True))), speeds)


def best_speeds(cluster: Cluster, kind: str) -> list[float]:
    """Return the highest speed that each slot ever has with a kind of trial."""
    factors = [1.0] * len(cluster.nodes)
    for slowdown in cluster.slowdowns:
        factors[slowdown.node] = min(factors[slowdown.node], slowdown.factor)
    return [slot.speed_of(kind) / factors[slot.node] for slot in cluster.all_slots]
