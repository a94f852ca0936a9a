"""The machines: what is refused, and how they become numbers."""

import numpy as np
import pytest

import rota
from rota.core.cluster import Cluster, Node, NodeChange, Slot, Slowdown
from rota.core.errors import InputError

TWO = (Node(2), Node(2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nodes": ()}, "cluster: no nodes; give at least one"),
        ({"nodes": (Node(2), Node(0))}, "cluster: node 1: 0 slots; it needs at least 1"),
        ({"nodes": TWO, "cross_node": 0.5}, "cluster: cross_node is 0.5; it must be at least 1"),
        ({"nodes": TWO, "cross_switch": float("nan")}, "cluster: cross_switch is nan; .* at least 1"),
        (
            {"nodes": (Node(1, kind="k80"),), "speeds": {"k80": {"bert": 0.0}}},
            "speed of bert on k80 is 0; it must be 1e-06 to",
        ),
        (
            {"nodes": (Node(1, kind="k80"),), "speeds": {"k8O": {"bert": 1.0}}},
            "cluster.speeds: unknown device kind 'k8O'. Did you mean 'k80'?",
        ),
        (
            {"nodes": TWO, "changes": (NodeChange(1.0, 2, joins=False),)},
            "cluster: node 2 changes at",
        ),
        (
            {"nodes": TWO, "changes": (NodeChange(-1.0, 1, joins=False),)},
            "cluster: node 1 changes at -1 s; there are nodes 0 to 1, and times are 0 or more",
        ),
        ({"nodes": TWO, "changes": (NodeChange(float("nan"), 1, joins=True),)}, "changes at nan s"),
    ],
)
def test_machines_that_cannot_be_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Cluster(**settings)


def test_slots_follow_from_nodes():
    cluster = Cluster.of(v100=2, k80=1, speeds={"v100": {"default": 2.0, "bert": 3.0}})
    fast = Slot(0, 2.0, {"bert": 3.0}, "v100")
    assert cluster.all_slots == (fast, fast, Slot(1, device="k80"))
    assert (cluster.names, cluster.switches) == (("node0", "node1"), (0, 0))


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (Cluster.of_slots([Slot(0), Slot(1), Slot(0)]), "slots are given one by one; jobs need nodes"),
        (Cluster((Node(1),), slowdowns=(Slowdown(1.0, 0, 2.0),)), "its nodes slow down; only populations"),
    ],
)
def test_jobs_refuse_a_cluster_that_only_populations_can_use(cluster, message):
    with pytest.raises(InputError, match=message):
        rota.simulate(rota.synthetic_trace(jobs=2, gpus=1), cluster, "fifo")


def test_uniform_gives_equal_nodes_per_switch():
    cluster = Cluster.uniform(2, 4, switches=3)
    assert [node.switch for node in cluster.nodes] == [0, 0, 1, 1, 2, 2]
    assert {node.slots for node in cluster.nodes} == {4}
    assert cluster.slots == 24


def test_the_table_has_a_column_per_node():
    cluster = Cluster((Node(2, 0, "v100"), Node(3, 1, "k80"), Node(1, 1, "v100")))
    assert cluster.kinds == ("v100", "k80")
    assert cluster.table().tolist() == [
        [0, 2, 5],  # the first slot of each
        [2, 3, 1],
        [0, 1, 1],  # switches
        [0, 1, 0],  # kinds
        [1, 1, 1],
    ]
    assert cluster.slot_nodes().tolist() == [0, 0, 1, 1, 1, 2]


def test_a_node_whose_first_change_is_a_join_is_not_there_before():
    changes = (
        NodeChange(9.0, 0, joins=False),  # in any order
        NodeChange(5.0, 0, joins=True),
        NodeChange(5.0, 1, joins=False),
        NodeChange(9.0, 1, joins=True),
    )
    assert Cluster((Node(1), Node(1), Node(1)), changes=changes).table()[4].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("model", "kind", "speed"), [("bert", "k80", 0.1), ("dqn", "k80", 0.25), ("bert", "v100", 1.0)]
)
def test_a_model_without_a_speed_of_its_own_has_that_of_the_rest(model, kind, speed):
    nodes = (Node(1, kind="k80"), Node(1, kind="v100"))
    cluster = Cluster(nodes, speeds={"k80": {"default": 0.25, "bert": 0.1}})
    assert cluster.speed(model, kind) == speed


def test_the_table_is_a_copy():
    cluster = Cluster(TWO)
    cluster.table()[:] = 0
    assert np.array_equal(cluster.table(), Cluster(TWO).table())
