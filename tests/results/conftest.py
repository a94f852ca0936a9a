"""Timelines that are written down by hand."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.timeline import (
    Arrived,
    Event,
    EventKind,
    Failed,
    Finished,
    Migrated,
    NodeJoined,
    NodeLost,
    Preempted,
    Retimed,
    Started,
    Timeline,
    TimelineWriter,
)
from rota.results.jobs import JobColumns

KINDS = {
    Arrived: EventKind.ARRIVED,
    Started: EventKind.STARTED,
    Migrated: EventKind.MOVED,
    Retimed: EventKind.PACED,
    Preempted: EventKind.PAUSED,
    Finished: EventKind.FINISHED,
    Failed: EventKind.FAILED,
    NodeJoined: EventKind.NODE_JOINED,
    NodeLost: EventKind.NODE_LOST,
}


def write_down(*events: Event) -> Timeline:
    """The timeline of these events."""
    journal = TimelineWriter(events=1, slots=1)
    for event in events:
        slots = getattr(event, "slots", ())
        journal.reserve(1, len(slots))
        value = getattr(event, "pace_s", getattr(event, "remaining", 0.0))
        whose = event.node if isinstance(event, NodeJoined | NodeLost) else event.job
        record = (event.at_s, value, journal.used, whose, len(slots), KINDS[type(event)])
        journal.events[journal.count] = record
        journal.slots[journal.used : journal.used + len(slots)] = slots
        journal.count += 1
        journal.used += len(slots)
    return journal.timeline()


def some_jobs(
    *rows: tuple[float, float, float, float], models: Sequence[str] = ("bert", "vgg16")
) -> JobColumns:
    """Jobs a, b, … from (submit_s, gpus, iterations, iteration_s); they alternate between the models."""
    submit_s, gpus, iterations, iteration_s = np.array(rows, float).T
    return JobColumns(
        name="by hand",
        ids=tuple("abcdefgh"[: len(rows)]),
        model=np.arange(len(rows)) % 2,
        models=tuple(models),
        gpus=gpus,
        submit_s=submit_s,
        iterations=iterations,
        iteration_s=iteration_s,
    )


@pytest.fixture(name="write_down")
def _write_down() -> Callable[..., Timeline]:
    return write_down


@pytest.fixture(name="some_jobs")
def _some_jobs() -> Callable[..., JobColumns]:
    return some_jobs


@pytest.fixture
def two_jobs() -> tuple[Timeline, JobColumns, Cluster]:
    """b, one GPU for 4 s, arrives at 2 s and interrupts a, both GPUs for 10 s."""
    timeline = write_down(
        Arrived(0, 0), Started(0, 0, 1.0, (0, 1)),
        Arrived(2, 1), Preempted(2, 0, 8.0), Started(2, 1, 1.0, (0,)),
        Finished(6, 1), Started(6, 0, 1.0, (0, 1)),
        Finished(14, 0),
    )  # fmt: skip
    return timeline, some_jobs((0, 2, 10, 1), (2, 1, 4, 1)), Cluster.uniform(1, 2)


@pytest.fixture
def shared_slots() -> tuple[Timeline, JobColumns, Cluster]:
    """On two nodes of one slot: a and b share slot 0, c has slot 1; when c ends, b moves there."""
    timeline = write_down(
        Arrived(1, 0), Arrived(1, 1), Arrived(1, 2),
        Started(1, 0, 2.0, (0,)), Started(1, 1, 2.0, (0,)), Started(1, 2, 1.0, (1,)),
        Finished(5, 2), Migrated(5, 1, 1.0, (1,)), Retimed(5, 0, 1.0),
        Finished(7, 0), Finished(9, 1),
    )  # fmt: skip
    return timeline, some_jobs((1, 1, 4, 1), (1, 1, 6, 1), (1, 1, 4, 1)), Cluster.uniform(2, 1)
