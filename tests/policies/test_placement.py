"""Where first fit puts gangs, and whom it leaves in peace."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.columns import ROW
from rota.core.costs import INTERVAL, RESTART
from rota.core.engine import JobsEngine
from rota.core.instant import Instant
from rota.core.placement import STYLES, first_fit
from rota.core.timeline import Arrived, Finished, Migrated, Preempted, Started
from rota.policies.cluster.fifo import Fifo
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.policies.cluster.srtf import Srtf
from rota.simulator.jobs import simulate
from rota.workload.jobs import workload

ANY = ()


def jobs(*rows, kinds=()):
    """Rows of (submit, gpus, seconds): a second per iteration, 10 s to start (the model is not measured)."""
    submit_s, gpus, seconds = zip(*rows, strict=True)
    n = len(rows)
    return workload(
        "by hand", [f"j{i}" for i in range(n)], submit_s, gpus, ["unmeasured"] * n, duration_s=seconds,
        iterations=seconds, iteration_s=[1.0] * n, stages_s=[[0.3] * n] * 3, kinds=kinds,
    )  # fmt: skip


def fit(cluster, gangs, style="consolidated", kinds=(), cost=RESTART, strict=False):
    """The slots that each gang gets on empty machines, the first gang first; None if it has to wait."""
    work = jobs(*((0, gpus, 100) for gpus in gangs), kinds=kinds)
    state = JobsEngine(work.table(cluster), cluster, cost)
    state.apply(Instant(0.0, np.zeros(0, np.int32), arrivals=len(gangs)))
    plan = first_fit(state.view, state.view.order, style=style, strict=strict)
    state.commit(plan)
    found = {int(plan.index[ROW, k]): tuple(plan.slots_of(k).tolist()) for k in range(plan.jobs)}
    return [found.get(row) for row in range(len(gangs))]


# consolidated


def test_a_gang_goes_to_the_first_node_that_has_room_for_all_of_it():
    # One slot of the first node is left when the gang of two comes; it is not torn apart for it.
    assert fit(Cluster.uniform(2, 4), [3, 2, 1]) == [(0, 1, 2), (4, 5), (3,)]


def test_a_gang_that_fits_a_node_is_never_split_even_if_it_has_to_wait():
    assert fit(Cluster.uniform(2, 4), [3, 3, 2, 1]) == [(0, 1, 2), (4, 5, 6), None, (3,)]


def test_nobody_overtakes_with_strict():
    assert fit(Cluster.uniform(2, 4), [3, 3, 2, 1], strict=True) == [(0, 1, 2), (4, 5, 6), None, None]


def test_a_gang_larger_than_a_node_gets_whole_idle_nodes_and_the_rest_on_another():
    # Six: node 1 is idle and goes whole, the other two are on the first node that has two left.
    assert fit(Cluster.uniform(3, 4), [1, 6]) == [(0,), (4, 5, 6, 7, 1, 2)]


def test_it_waits_if_too_few_nodes_are_idle():
    # Six slots are left, three on each node; but four of the six must be on a node that is idle.
    halves = Cluster((Node(4, kind="a"), Node(4, kind="b")))
    assert fit(halves, [1, 1, 6], kinds=[("a",), ("b",), ANY]) == [(0,), (4,), None]


def test_unequal_nodes_are_used_whole_as_long_as_they_are_needed_whole():
    # Seven: 3 and 2 whole, then the rest of 2 on the node of 4, which is not needed whole.
    assert fit(Cluster((Node(3), Node(2), Node(4))), [7]) == [(0, 1, 2, 3, 4, 5, 6)]
    # Five: 3 and 2 whole, and nothing is left to place.
    assert fit(Cluster((Node(3), Node(2), Node(4))), [5]) == [(0, 1, 2, 3, 4)]


TWO_SWITCHES = Cluster(
    (Node(2, 0, "a"), Node(2, 0, "a"), Node(2, 1, "b"), Node(2, 1, "b"))  # slots 0 to 3, slots 4 to 7
)


def test_a_gang_stays_in_one_switch():
    # Three slots are left in the first switch, so the gang of four goes to the second and that of three fits.
    assert fit(TWO_SWITCHES, [1, 4, 3]) == [(0,), (4, 5, 6, 7), (2, 3, 1)]


def test_a_gang_waits_for_a_switch_that_is_large_enough_rather_than_span_two():
    # 3 + 3 slots are left.
    assert fit(TWO_SWITCHES, [1, 1, 4], kinds=[("a",), ("b",), ANY]) == [(0,), (4,), None]


def test_a_gang_spans_switches_only_if_no_switch_is_large_enough():
    assert fit(TWO_SWITCHES, [5]) == [(0, 1, 2, 3, 4)]
    assert fit(TWO_SWITCHES, [1, 5]) == [(0,), (2, 3, 4, 5, 1)]


def test_a_switch_is_one_switch_wherever_its_nodes_are_listed():
    assert fit(Cluster((Node(1, 0), Node(1, 1), Node(1, 0))), [2]) == [(0, 2)]


def test_any_number_may_be_that_of_a_switch():
    assert fit(Cluster((Node(1, -1), Node(1, 1), Node(1, -1))), [2]) == [(0, 2)]


# spread, anywhere


def test_spread_takes_one_slot_after_another_from_the_node_with_the_most():
    # Free: 4 4 4, then 3 3 3, then 2 2 3; so the last takes one of the third node first, then of the first.
    assert fit(Cluster.uniform(3, 4), [3, 2, 2], "spread") == [(0, 4, 8), (1, 5), (2, 9)]


def test_anywhere_counts_slots_as_if_there_were_no_nodes():
    assert fit(Cluster.uniform(2, 4), [3, 3, 3, 2], "anywhere") == [(0, 1, 2), (3, 4, 5), None, (6, 7)]


# device kinds

MIXED = Cluster((Node(2, 0, "k80"), Node(2, 0, "v100"), Node(2, 1, "k80"), Node(2, 1, "v100")))


@pytest.mark.parametrize(
    ("style", "slots"),
    [
        # Both v100 nodes, in different switches: 3 is more than either has.
        ("consolidated", [(2, 3, 6), (0,)]),
        ("spread", [(2, 3, 6), (0,)]),
        ("anywhere", [(2, 3, 6), (0,)]),
    ],
)
def test_a_gang_only_gets_devices_that_it_may_use(style, slots):
    assert fit(MIXED, [3, 1], style, kinds=[("v100",), ("k80",)]) == slots


def test_one_that_may_use_few_devices_does_not_stop_others_of_its_size():
    assert fit(MIXED, [2, 2, 2, 2], kinds=[("v100",), ("v100",), ("v100",), ANY]) == [
        (2, 3),
        (6, 7),
        None,
        (0, 1),
    ]


def test_one_may_name_several_kinds_and_some_that_are_not_there():
    assert fit(MIXED, [2, 2], kinds=[("a100", "v100"), ("k80", "v100")]) == [(2, 3), (0, 1)]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_gives_jobs_devices_that_they_may_use(name):
    kinds = [("v100",), ("k80",)] * 4
    work = jobs(*[(0, 1, 100)] * 8, kinds=kinds)
    cluster = Cluster((Node(1, 0, "k80"), Node(1, 0, "v100")))
    starts = [
        event
        for event in simulate(work, cluster, scheduler_class(name)()).timeline
        if isinstance(event, Started | Migrated)
    ]
    assert {cluster.nodes[slot].kind for event in starts for slot in event.slots if event.job % 2} == {"k80"}
    assert {cluster.nodes[slot].kind for event in starts for slot in event.slots if not event.job % 2} == {
        "v100"
    }


@st.composite
def machines_and_gangs(draw):
    """Unequal nodes of three kinds in up to three switches, and gangs that fit what they may use."""
    switches = sorted(draw(st.lists(st.integers(0, 2), min_size=1, max_size=6)))
    nodes = tuple(
        Node(draw(st.integers(1, 8)), switch, draw(st.sampled_from(["a", "b", "c"]))) for switch in switches
    )
    gangs, kinds = [], []
    for _ in range(draw(st.integers(1, 12))):
        allowed = tuple(draw(st.sets(st.sampled_from(sorted({node.kind for node in nodes})))))
        room = sum(node.slots for node in nodes if not allowed or node.kind in allowed)
        gangs.append(draw(st.integers(1, room)))
        kinds.append(allowed)
    return Cluster(nodes), gangs, kinds


@pytest.mark.parametrize("cost", [RESTART, INTERVAL], ids=["keeping", "afresh"])
@pytest.mark.parametrize("style", STYLES)
@given(drawn=machines_and_gangs())
def test_every_gang_is_whole_alone_on_its_slots_and_on_devices_it_may_use(style, cost, drawn):
    cluster, gangs, kinds = drawn
    node_of = cluster.slot_nodes()
    placed = fit(cluster, gangs, style, kinds, cost)
    assert placed[0] is not None, "whoever comes first fits on empty machines"
    used = [slot for slots in placed if slots for slot in slots]
    assert len(set(used)) == len(used)
    for slots, gpus, allowed in zip(placed, gangs, kinds, strict=True):
        if slots is None:
            continue
        nodes = [cluster.nodes[node_of[slot]] for slot in slots]
        assert len(slots) == gpus
        assert all(not allowed or node.kind in allowed for node in nodes)
        usable = [node for node in cluster.nodes if not allowed or node.kind in allowed]
        switches = {node.switch for node in usable}
        if style == "consolidated" and gpus <= max(node.slots for node in usable):
            assert len({node_of[slot] for slot in slots}) == 1, "split although it fits a node"
        elif style == "consolidated" and gpus <= max(
            sum(node.slots for node in usable if node.switch == switch) for switch in switches
        ):
            assert len({node.switch for node in nodes}) == 1, "spans switches although it fits one"


# keeping slots: shortest remaining time first under the restart cost


def timeline(work, cluster):
    return list(simulate(work, cluster, Srtf()).timeline)


def test_a_newcomer_takes_a_free_slot_before_anybody_is_preempted():
    # At 30 s the newcomer, being the shortest, chooses first; slot 2 is free.
    work = jobs((0, 1, 100), (0, 1, 200), (30, 1, 5))
    assert timeline(work, Cluster.uniform(1, 3))[5:] == [
        Started(30.0, 2, 1.0, (2,)),
        Finished(45.0, 2),
        Finished(110.0, 0),
        Finished(210.0, 1),
    ]


def test_a_newcomer_takes_the_slot_of_who_will_not_stay():
    # Both slots are taken, and the long job on slot 1 has to go anyway: the other keeps slot 0.
    work = jobs((0, 1, 100), (0, 1, 200), (30, 1, 5))
    assert timeline(work, Cluster.uniform(1, 2)) == [
        Arrived(0.0, 0),
        Arrived(0.0, 1),
        Started(0.0, 0, 1.0, (0,)),
        Started(0.0, 1, 1.0, (1,)),
        Arrived(30.0, 2),
        Preempted(30.0, 1, 180.0),
        Started(30.0, 2, 1.0, (1,)),
        Finished(45.0, 2),
        Started(45.0, 1, 1.0, (1,)),
        Finished(110.0, 0),
        Finished(235.0, 1),
    ]


def test_a_gang_goes_where_nobody_is_who_will_stay():
    # Two nodes of two: jobs of 60, 80 and 200 s are on slots 0, 1 and 2, slot 3 is free. At 30 s a gang of
    # two, the shortest, comes. By counting, it and the jobs of 60 and 80 s can run, so the job of 200 s holds
    # nothing: node 0 is held by both others, node 1 by nobody. Nobody who can stay has to move.
    work = jobs((0, 1, 60), (0, 1, 80), (0, 1, 200), (30, 2, 5))
    assert timeline(work, Cluster.uniform(2, 2))[6:] == [
        Arrived(30.0, 3),
        Preempted(30.0, 2, 180.0),
        Started(30.0, 3, 1.0, (2, 3)),
        Finished(45.0, 3),
        Started(45.0, 2, 1.0, (2,)),
        Finished(70.0, 0),
        Finished(90.0, 1),
        Finished(235.0, 2),
    ]


def test_who_preempts_others_does_so_where_fewest_are():
    # Two nodes of three, jobs of one GPU: 100, 110 and 200 s on node 0, 50 s on node 1. A gang of three, the
    # shortest, comes at 30 s. By counting, it and the jobs of 50, 100 and 110 s can run; the one of 200 s
    # cannot. Of node 0 one slot is held by nobody, of node 1 two: there it preempts one job instead of
    # two. The job of 50 s moves to the slot that the one of 200 s leaves.
    work = jobs((0, 1, 100), (0, 1, 110), (0, 1, 200), (1, 1, 50), (30, 3, 5))
    assert timeline(work, Cluster.uniform(2, 3))[8:] == [
        Arrived(30.0, 4),
        Preempted(30.0, 2, 180.0),
        Started(30.0, 4, 1.0, (4, 5, 3)),
        Migrated(30.0, 3, 1.0, (2,)),
        Finished(45.0, 4),
        Started(45.0, 2, 1.0, (3,)),
        Finished(71.0, 3),  # 31 of its 50 s were left, and it pays its start-up again
        Finished(110.0, 0),
        Finished(120.0, 1),
        Finished(235.0, 2),
    ]


def test_a_gang_that_needs_whole_nodes_preempts_all_who_are_in_its_way():
    # Two nodes of two; the gang of four needs both.
    work = jobs((0, 1, 100), (30, 4, 5))
    assert timeline(work, Cluster.uniform(2, 2))[2:6] == [
        Arrived(30.0, 1),
        Preempted(30.0, 0, 80.0),
        Started(30.0, 1, 1.0, (0, 1, 2, 3)),
        Finished(45.0, 1),
    ]


# nodes that are gone, device kinds that differ


def test_a_gang_is_split_when_the_only_node_that_was_large_enough_has_left():
    gone = Cluster((Node(8), Node(4), Node(4)), changes=(NodeChange(10.0, 0, joins=False),))
    done = simulate(jobs((20, 8, 100)), gone, Fifo())
    assert [event.slots for event in done.timeline if isinstance(event, Started)] == [
        (8, 9, 10, 11, 12, 13, 14, 15)
    ]


def test_who_may_use_other_devices_is_not_kept_out_by_those_who_did_not_fit():
    # The second job does not fit on the node of eight that the first has; the third may not use that one
    # anyway, and for it the two of four are the largest there are.
    cluster = Cluster((Node(8, 0, "a"), Node(4, 0, "b"), Node(4, 0, "b")))
    work = jobs((0, 8, 10), (0, 8, 20), (0, 8, 30), kinds=[(), (), ("b",)])
    done = simulate(work, cluster, Srtf())
    starts = {event.job: event.at_s for event in done.timeline if isinstance(event, Started)}
    assert starts == {0: 0.0, 1: 20.0, 2: 0.0}
