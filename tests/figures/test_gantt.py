"""What a Gantt chart shows, as numbers."""

import numpy as np
import pytest

from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.timeline import EventKind
from rota.figures.gantt import (
    Absence,
    GanttBlock,
    absences,
    blocks,
    chart,
    default_window,
    models_by_use,
    window_of,
)
from rota.figures.page import HOUR_S

ARRIVED, STARTED, FINISHED, MOVED = EventKind.ARRIVED, EventKind.STARTED, EventKind.FINISHED, EventKind.MOVED
ALWAYS = (-np.inf, np.inf)


def test_a_gang_is_one_block_per_node(timeline_of):
    timeline = timeline_of((0, ARRIVED, 0, ()), (0, STARTED, 0, (1, 2, 3)), (5, FINISHED, 0, ()))
    assert blocks(timeline, Cluster.uniform(2, 2), ALWAYS) == [
        GanttBlock(0, 5, 0, slot=1, slots=1, low=0, high=1),
        GanttBlock(0, 5, 0, slot=2, slots=2, low=0, high=1),
    ]


def test_slots_that_do_not_lie_side_by_side_are_blocks_of_their_own(timeline_of):
    timeline = timeline_of((0, ARRIVED, 0, ()), (0, STARTED, 0, (0, 2)), (5, FINISHED, 0, ()))
    assert [(b.slot, b.slots) for b in blocks(timeline, Cluster.uniform(1, 4), ALWAYS)] == [(0, 1), (2, 1)]


def test_a_shared_slot_is_split_while_it_is_shared(timeline_of):
    timeline = timeline_of(
        (0, ARRIVED, 0, ()), (0, STARTED, 0, (0,)),
        (2, ARRIVED, 1, ()), (2, STARTED, 1, (0,)),
        (6, FINISHED, 0, ()), (9, FINISHED, 1, ()),
    )  # fmt: skip
    assert blocks(timeline, Cluster.uniform(1, 1), ALWAYS) == [
        GanttBlock(0, 2, 0, slot=0, slots=1, low=0, high=1),
        GanttBlock(2, 6, 0, slot=0, slots=1, low=0, high=0.5),
        GanttBlock(2, 6, 1, slot=0, slots=1, low=0.5, high=1),
        GanttBlock(6, 9, 1, slot=0, slots=1, low=0, high=1),
    ]


def test_a_change_of_company_elsewhere_cuts_nothing(timeline_of):
    timeline = timeline_of(
        (0, ARRIVED, 0, ()), (0, ARRIVED, 1, ()), (0, STARTED, 0, (0,)), (0, STARTED, 1, (1,)),
        (3, MOVED, 1, (2,)), (6, FINISHED, 0, ()), (6, FINISHED, 1, ()),
    )  # fmt: skip
    found = blocks(timeline, Cluster.uniform(1, 3), ALWAYS)
    assert [(b.job, b.slot, b.start_s, b.end_s) for b in found] == [(0, 0, 0, 6), (1, 1, 0, 3), (1, 2, 3, 6)]


def test_the_window_cuts_blocks(timeline_of):
    timeline = timeline_of((0, ARRIVED, 0, ()), (0, STARTED, 0, (0,)), (9, FINISHED, 0, ()))
    assert [(b.start_s, b.end_s) for b in blocks(timeline, Cluster.uniform(1, 1), (2, 5))] == [(2, 5)]


def test_nodes_that_are_not_there(timeline_of):
    cluster = Cluster((Node(1), Node(1), Node(1)), changes=(NodeChange(4, 1, True),))
    timeline = timeline_of(
        (0, ARRIVED, 0, ()), (2, EventKind.NODE_LOST, 2, ()), (4, EventKind.NODE_JOINED, 1, ()),
        (5, EventKind.NODE_JOINED, 2, ()), (8, EventKind.NODE_LOST, 0, ()),
    )  # fmt: skip
    assert absences(timeline, cluster, (1, 10)) == [Absence(1, 4, 1), Absence(2, 5, 2), Absence(8, 10, 0)]
    assert absences(timeline, cluster, (6, 7)) == []


def test_the_default_window_is_where_most_jobs_arrive(jobs_of):
    jobs = jobs_of(*[(at_s, 1, 600) for at_s in (0, 5000, 5100, 5200, 9000)], models=["bert"] * 5)
    # 40 arrivals would take 20 h, and the last job ends before that.
    assert default_window(jobs, end_s=50_000) == (0, 50_000)
    jobs = jobs_of(*[(0, 1, 600)] * 3, models=["bert"] * 3)
    assert default_window(jobs, end_s=50_000) == (0, HOUR_S)


def test_a_window_is_given_from_the_first_submit_on(make_run, three):
    assert window_of(three, (3600, 7200)) == (3600, 7200)
    assert window_of(three, None) == (0, 6 * HOUR_S)


@pytest.mark.parametrize(
    ("window_s", "unit"),
    [
        ((0, 60), "seconds"),
        ((0, 600), "minutes"),
        ((0, 9000), "hours"),
        ((0, 1e6), "hours"),
        ((0, 2e6), "days"),
    ],
)
def test_the_axis_is_in_hours_unless_the_window_is_very_short_or_long(three, window_s, unit):
    assert chart(three.runs[0], window_s).unit.name == unit


def test_models_are_listed_by_their_use(jobs_of):
    jobs = jobs_of((0, 1, 10), (0, 4, 5), (0, 1, 15), models=["bert", "vgg16", "gpt2"])
    assert models_by_use(jobs) == ["vgg16", "gpt2", "bert"]
