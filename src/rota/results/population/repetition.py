"""The results of a population with one seed, in numbers."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rota.core.cluster import Cluster
from rota.core.errors import InputError
from rota.core.population.events import (
    Cloned,
    Event,
    Grown,
    Hyper,
    Reported,
    Retired,
    Stopped,
    TrialFinished,
)
from rota.results.population.metrics import LEAST_S, MeasuredBound, SlotUse, Usage

BATCH_SIZE = "batch_size"
"""The hyper-parameter that is counted per node."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """The results of a population with one seed."""

    seed: int
    makespan_s: float
    lower_bound_s: float
    """Lower bound in seconds of the time that the work done can take on these slots."""
    decisions: int
    """How often a trial was placed on a slot."""
    wall_s: float
    """Seconds that the simulation itself took."""
    finished: int
    """Trials that completed their steps or reached the target."""
    stopped: int
    """Trials that were stopped early."""
    clones: int
    """How often a trial continued as a clone of another."""
    retired: int
    """Slots that were retired."""
    best_accuracy: float | None
    """Best metric that any trial ever reported; None if nothing was measured."""
    final_accuracy: float | None
    """Best of the last reports of all trials."""
    to_target_s: float | None
    """Seconds until the first trial reached the target; None if none did."""
    slots: tuple[SlotUse, ...]
    batch_sizes: dict[str, dict[str, int]]
    """Steps by node and batch size; empty if trials have none."""
    began: tuple[dict[str, int | float | str], ...] = ()
    """Initial hyper-parameters of each trial; empty in older runs."""
    deadline_s: float | None = None
    """When the run ended, whether trials were done or not; None if there was no deadline."""
    best_three: float | None = None
    """Mean of the best three of the last reports."""
    test_accuracy: float | None = None
    """Test accuracy of the trial whose last report is the best; None if it was not measured."""
    gpu_s: float | None = None
    """Seconds in which slots were in use, added up; None in older runs."""
    growths: int = 0
    """How often a network grew."""

    def __post_init__(self) -> None:
        if not self.lower_bound_s > 0.0:
            raise InputError(f"lower_bound_s is {self.lower_bound_s}; it must be above 0")
        for sizes in self.batch_sizes.values():
            for size in sizes:
                if not _is_number(size):
                    raise InputError(f"batch_sizes: {size!r} is not a number")


def measure(
    events: Iterable[Event],
    hypers: Sequence[Hyper],
    cluster: Cluster,
    *,
    seed: int,
    target: float,
    decisions: int,
    wall_s: float,
    lower_bound_s: float | None = None,
    deadline_s: float = math.inf,
    test_accuracies: Sequence[float] = (),
) -> Repetition:
    """Return the results of a timeline, which is read once.

    `hypers` are the initial hyper-parameters of the trials. Without a lower bound, that of the work
    computed is used. With a deadline the run ends there, and what is under way then is lost.
    """
    counts, slots, batches = Counts(target), Usage(cluster), BatchSizes(hypers, cluster)
    bound = MeasuredBound(len(cluster.all_slots))
    for event in events:
        counts.see(event)
        slots.see(event)
        batches.see(event)
        bound.see(event)
    cut = counts.finished + counts.stopped < len(hypers) and math.isfinite(deadline_s)
    end_s = deadline_s if cut else counts.makespan_s
    uses = tuple(slots.until(end_s, cut=cut))
    return Repetition(
        seed=seed,
        makespan_s=end_s,
        lower_bound_s=max(LEAST_S, bound.seconds if lower_bound_s is None else lower_bound_s),
        decisions=decisions,
        wall_s=wall_s,
        finished=counts.finished,
        stopped=counts.stopped,
        clones=counts.clones,
        retired=counts.retired,
        best_accuracy=counts.best,
        final_accuracy=max(counts.last.values(), default=None),
        to_target_s=counts.to_target_s,
        slots=uses,
        batch_sizes=batches.by_node(),
        began=tuple(map(dict, hypers)),
        deadline_s=deadline_s if math.isfinite(deadline_s) else None,
        best_three=counts.best_three,
        test_accuracy=counts.chosen(test_accuracies),
        gpu_s=sum(use.computing_s + use.communicating_s + use.lost_s for use in uses),
        growths=counts.growths,
    )


@dataclass(slots=True)
class Counts:
    """Counts over the events of trials."""

    target: float
    makespan_s: float = 0.0
    finished: int = 0
    stopped: int = 0
    clones: int = 0
    retired: int = 0
    growths: int = 0
    best: float | None = None
    last: dict[int, float] = field(default_factory=dict)
    """Last measured metric of each trial."""
    to_target_s: float | None = None

    def see(self, event: Event) -> None:
        """Count an event."""
        match event:
            case Reported():
                self._report(event)
            case TrialFinished():
                self.finished += 1
                self.makespan_s = max(self.makespan_s, event.at_s)
            case Stopped():
                self.stopped += 1
                self.makespan_s = max(self.makespan_s, event.at_s)
            case Cloned():
                self.clones += event.donor != event.trial
            case Retired():
                self.retired += 1
            case Grown():
                self.growths += 1

    @property
    def best_three(self) -> float | None:
        """The mean of the best three of the last reports; of all, if there are fewer."""
        best = sorted(self.last.values())[-3:]
        return sum(best) / len(best) if best else None

    def chosen(self, test_accuracies: Sequence[float]) -> float | None:
        """Return the test accuracy of the trial with the best last report, the first of equals."""
        if not self.last or not len(test_accuracies):
            return None
        trial = max(sorted(self.last), key=self.last.__getitem__)
        found = float(test_accuracies[trial])
        return None if math.isnan(found) else found

    def _report(self, event: Reported) -> None:
        if not math.isnan(event.metric):
            self.last[event.trial] = event.metric
            self.best = event.metric if self.best is None else max(self.best, event.metric)
        if self.to_target_s is None and event.metric >= self.target:
            self.to_target_s = event.at_s


class BatchSizes:
    """Steps by node and batch size, counted event by event."""

    def __init__(self, hypers: Sequence[Hyper], cluster: Cluster) -> None:
        self._now, self._cluster = list(hypers), cluster
        self._steps: dict[str, dict[str, int]] = {}

    def see(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, Cloned):
            self._now[event.trial] = event.hyper
        elif isinstance(event, Reported) and BATCH_SIZE in self._now[event.trial]:
            node = self._steps.setdefault(self._cluster.names[self._cluster.all_slots[event.slot].node], {})
            size = str(self._now[event.trial][BATCH_SIZE])
            node[size] = node.get(size, 0) + event.steps

    def by_node(self) -> dict[str, dict[str, int]]:
        """Return the counts in the order of the nodes, smaller batches first."""
        in_order = {node: by_size(sizes) for node, sizes in self._steps.items()}
        return dict(sorted(in_order.items(), key=lambda item: self._cluster.names.index(item[0])))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def by_size(steps: dict[str, int]) -> dict[str, int]:
    """Return the steps of each batch size, smaller ones first."""
    return dict(sorted(steps.items(), key=lambda item: float(item[0])))
