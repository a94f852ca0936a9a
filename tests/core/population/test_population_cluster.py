"""Slots, their nodes, and what is refused."""

from math import inf, nan

import pytest

from rota.core.cluster import Cluster, NodeChange, Slot, Slowdown
from rota.core.errors import InputError

TWO = (Slot(0), Slot(1))


def test_a_cluster_of_speeds_has_one_slot_per_node():
    cluster = Cluster.of_speeds([1.0, 8.0])
    assert cluster.all_slots == (Slot(0, 1.0), Slot(1, 8.0))
    assert (cluster.names, cluster.switches) == (("node0", "node1"), (0, 0))


def test_a_slot_has_its_own_speed_with_kinds_for_which_it_is_said():
    slot = Slot(0, 2.0, {"resnet50": 0.5})
    assert (slot.speed_of("resnet50"), slot.speed_of("resnet18")) == (0.5, 2.0)


def test_who_joins_first_is_late_and_who_leaves_first_is_not():
    changes = ((9.0, 0, True), (3.0, 0, False), (4.0, 1, True), (5.0, 1, False))
    assert Cluster.of_slots(TWO, changes=tuple(NodeChange(*change) for change in changes)).late == {1}


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"slots": ()}, "none; give at least one"),
        ({"slots": (Slot(-1),)}, "nodes are numbered from 0"),
        ({"slots": TWO, "names": ("a",)}, "2 nodes, but 1 names"),
        ({"slots": TWO, "switches": (0,)}, "2 nodes, but 2 names, 1 switches"),
        ({"slots": (Slot(0), Slot(0, 0.0))}, "slot 1: speed 0; it must be 1e-06 to 1e[+]06"),
        ({"slots": (Slot(0, nan),)}, "slot 0: speed nan"),
        ({"slots": (Slot(0, 1.0, {"big": inf}),)}, "slot 0: speed inf"),
        (
            {"slots": TWO, "changes": (NodeChange(1.0, 2, True),)},
            "node 2 changes at 1 s; there are nodes 0 to 1",
        ),
        ({"slots": TWO, "changes": (NodeChange(-1.0, 0, True),)}, "at -1 s; .* times are 0 or more"),
        ({"slots": TWO, "slowdowns": (Slowdown(inf, 0, 2.0),)}, "at inf s"),
        ({"slots": TWO, "slowdowns": (Slowdown(1.0, 0, 0.0),)}, "node 0: factor 0; it must be above 0"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(wrong, complaint):
    with pytest.raises(InputError, match=f"^slots: .*{complaint}"):
        Cluster.of_slots(**wrong)


# trials that take several slots


def test_a_span_is_as_fast_as_its_slots_would_be_if_all_were_like_the_slowest():
    cluster = Cluster.of_slots((Slot(0, 1.0), Slot(0, 3.0), Slot(0, 2.0), Slot(1, 4.0), Slot(1, 5.0)))
    # Node 0: 3 and 2 together, the 1 is left over; node 1: 5 and 4. Each twice the slower, at 90 %.
    assert [(slot.node, slot.speed) for slot in cluster.spanned(2, 0.9).all_slots] == [(0, 3.6), (1, 7.2)]


def test_slots_of_a_node_need_not_stand_together():
    cluster = Cluster.of_slots((Slot(0), Slot(1), Slot(0), Slot(1)))
    assert [slot.node for slot in cluster.spanned(2).all_slots] == [0, 1]


def test_a_span_has_the_speed_of_its_slowest_slot_with_each_kind():
    cluster = Cluster.of_slots((Slot(0, 4.0, {"a": 1.0}), Slot(0, 2.0, {"b": 3.0})))
    # With `a` the second has its usual 2, with `b` the first its usual 4.
    (span,) = cluster.spanned(2).all_slots
    assert (span.speed, dict(span.speeds)) == (4.0, {"a": 2.0, "b": 6.0})


def test_spans_keep_what_is_known_about_nodes_and_spans_of_one_keep_everything():
    cluster = Cluster.of_slots(
        (Slot(0), Slot(1), Slot(0), Slot(1)),
        names=("a", "b"),
        switches=(0, 1),
        changes=(NodeChange(1.0, 1, False),),
        slowdowns=(Slowdown(1, 1, 2),),
    )
    assert cluster.spanned(2) == Cluster.of_slots(
        (Slot(0, 2.0), Slot(1, 2.0)), ("a", "b"), (0, 1), cluster.changes, cluster.slowdowns
    )
    assert cluster.spanned(1) is cluster


def test_nodes_without_room_for_a_span_are_left_out_and_the_others_numbered_anew():
    cluster = Cluster.of_slots(
        (Slot(0), Slot(1), Slot(1), Slot(2), Slot(3), Slot(3)),
        names=("a", "b", "c", "d"),
        switches=(0, 1, 2, 3),
        changes=(NodeChange(1.0, 0, True), NodeChange(2.0, 1, False), NodeChange(3.0, 3, True)),
        slowdowns=(Slowdown(1, 2, 2), Slowdown(2, 3, 2)),
    )
    assert cluster.spanned(2) == Cluster.of_slots(
        (Slot(0, 2.0), Slot(1, 2.0)),
        names=("b", "d"),
        switches=(1, 3),
        changes=(NodeChange(2.0, 0, False), NodeChange(3.0, 1, True)),
        slowdowns=(Slowdown(2, 1, 2),),
    )


@pytest.mark.parametrize(
    ("count", "efficiency", "complaint"),
    [
        (0, 1.0, "spans of 0"),
        (2, 0.0, "efficiency 0"),
        (2, 1.5, "efficiency 1.5"),
        (3, 1.0, "no node has 3 slots for a trial; give fewer slots per trial"),
    ],
)
def test_spans_that_cannot_be_are_refused(count, efficiency, complaint):
    with pytest.raises(InputError, match=complaint):
        Cluster.of_slots((Slot(0), Slot(0), Slot(1))).spanned(count, efficiency)
