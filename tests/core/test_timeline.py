"""A timeline: arrays that grow while it is written, events when it is read."""

import numpy as np
import pytest

from rota.core.timeline import (
    EVENT,
    Arrived,
    AttemptFailed,
    EventKind,
    Failed,
    Finished,
    Migrated,
    NodeJoined,
    NodeLost,
    Preempted,
    Resized,
    Retimed,
    RolledBack,
    Started,
    Timeline,
    TimelineWriter,
)


def test_a_journal_doubles_when_it_is_full_and_keeps_what_is_in_it():
    journal = TimelineWriter(events=2, slots=3)
    for at_s in range(5):
        journal.reserve(1, 1)
        journal.events[journal.count] = (at_s, 0.0, at_s, at_s, 1, EventKind.STARTED)
        journal.slots[journal.used] = 10 + at_s
        journal.count += 1
        journal.used += 1
    assert (len(journal.events), len(journal.slots)) == (8, 6)
    assert list(journal.timeline()) == [Started(float(i), i, 0.0, (10 + i,)) for i in range(5)]


@pytest.mark.parametrize(("wanted", "length"), [(0, 4), (4, 4), (5, 8), (9, 9), (1000, 1000)])
def test_a_journal_has_room_for_all_that_is_announced(wanted, length):
    journal = TimelineWriter(events=4, slots=4)
    journal.reserve(wanted, wanted)
    assert (len(journal.events), len(journal.slots)) == (length, length)


def test_a_timeline_is_read_as_events():
    records = np.array(
        [
            (0.0, 0.0, 0, 7, 0, EventKind.ARRIVED),
            (1.0, 0.5, 0, 7, 2, EventKind.STARTED),
            (2.0, 0.6, 2, 7, 2, EventKind.MOVED),
            (3.0, 0.7, 0, 7, 0, EventKind.PACED),
            (4.0, 80.0, 0, 7, 0, EventKind.PAUSED),
            (5.0, 0.0, 0, 1, 0, EventKind.NODE_LOST),
            (6.0, 0.0, 0, 1, 0, EventKind.NODE_JOINED),
            (7.0, 0.0, 0, 7, 0, EventKind.FINISHED),
            (7.0, 8.0, 0, 5, 0, EventKind.FAILED),
            (8.0, 3.0, 0, 4, 0, EventKind.ROLLED_BACK),
            (8.0, 9.0, 0, 4, 0, EventKind.ATTEMPT_FAILED),
            (9.0, 0.4, 2, 3, 2, EventKind.RESIZED),
        ],
        EVENT,
    )
    timeline = Timeline(records, np.array([3, 4, 0, 1], np.int32))
    assert len(timeline) == len(EventKind)
    assert list(timeline) == [
        Arrived(0.0, 7),
        Started(1.0, 7, 0.5, (3, 4)),
        Migrated(2.0, 7, 0.6, (0, 1)),
        Retimed(3.0, 7, 0.7),
        Preempted(4.0, 7, 80.0),
        NodeLost(5.0, 1),
        NodeJoined(6.0, 1),
        Finished(7.0, 7),
        Failed(7.0, 5, 8.0),
        RolledBack(8.0, 4, 3.0),
        AttemptFailed(8.0, 4, 9.0),
        Resized(9.0, 3, 0.4, (0, 1)),
    ]


def test_what_is_read_is_plain_python():
    records = np.array([(1.0, 0.5, 0, 7, 1, EventKind.STARTED)], EVENT)
    (event,) = Timeline(records, np.array([3], np.int32))
    assert [type(value) for value in (event.at_s, event.job, event.pace_s, event.slots[0])] == [
        float,
        int,
        float,
        int,
    ]
