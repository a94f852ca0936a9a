"""The two cost models, on timelines small enough to check by hand."""

from dataclasses import replace

import pytest

from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.costs import INTERVAL, RESTART
from rota.core.timeline import Arrived, Finished, Migrated, NodeJoined, NodeLost, Preempted, Started
from rota.policies.cluster.fifo import Fifo
from rota.policies.cluster.srtf import Srtf
from rota.simulator.jobs import simulate
from rota.workload.jobs import workload

# Every job here takes a second per iteration and, being of a model that nobody has measured, 10 s to start.


def jobs(*rows):
    """Rows of (submit, gpus, seconds)."""
    submit_s, gpus, seconds = zip(*rows, strict=True)
    n = len(rows)
    return workload(
        "by hand", [f"j{i}" for i in range(n)], submit_s, gpus, ["unmeasured"] * n,
        duration_s=seconds, iterations=seconds, iteration_s=[1.0] * n, stages_s=[[0.3] * n] * 3,
    )  # fmt: skip


def timeline(work, cluster, policy, cost=RESTART):
    return list(simulate(work, cluster, policy, cost).timeline)


def test_srtf_pauses_the_long_job_which_pays_its_start_up_again():
    one_gpu = Cluster.uniform(1, 1)
    assert timeline(jobs((0, 1, 100), (30, 1, 5)), one_gpu, Srtf()) == [
        Arrived(0.0, 0),
        Started(0.0, 0, 1.0, (0,)),
        Arrived(30.0, 1),
        Preempted(30.0, 0, 80.0),  # 30 s, 10 of them start-up
        Started(30.0, 1, 1.0, (0,)),
        Finished(45.0, 1),  # 10 s start-up + 5 s work
        Started(45.0, 0, 1.0, (0,)),
        Finished(135.0, 0),  # 10 s start-up + 80 s work
    ]


def test_a_job_that_is_chosen_again_keeps_its_slots_and_pays_nothing():
    two_gpus = Cluster.uniform(1, 2)
    assert timeline(jobs((0, 1, 100), (30, 1, 5)), two_gpus, Srtf()) == [
        Arrived(0.0, 0),
        Started(0.0, 0, 1.0, (0,)),
        Arrived(30.0, 1),
        Started(30.0, 1, 1.0, (1,)),
        Finished(45.0, 1),
        Finished(110.0, 0),
    ]


def test_the_interval_model_charges_everybody_at_every_event_but_the_last():
    two_gpus = Cluster.uniform(1, 2)
    assert timeline(jobs((0, 1, 100), (30, 1, 5)), two_gpus, Srtf(), INTERVAL) == [
        Arrived(0.0, 0),
        Started(0.0, 0, 1.0, (0,)),
        Arrived(30.0, 1),
        # The first job has 80 s left: it lost 10 s in the interval that ends here. The second, being
        # shorter, is placed first on the empty cluster, so the first has to move.
        Started(30.0, 1, 1.0, (0,)),
        Migrated(30.0, 0, 1.0, (1,)),
        Finished(35.0, 1),  # the interval in which a job ends is free
        # 5 s are less than its start-up: the first job made no progress at all.
        Migrated(35.0, 0, 1.0, (0,)),
        Finished(115.0, 0),
    ]


def test_what_was_not_checkpointed_is_done_again():
    one_gpu = Cluster.uniform(1, 1)
    cost = replace(RESTART, checkpoint_every_s=15.0)
    events = timeline(jobs((0, 1, 100), (30, 1, 5)), one_gpu, Srtf(), cost)
    # 20 productive seconds by 30 s; the checkpoint after 15 counts, the other 5 are lost.
    assert Preempted(30.0, 0, 85.0) in events
    assert events[-1] == Finished(45.0 + 10.0 + 85.0, 0)


def test_a_job_on_a_lost_node_waits_for_another():
    cluster = Cluster(
        (Node(1), Node(1)), changes=(NodeChange(50.0, 0, joins=False), NodeChange(60.0, 0, joins=True))
    )
    work = jobs((0, 1, 100), (0, 1, 200))
    assert timeline(work, cluster, Fifo()) == [
        Arrived(0.0, 0),
        Arrived(0.0, 1),
        Started(0.0, 0, 1.0, (0,)),
        Started(0.0, 1, 1.0, (1,)),
        NodeLost(50.0, 0),
        Preempted(50.0, 0, 60.0),
        NodeJoined(60.0, 0),
        Started(60.0, 0, 1.0, (0,)),
        Finished(130.0, 0),
        Finished(210.0, 1),
    ]


def test_a_slow_device_stretches_the_iteration_and_a_crossing_the_synchronise_stage():
    cluster = Cluster(
        (Node(1, switch=0, kind="k80"), Node(1, switch=1)),
        cross_node=2.0,
        cross_switch=5.0,
        speeds={"k80": {"default": 0.5}},
    )
    # One GPU on the fast node, then one on the slow node: 1 s ÷ 0.5. Both: the slowest decides, plus
    # (5 - 1) × 0.3 s of synchronising.
    events = timeline(jobs((0, 1, 10), (0, 1, 10), (1000, 2, 10)), cluster, Fifo())
    assert [event.pace_s for event in events if isinstance(event, Started)] == pytest.approx(
        [1.0, 2.0, 2.0 + 4 * 0.3]
    )


def test_nodes_of_one_switch_cost_less_to_span():
    cluster = Cluster((Node(1), Node(1)), cross_node=2.0, cross_switch=5.0)
    events = timeline(jobs((0, 2, 10)), cluster, Fifo())
    assert events[1].pace_s == pytest.approx(1.0 + 1 * 0.3)


def test_fractions_of_a_gpu_share_one():
    # A GPU of four quarters is a node; a machine with two GPUs is a switch.
    cluster = Cluster((Node(4, switch=0), Node(4, switch=0)), slots_per_gpu=4)
    work = jobs((0, 0.5, 10), (0, 0.75, 10), (0, 0.25, 10), (0, 1, 10))
    events = timeline(work, cluster, Fifo())
    assert [event.slots for event in events if isinstance(event, Started)] == [
        (0, 1),
        (4, 5, 6),
        (2,),
        (0, 1, 2, 3),  # only when a whole GPU is free again
    ]
