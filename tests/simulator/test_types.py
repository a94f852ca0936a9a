"""Devices of unequal speed: which of them jobs get, and that the order of the nodes does not decide it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.core.cluster import Cluster, Node, NodeChange, as_listed, fastest_first
from rota.core.columns import ROW
from rota.core.costs import COSTS, INTERVAL, RESTART
from rota.core.engine import Instant
from rota.core.placement import STYLES, first_fit
from rota.core.timeline import Migrated, Started
from rota.policies.cluster.antman import AntMan
from rota.policies.cluster.las import Las
from rota.policies.cluster.muri import MuriL
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.policies.cluster.srtf import Srtf
from rota.results.metrics import measure
from rota.simulator.jobs import engine_for, simulate
from rota.workload.jobs import workload

SPEEDS = {"k80": {"default": 0.2}, "v100": {"default": 1.0}, "a100": {"default": 2.0}}


def jobs(*rows, models=None, kinds=(), priority=0):
    """Rows of (submit, gpus, seconds): a second per iteration, no start-up."""
    submit_s, gpus, seconds = zip(*rows, strict=True)
    n = len(rows)
    return workload(
        "by hand", [f"j{i}" for i in range(n)], submit_s, gpus, models or ["m"] * n, duration_s=seconds,
        iterations=seconds, iteration_s=[1.0] * n, stages_s=[[0.3] * n] * 3, startup_s=[0.0] * n,
        kinds=kinds, priority=[priority] * n,
    )  # fmt: skip


def machines(*kinds, slots=1, speeds=SPEEDS, **more):
    """A node of each of these kinds, in this order."""
    nodes = tuple(Node(slots, kind=kind) for kind in kinds)
    there = {kind: speeds[kind] for kind in kinds if kind in speeds}
    return Cluster(nodes, speeds=there, **more)


def jct_s(work, cluster, policy, cost=RESTART, types="fastest"):
    """The completion time of each job."""
    done = simulate(work, cluster, policy, cost, types=types)
    return measure(done.timeline, work, cluster).times.jct_s.tolist()


def starts(work, cluster, policy, types="fastest"):
    """When each job starts or moves, and to which slots."""
    events = simulate(work, cluster, policy, types=types).timeline
    return [(e.at_s, e.job, e.slots) for e in events if isinstance(e, Started | Migrated)]


def fit(cluster, gangs, style="consolidated", cost=RESTART, types="fastest", **more):
    """The slots that each gang gets on empty machines, the first gang first; None if it has to wait."""
    work = jobs(*((0, gpus, 100) for gpus in gangs), **more)
    state = engine_for(work, cluster, cost=cost, types=types)
    state.apply(Instant(0.0, np.zeros(0, np.int32), arrivals=len(gangs)))
    plan = first_fit(state.view, state.view.order, style=style)
    state.commit(plan)
    found = {int(plan.index[ROW, k]): tuple(plan.slots_of(k).tolist()) for k in range(plan.jobs)}
    return [found.get(row) for row in range(len(gangs))]


# one job


@pytest.mark.parametrize("priority", [0, 1])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_takes_the_fastest_gpu_wherever_it_is_listed(name, cost, priority):
    # An hour of work takes 3600 ÷ 2 = 1800 s on the A100 and 3600 ÷ 0.2 = 18000 s on the K80.
    work, policy = jobs((0, 1, 3600), priority=priority), scheduler_class(name)()
    for kinds in (("k80", "a100"), ("a100", "k80")):
        cluster = machines(*kinds)
        assert jct_s(work, cluster, policy, COSTS[cost]) == [1800.0]
        assert jct_s(work, cluster, policy, COSTS[cost], "blind") == [
            18000.0 if kinds[0] == "k80" else 1800.0
        ]


def test_what_is_fastest_is_asked_of_the_model():
    # On the K80 bert is faster than on the A100; what is not named runs at the speed of the rest.
    speeds = {"k80": {"default": 0.2, "bert": 4.0}, "a100": {"default": 2.0}}
    cluster = machines("k80", "a100", speeds=speeds)
    assert fit(cluster, [1, 1], models=["bert", "m"]) == [(0,), (1,)]
    assert fit(cluster, [1, 1], models=["m", "bert"]) == [(1,), (0,)]


def test_measured_speeds_of_the_trace_count_as_those_of_the_cluster_do():
    work = replace(jobs((0, 1, 3600)), speeds={"a100": {"m": 3.0}})
    assert jct_s(work, machines("k80", "a100", speeds={}), Srtf()) == [1200.0]


def test_a_job_that_is_bound_to_a_kind_of_device_stays_bound():
    cluster = machines("k80", "v100", "a100")
    assert fit(cluster, [1, 1, 1], kinds=[("v100", "k80"), ("k80",), ()]) == [(1,), (0,), (2,)]


def test_equally_fast_nodes_are_taken_as_they_are_listed():
    cluster = machines("a100", "x", "a100", "x", speeds={"a100": {"default": 1.0}})
    assert fit(cluster, [1, 1, 1, 1]) == [(0,), (1,), (2,), (3,)]


# gangs: slots 0, 1 are a K80 node, 2, 3 an A100 node, and so on

PAIRS = ("k80", "a100", "v100", "a100", "k80")


@pytest.mark.parametrize("cost", [RESTART, INTERVAL], ids=["keeping", "afresh"])
@pytest.mark.parametrize(
    ("style", "slots"),
    [
        # Both A100 nodes, the V100 node, and of the K80 nodes one and a half.
        ("consolidated", [(2, 3, 6, 7), (4, 5), (0, 1, 8)]),
        ("spread", [(2, 3, 6, 7), (4, 5), (0, 1, 8)]),
        ("anywhere", [(2, 3, 6, 7), (4, 5), (0, 1, 8)]),
    ],
)
def test_a_gang_gets_slots_of_one_type_and_of_the_fastest_that_has_enough(style, slots, cost):
    assert fit(machines(*PAIRS, slots=2), [4, 2, 3], style, cost) == slots


@pytest.mark.parametrize("style", STYLES)
def test_a_gang_leaves_fast_slots_to_others_if_it_would_not_be_faster_with_them(style):
    # Of four A100 slots three are left after the first job: a gang of four runs at the pace of the V100,
    # with or without A100s. There are four V100 slots, so it takes those.
    cluster = machines("v100", "a100", "a100", "v100", slots=2)
    first, second = fit(cluster, [1, 4], style)
    assert first == (2,)
    assert set(second) == {0, 1, 6, 7}


@pytest.mark.parametrize("style", STYLES)
def test_a_gang_spans_types_only_if_no_type_has_enough_and_then_the_fastest_ones(style):
    (slots,) = fit(machines("k80", "a100", "v100", slots=2), [4], style)
    assert set(slots) == {2, 3, 4, 5}
    (slots,) = fit(machines("k80", "a100", "v100", slots=2), [6], style)
    assert set(slots) == {0, 1, 2, 3, 4, 5}


def test_a_gang_that_fits_a_node_is_still_not_split_for_faster_ones():
    # Four A100 slots are idle, but on two nodes; where a gang may go does not depend on types.
    nodes = (Node(4, kind="k80"), Node(2, kind="a100"), Node(2, kind="a100"))
    cluster = Cluster(nodes, speeds={kind: SPEEDS[kind] for kind in ("k80", "a100")})
    assert fit(cluster, [4]) == [(0, 1, 2, 3)]


def test_a_gang_stays_in_one_switch_and_prefers_the_one_with_the_fastest_nodes():
    nodes = (Node(2, 0, "k80"), Node(2, 0, "k80"), Node(2, 1, "k80"), Node(2, 1, "a100"), Node(2, 1, "a100"))
    cluster = Cluster(nodes, speeds={"k80": SPEEDS["k80"], "a100": SPEEDS["a100"]})
    assert fit(cluster, [4, 4]) == [(6, 7, 8, 9), (0, 1, 2, 3)]
    # Six: only the second switch is large enough, so types are mixed there.
    assert fit(cluster, [6]) == [(6, 7, 8, 9, 4, 5)]


def test_a_gang_that_spans_types_does_so_in_the_order_of_its_own_model():
    # Nodes of 2, 1 and 2. A gang of three needs two of them: a and b for x, b and c for y.
    cluster = Cluster(
        (Node(2, kind="a"), Node(1, kind="b"), Node(2, kind="c")),
        speeds={"a": {"x": 3.0, "y": 1.0}, "b": {"x": 2.0, "y": 3.0}, "c": {"x": 1.0, "y": 2.0}},
    )
    assert fit(cluster, [3], models=["x"]) == [(0, 1, 2)]
    assert fit(cluster, [3], models=["y"]) == [(2, 3, 4)]


# keeping, preempting, nodes that come and go


def test_a_running_job_stays_where_it_is_when_faster_slots_come_free():
    # j0 (10 s on the A100) ends; j1 goes on with its K80 and pays no start-up.
    work = jobs((0, 1, 20), (0, 1, 40))
    assert starts(work, machines("k80", "a100"), Srtf()) == [(0.0, 0, (1,)), (0.0, 1, (0,))]


def test_a_newcomer_takes_idle_slots_before_it_preempts_others_from_faster_ones():
    work = jobs((0, 1, 100), (10, 1, 10))
    assert starts(work, machines("k80", "a100"), Srtf()) == [(0.0, 0, (1,)), (10.0, 1, (0,))]


def test_a_newcomer_takes_the_slot_of_the_one_that_will_not_stay():
    # Counting GPUs, the newcomer and j0 can run: j0 holds the A100, so the K80 is there to be taken.
    work = jobs((0, 1, 100), (0, 1, 200), (10, 1, 10))
    assert starts(work, machines("k80", "a100"), Srtf())[2] == (10.0, 2, (0,))


def test_one_that_preempts_equally_many_here_and_there_does_so_on_the_fastest():
    # Two slots each of K80 and A100. j1 has an A100, j0 the other, j2 and j3 the K80s; j1 and j3 end, so one
    # slot of each is held. The gang of two needs a node: it preempts j0 from the A100, not j2 from the K80.
    work = jobs((0, 1, 100), (0, 1, 10), (0, 1, 110), (0, 1, 2), (20, 2, 5), kinds=[
        ("a100",), ("a100",), ("k80",), ("k80",), ()])  # fmt: skip
    found = starts(work, machines("k80", "a100", slots=2), Srtf())
    assert [(at_s, slots) for at_s, job, slots in found if job == 4] == [(20.0, (2, 3))]


def test_all_are_placed_anew_where_the_cost_says_so():
    # Afresh, the first in rank has the fastest GPU at each event: after 5 s the newcomer, then j0 again.
    work = jobs((0, 1, 100), (5, 1, 10))
    done = simulate(work, machines("k80", "a100"), Srtf(), INTERVAL).timeline
    moves = [(e.at_s, e.job, e.slots) for e in done if isinstance(e, Started | Migrated)]
    assert moves == [(0.0, 0, (1,)), (5.0, 1, (1,)), (5.0, 0, (0,)), (10.0, 0, (1,))]


def test_a_node_that_is_not_there_is_not_preferred():
    changes = (NodeChange(10.0, 1, joins=True), NodeChange(20.0, 1, joins=False))
    cluster = machines("k80", "a100", changes=changes)
    work = jobs((0, 1, 100), (12, 1, 100))
    # j1 does 8 s of 100 on the A100 (16 iterations), and waits for the K80, on which j0 is until 500 s.
    assert starts(work, cluster, Srtf()) == [
        (0.0, 0, (0,)),
        (12.0, 1, (1,)),
        (20.0, 1, (0,)),
        (440.0, 0, (0,)),
    ]


# moving to faster devices (advantage)


def test_a_running_job_moves_when_faster_slots_come_free_and_that_pays():
    # j0 (10 s on the A100) ends; j1 has done 2 of 40 iterations on the K80, and does the others on the A100.
    work = jobs((0, 1, 20), (0, 1, 40))
    assert starts(work, machines("k80", "a100"), Srtf(), "advantage") == [
        (0.0, 0, (1,)),
        (0.0, 1, (0,)),
        (10.0, 1, (1,)),
    ]


@pytest.mark.parametrize(("startup_s", "moves"), [(179.0, [(10.0, 1, (1,))]), (180.0, [])])
def test_a_running_job_does_not_move_if_a_start_costs_what_it_saves(startup_s, moves):
    # At 10 s j1 is starting, so 40 iterations are left: 200 s on the K80, 20 s on the A100.
    work = replace(jobs((0, 1, 20), (0, 1, 40)), startup_s=np.array([0.0, startup_s]))
    found = starts(work, machines("k80", "a100"), Srtf(), "advantage")
    assert found == [(0.0, 0, (1,)), (0.0, 1, (0,)), *moves]


def test_who_does_not_know_durations_takes_a_job_to_have_as_much_left_as_it_has_done():
    # When j0 ends, j1 has done 2 iterations: 2 more take 10 s on the K80, 1 s on the A100.
    for startup_s, moves in ((8.0, True), (9.0, False)):
        work = replace(jobs((0, 1, 20), (0, 1, 40)), startup_s=np.array([0.0, 0.0]))
        late = replace(work, submit_s=np.array([0.0, 0.0]), startup_s=np.array([0.0, startup_s]))
        late = replace(
            late, iterations=np.array([20.0 + 2.0 * startup_s, 40.0])
        )  # so that j1 has run for 10 s
        found = starts(late, machines("k80", "a100"), Las(), "advantage")
        assert (found[2:] == [(10.0 + startup_s, 1, (1,))]) == moves
        assert moves or not found[2:]


def test_gangs_move_whole_and_nobody_moves_between_equal_devices():
    # The gang of two is on both K80 slots; when j0 ends after 10 s the A100 node is free, and it goes there.
    cluster = machines("k80", "a100", "a100", slots=2, speeds=SPEEDS)
    work = jobs((0, 2, 20), (0, 2, 30), (0, 2, 50))
    found = starts(work, cluster, Srtf(), "advantage")
    assert found[:3] == [(0.0, 0, (2, 3)), (0.0, 1, (4, 5)), (0.0, 2, (0, 1))]
    assert found[3:] == [(10.0, 2, (2, 3))]


def test_of_two_kinds_on_which_a_model_is_as_fast_it_takes_that_from_which_others_gain_less():
    speeds = {"a": {"x": 1.0, "y": 4.0}, "b": {"x": 1.0, "y": 1.0}}
    cluster = machines("a", "b", speeds=speeds)
    assert fit(cluster, [1, 1], models=["x", "y"]) == [(0,), (1,)]
    assert fit(cluster, [1, 1], models=["x", "y"], types="advantage") == [(1,), (0,)]


# schedulers with a placement of their own


def test_antman_gives_guests_idle_gpus_of_the_fastest_type_first():
    # The guaranteed job has the A100. The first guest gets the V100, which is idle, the second the K80, and
    # the third shares the A100.
    work = jobs((0, 1, 100), (1, 1, 100), (1, 1, 100), (1, 1, 100))
    work = replace(work, priority=np.array([0, 1, 1, 1]))
    cluster = machines("k80", "v100", "a100")
    assert [slots for _, _, slots in starts(work, cluster, AntMan())] == [(2,), (1,), (0,), (2,)]


def test_antman_gives_a_gang_of_guests_gpus_of_one_type():
    # One A100 and two V100 are idle: a gang of two is not faster with the A100.
    work = jobs((0, 2, 100), priority=1)
    assert [slots for *_, slots in starts(work, machines("k80", "a100", "v100", "v100"), AntMan())] == [
        (2, 3)
    ]


def test_antman_reserves_whole_nodes_of_one_type():
    cluster = machines("k80", "k80", "a100", "v100", "a100", slots=2)
    assert [slots for *_, slots in starts(jobs((0, 4, 100)), cluster, AntMan())] == [(4, 5, 8, 9)]
    assert [slots for *_, slots in starts(jobs((0, 6, 100)), cluster, AntMan())] == [(4, 5, 6, 7, 8, 9)]


def test_a_group_of_muri_goes_where_its_first_member_is_fastest():
    work = jobs((0, 1, 100), (0, 1, 100), (0, 1, 100))
    groups = {slots for *_, slots in starts(work, machines("k80", "a100"), MuriL())}
    alone = {slots for *_, slots in starts(work.head(1), machines("k80", "a100"), MuriL())}
    assert groups == {(0,), (1,)}
    assert alone == {(1,)}


# the order of the nodes


@st.composite
def listed_twice(draw):
    """A cluster, and the same one with its nodes listed otherwise: those of one kind in the same order.

    Every model has another speed on each kind. Nodes have any size and switch, and may leave and come back.
    """
    kinds = ["a", "b", "c"][: draw(st.integers(2, 3))]
    models = ["x", "y"]
    speeds = {m: draw(st.permutations([0.25, 1.0, 3.0])) for m in models}
    table = {k: {m: speeds[m][number] for m in models} for number, k in enumerate(kinds)}
    nodes = [Node(draw(st.integers(1, 4)), draw(st.integers(0, 1)), draw(st.sampled_from(kinds)))
             for _ in range(draw(st.integers(1, 6)))] + [Node(2, 0, kind) for kind in kinds]  # fmt: skip
    changes = [
        NodeChange(at_s, node, joins)
        for node in draw(st.sets(st.integers(0, len(nodes) - 1), max_size=2))
        for at_s, joins in ((draw(st.sampled_from([0.0, 30.0, 75.5])), False), (200.0, True))
    ]
    cross = draw(st.sampled_from([(1.0, 1.0), (1.5, 3.0)]))
    queues = {kind: [number for number, node in enumerate(nodes) if node.kind == kind] for kind in kinds}
    turns = draw(st.permutations([node.kind for node in nodes]))
    again = [queues[kind].pop(0) for kind in turns]
    moved = {before: now for now, before in enumerate(again)}
    other = [replace(change, node=moved[change.node]) for change in changes]
    return (
        Cluster(tuple(nodes), *cross, table, changes=tuple(changes)),
        Cluster(tuple(nodes[number] for number in again), *cross, table, changes=tuple(other)),
    )


@st.composite
def traces(draw, largest):
    n = draw(st.integers(1, 12))
    gangs = [gpus for gpus in (1, 1, 1, 2, 2, 3, 4, 6) if gpus <= largest]
    each = {"min_size": n, "max_size": n}
    stage = st.sampled_from([0.1, 0.4, 0.7])
    sizes = draw(st.lists(st.sampled_from(gangs), **each))
    kinds = draw(st.lists(st.sampled_from([(), (), (), ("a",), ("a", "b")]), **each))
    return workload(
        "random", [f"j{i}" for i in range(n)],
        draw(st.lists(st.sampled_from([0.0, 5.0, 31.0, 80.0]), **each)),
        [min(gpus, 2) if bound else gpus for gpus, bound in zip(sizes, kinds, strict=True)],
        draw(st.lists(st.sampled_from(["x", "y"]), **each)),
        duration_s=(seconds := draw(st.lists(st.sampled_from([3.0, 20.0, 100.0, 333.3]), **each))),
        iterations=seconds, iteration_s=[1.0] * n, stages_s=[draw(st.lists(stage, **each)) for _ in range(3)],
        startup_s=draw(st.lists(st.sampled_from([0.0, 4.0]), **each)),
        priority=draw(st.lists(st.integers(0, 1), **each)), kinds=kinds,
    )  # fmt: skip


@pytest.mark.parametrize("types", ["fastest", "advantage"])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=15, deadline=None)
@given(data=st.data(), clusters=listed_twice())
def test_completion_times_do_not_depend_on_the_order_in_which_types_are_listed(
    name, cost, types, data, clusters
):
    once, again = clusters
    work = data.draw(traces(min(6, once.slots)))
    policy = scheduler_class(name)()
    assert jct_s(work, once, policy, COSTS[cost], types) == jct_s(work, again, policy, COSTS[cost], types)


@pytest.mark.parametrize("style", ["spread", "anywhere"])
@pytest.mark.parametrize("cost", COSTS)
@settings(max_examples=30, deadline=None)
@given(data=st.data(), clusters=listed_twice())
def test_nor_do_they_with_other_styles(style, cost, data, clusters):
    once, again = clusters
    work = data.draw(traces(min(6, once.slots)))
    assert jct_s(work, once, Srtf(style), COSTS[cost]) == jct_s(work, again, Srtf(style), COSTS[cost])


# preferences


def test_preferences_are_an_order_per_distinct_ranking():
    cluster = Cluster((Node(1, 0, "a"), Node(1, 1, "b"), Node(1, 0, "a"), Node(1, 1, "c")))
    speeds = np.array([[1.0, 2.0, 2.0], [0.1, 0.5, 0.5], [3.0, 2.0, 1.0]])
    found = fastest_first(cluster, speeds, np.array([0, 1, 0, 2]))
    assert found.of_model.tolist() == [1, 1, 0]
    assert found.rows.tolist() == [
        [0, 2, 1, 3],  # as listed, the first switch first
        [2, 3, -1, -1],
        [1, 1, 0, 0],
        [0, 1, 0, 2],
        [1, 3, 0, 2],  # b and c are equally fast
        [2, 3, -1, -1],
        [1, 1, 0, 0],
        [1, 0, 1, 0],
    ]


def test_without_differences_all_models_have_the_order_of_the_list():
    cluster = Cluster((Node(1, 0, "a"), Node(1, 1, "b")))
    found, listed = fastest_first(cluster, np.full((3, 2), 2.5), np.array([0, 1])), as_listed(cluster)
    assert found.rows.tolist() == listed.rows.tolist()
    table = jobs((0, 1, 1)).table(cluster)
    assert found.put_into(table) is table
    assert listed.put_into(table) is table
