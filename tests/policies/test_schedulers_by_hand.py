"""What each scheduler is about, on timelines small enough to work out by hand."""

import math

import numpy as np
import pytest

from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.costs import INTERVAL, RESTART
from rota.core.timeline import Arrived, Finished, NodeLost, Preempted, Retimed, Started
from rota.policies.cluster.antman import AntMan
from rota.policies.cluster.fifo import Fifo
from rota.policies.cluster.gittins import BINS, Gittins, gittins_index
from rota.policies.cluster.las import Las
from rota.policies.cluster.muri import MuriL, MuriLNoBlossom, MuriLWorstOrder, MuriS
from rota.policies.cluster.random import Random
from rota.policies.cluster.srsf import Srsf
from rota.policies.cluster.srtf import Srtf
from rota.policies.cluster.themis import Themis, fairest_shares
from rota.policies.cluster.tiresias import Tiresias
from rota.simulator.jobs import simulate
from rota.workload.jobs import workload

# Every job here takes a second per iteration and, being of a model that nobody has measured, 10 s to start.

EVEN = (0.3, 0.3, 0.3)
COMPUTE, SYNC = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def jobs(*rows, stages=EVEN, priority=None, kinds=()):
    """Rows of (submit, gpus, seconds); the three stages of an iteration, of each job or of all."""
    submit_s, gpus, seconds = zip(*rows, strict=True)
    n = len(rows)
    per_job = [stages] * n if isinstance(stages[0], float) else stages
    return workload(
        "by hand", [f"j{i}" for i in range(n)], submit_s, gpus, ["unmeasured"] * n, duration_s=seconds,
        iterations=seconds, iteration_s=[1.0] * n, stages_s=np.array(per_job).T,
        priority=priority, kinds=kinds,
    )  # fmt: skip


def timeline(work, cluster, policy, cost=RESTART):
    return list(simulate(work, cluster, policy, cost).timeline)


def rounded(events):
    """The same with times and amounts to a millionth."""
    return [
        type(event)(
            *(
                round(value, 6) if isinstance(value, float) else value
                for value in (getattr(event, name) for name in type(event).__match_args__)
            )
        )
        for event in events
    ]


# FIFO: a gang of two has to wait for the first job, and there is a short job behind it.

ONE_BLOCKS_ANOTHER = jobs((0, 1, 100), (10, 2, 50), (20, 1, 5))


def test_under_strict_fifo_nobody_overtakes_a_gang_that_waits():
    assert timeline(ONE_BLOCKS_ANOTHER, Cluster.uniform(1, 2), Fifo()) == [
        Arrived(0.0, 0),
        Started(0.0, 0, 1.0, (0,)),
        Arrived(10.0, 1),
        Arrived(20.0, 2),
        Finished(110.0, 0),
        Started(110.0, 1, 1.0, (0, 1)),
        Finished(170.0, 1),
        Started(170.0, 2, 1.0, (0,)),
        Finished(185.0, 2),
    ]


def test_with_backfill_a_later_job_uses_what_the_gang_cannot():
    assert timeline(ONE_BLOCKS_ANOTHER, Cluster.uniform(1, 2), Fifo(backfill=True)) == [
        Arrived(0.0, 0),
        Started(0.0, 0, 1.0, (0,)),
        Arrived(10.0, 1),
        Arrived(20.0, 2),
        Started(20.0, 2, 1.0, (1,)),
        Finished(35.0, 2),
        Finished(110.0, 0),
        Started(110.0, 1, 1.0, (0, 1)),
        Finished(170.0, 1),
    ]


def test_with_backfill_a_job_that_lost_its_node_waits_where_it_came():
    # Two nodes of four. The third job needs a whole node; the fourth, of two, came later and ran beside the
    # second. It lost that node at 50 s, and when the first is done at 110 s it is the third job's turn.
    work = jobs((0, 4, 100), (0, 2, 20), (1, 4, 50), (2, 2, 500))
    cluster = Cluster((Node(4), Node(4)), changes=(NodeChange(50.0, 1, joins=False),))
    events = timeline(work, cluster, Fifo(backfill=True))
    assert [(event.at_s, event.job) for event in events if isinstance(event, Started)] == [
        (0.0, 0), (0.0, 1), (2.0, 3), (110.0, 2), (170.0, 3),
    ]  # fmt: skip


def test_fifo_moves_nobody_even_where_a_move_costs_nothing():
    # Under `interval` others start from an empty cluster each time: the second job would move to slot 0.
    work = jobs((0, 1, 100), (0, 1, 500))
    assert timeline(work, Cluster.uniform(1, 2), Fifo(), INTERVAL)[4:] == [
        Finished(100.0, 0),
        Finished(510.0, 1),  # it lost its 10 s once, at 100 s
    ]


# SRTF and SRSF: a gang of two with 60 s left (120 GPU-seconds), and one GPU with 100 s left.

WIDE_AND_LONG = jobs((0, 2, 60), (0, 1, 100))


def test_srtf_runs_the_shorter_one_first():
    assert timeline(WIDE_AND_LONG, Cluster.uniform(1, 2), Srtf())[2:] == [
        Started(0.0, 0, 1.0, (0, 1)),
        Finished(70.0, 0),
        Started(70.0, 1, 1.0, (0,)),
        Finished(180.0, 1),
    ]


def test_srsf_runs_the_one_with_less_gpu_time_first():
    assert timeline(WIDE_AND_LONG, Cluster.uniform(1, 2), Srsf())[2:] == [
        Started(0.0, 1, 1.0, (0,)),
        Finished(110.0, 1),
        Started(110.0, 0, 1.0, (0, 1)),
        Finished(180.0, 0),
    ]


def test_srtf_goes_by_what_is_left_not_by_what_there_was():
    # At 60 s the first job has 100 − 50 = 50 s left: less than the 55 s of the newcomer, so it stays.
    assert timeline(jobs((0, 1, 100), (60, 1, 55)), Cluster.uniform(1, 1), Srtf())[2:] == [
        Arrived(60.0, 1),
        Finished(110.0, 0),
        Started(110.0, 1, 1.0, (0,)),
        Finished(175.0, 1),
    ]


def test_under_the_interval_cost_srsf_pauses_for_nothing():
    # At 60 s: 2 × (100 − 50) = 100 GPU-seconds are left, the newcomer needs 90. Neither pays for its start
    # in the interval in which it ends.
    assert timeline(jobs((0, 2, 100), (60, 1, 90)), Cluster.uniform(1, 2), Srsf(), INTERVAL)[2:] == [
        Arrived(60.0, 1),
        Preempted(60.0, 0, 50.0),
        Started(60.0, 1, 1.0, (0,)),
        Finished(150.0, 1),
        Started(150.0, 0, 1.0, (0, 1)),
        Finished(200.0, 0),
    ]


# Tiresias: queues at 3250 and 7200 GPU-seconds.


def test_tiresias_sinks_a_job_on_one_gpu_after_3250_s():
    assert timeline(jobs((0, 1, 5000), (100, 1, 5000)), Cluster.uniform(1, 1), Tiresias()) == [
        Arrived(0.0, 0),
        Started(0.0, 0, 1.0, (0,)),
        Arrived(100.0, 1),
        # The first job sinks to the second queue: who is still in the first one goes before it.
        Preempted(3250.0, 0, 5000.0 - 3240.0),
        Started(3250.0, 1, 1.0, (0,)),
        # So does the other, another 3250 s later, to the tail of that queue.
        Preempted(6500.0, 1, 5000.0 - 3240.0),
        Started(6500.0, 0, 1.0, (0,)),
        Finished(6500.0 + 10.0 + 1760.0, 0),
        Started(8270.0, 1, 1.0, (0,)),
        Finished(8270.0 + 10.0 + 1760.0, 1),
    ]


def test_tiresias_counts_gpu_seconds_and_charges_its_own_wake_ups_under_interval():
    # A gang of four sinks after ⌈3250 / 4⌉ = 813 s. By then it lost 1 s (up to the arrival), then 10 s.
    assert timeline(jobs((0, 4, 2000), (1, 4, 100)), Cluster.uniform(2, 2), Tiresias(), INTERVAL) == [
        Arrived(0.0, 0),
        Started(0.0, 0, 1.0, (0, 1, 2, 3)),
        Arrived(1.0, 1),
        Preempted(813.0, 0, 2000.0 - 802.0),
        Started(813.0, 1, 1.0, (0, 1, 2, 3)),
        Finished(913.0, 1),
        Started(913.0, 0, 1.0, (0, 1, 2, 3)),
        # It sinks again after 7200 / 4 = 1800 s on its GPUs, at 1900 s. Nobody wants them, but that is an
        # event, and costs it 10 s: 1198 s were left at 913 s.
        Finished(913.0 + 1198.0 + 10.0, 0),
    ]


def test_tiresias_lets_who_has_had_least_go_first_and_others_fill_the_gaps():
    # Two GPUs. At 1625 s the gang of two sinks below the gang of two that came later; the single job, which
    # waits behind that, does not fit beside either.
    work = jobs((0, 2, 2000), (0, 2, 2000), (0, 1, 100))
    events = timeline(work, Cluster.uniform(1, 2), Tiresias())
    assert events[4:8] == [
        Preempted(1625.0, 0, 2000.0 - 1615.0),
        Started(1625.0, 1, 1.0, (0, 1)),
        Preempted(3250.0, 1, 2000.0 - 1615.0),
        Started(3250.0, 2, 1.0, (0,)),
    ]


def test_tiresias_without_queues_is_first_come_first_served():
    events = timeline(jobs((0, 1, 9000), (1, 1, 10)), Cluster.uniform(1, 1), Tiresias(limits_gpu_s=()))
    assert events[2:] == [
        Arrived(1.0, 1),
        Finished(9010.0, 0),
        Started(9010.0, 1, 1.0, (0,)),
        Finished(9030.0, 1),
    ]


# Themis


def test_under_themis_a_starved_job_overtakes_the_one_that_has_had_more():
    assert timeline(jobs((0, 1, 1000), (100, 1, 1000), (600, 1, 1)), Cluster.uniform(1, 1), Themis()) == [
        Arrived(0.0, 0),
        Started(0.0, 0, 1.0, (0,)),
        Arrived(100.0, 1),
        Preempted(100.0, 0, 910.0),  # who has never run goes first
        Started(100.0, 1, 1.0, (0,)),
        Arrived(600.0, 2),
        Preempted(600.0, 1, 510.0),
        Started(600.0, 2, 1.0, (0,)),
        Finished(611.0, 2),
        # The shares x of the two solve 0.91 / (z − 0.611) + 0.51 / (z − 0.511) = 1: about 0.66 and 0.34. Per
        # second on the GPU so far, 0.66 / 100 > 0.34 / 500.
        Started(611.0, 0, 1.0, (0,)),
        Finished(1531.0, 0),
        Started(1531.0, 1, 1.0, (0,)),
        Finished(2051.0, 1),
    ]


def test_under_themis_a_share_counts_for_less_the_more_a_job_has_had():
    # At 611 s the shares solve 1010 / (1500 z − 611) + 110 / (200 z − 111) = 1: 0.52 for the first job, 0.48
    # for the second. But the first has had 500 s, the second 100: 0.52 / 500 < 0.48 / 100.
    work = jobs((0, 1, 1500), (500, 1, 200), (600, 1, 1))
    assert timeline(work, Cluster.uniform(1, 1), Themis())[2:] == [
        Arrived(500.0, 1),
        Preempted(500.0, 0, 1010.0),
        Started(500.0, 1, 1.0, (0,)),
        Arrived(600.0, 2),
        Preempted(600.0, 1, 110.0),
        Started(600.0, 2, 1.0, (0,)),
        Finished(611.0, 2),
        Started(611.0, 1, 1.0, (0,)),
        Finished(731.0, 1),
        Started(731.0, 0, 1.0, (0,)),
        Finished(1751.0, 0),
    ]


def test_themis_places_the_largest_first_under_the_interval_cost_only():
    work = jobs((0, 1, 100), (0, 2, 100))
    assert timeline(work, Cluster.uniform(1, 3), Themis())[2:4] == [
        Started(0.0, 0, 1.0, (0,)),
        Started(0.0, 1, 1.0, (1, 2)),
    ]
    assert timeline(work, Cluster.uniform(1, 3), Themis(), INTERVAL)[2:4] == [
        Started(0.0, 1, 1.0, (0, 1)),
        Started(0.0, 0, 1.0, (2,)),
    ]


def shares(left_s, fair, gpus, age_s, capacity):
    return fairest_shares(*(np.array(column, float) for column in (left_s, fair, gpus, age_s)), capacity)


def test_equal_jobs_get_equal_shares():
    assert shares([100, 100], [100, 100], [1, 1], [0, 0], 1.0) == pytest.approx([0.5, 0.5])


def test_an_older_job_gets_the_larger_share():
    # x₁ = 1 / (z − 1) and x₂ = 1 / z add up to 1 where z² − 3 z + 1 = 0: at z = φ², so x₁ = 1 / φ.
    golden = (1 + math.sqrt(5)) / 2
    assert shares([100, 100], [100, 100], [1, 1], [100, 0], 1.0) == pytest.approx([1 / golden, 1 / golden**2])


def test_what_is_left_over_is_shared_out():
    # The second job has a ratio of 200 / 100 even with all its GPUs. For the same ratio the first needs only
    # half of its two. The two GPUs that are left suffice to give it all of them.
    assert shares([100, 200], [100, 100], [2, 1], [0, 0], 4.0) == pytest.approx([1.0, 1.0])
    # With 2.5 GPUs half of one is left, of the one that it wishes for: half the way from 0.5 to 1.
    assert shares([100, 200], [100, 100], [2, 1], [0, 0], 2.5) == pytest.approx([0.75, 1.0])


# AntMan: a guest that loads for half a second and computes for half takes two turns of a host that leaves
# gaps of ¼ + ¼ s for loading, filled once, and of ½ + ¼ s for computing, begun once.

HOST, GUEST = (0.5, 0.25, 0.25), (0.5, 0.5, 0.0)


def test_under_antman_a_guest_runs_beside_its_host_at_the_pace_of_its_gaps():
    work = jobs((0, 1, 100), (0, 1, 100), stages=[HOST, GUEST], priority=[0, 1])
    assert timeline(work, Cluster.uniform(1, 1), AntMan()) == [
        Arrived(0.0, 0),
        Arrived(0.0, 1),
        Started(0.0, 0, 1.0, (0,)),
        Started(0.0, 1, 2.0, (0,)),
        Finished(110.0, 0),
        Retimed(110.0, 1, 1.0),  # 50 of its iterations are done, and now it is alone
        Finished(160.0, 1),
    ]


def test_under_the_interval_cost_the_guest_loses_its_start_up_when_the_host_ends():
    work = jobs((0, 1, 100), (0, 1, 100), stages=[HOST, GUEST], priority=[0, 1])
    assert timeline(work, Cluster.uniform(1, 1), AntMan(), INTERVAL)[4:] == [
        Finished(100.0, 0),
        Retimed(100.0, 1, 1.0),  # (100 − 10) / 2 = 45 iterations are done
        Finished(155.0, 1),
    ]


def test_under_antman_a_guaranteed_gang_reserves_what_it_cannot_use_yet():
    # The gang of two reserves slot 1 at 10 s, so the next guaranteed job waits although that slot is idle. A
    # guest may use it meanwhile: it is the less loaded one (0.09 for a reservation, 0.1 for a job).
    work = jobs(
        (0, 1, 100), (10, 2, 50), (20, 1, 5), (30, 1, 120),
        stages=[HOST, HOST, HOST, GUEST], priority=[0, 0, 0, 1],
    )  # fmt: skip
    assert timeline(work, Cluster.uniform(1, 2), AntMan()) == [
        Arrived(0.0, 0),
        Started(0.0, 0, 1.0, (0,)),
        Arrived(10.0, 1),
        Arrived(20.0, 2),
        Arrived(30.0, 3),
        Started(30.0, 3, 1.0, (1,)),  # who only reserves does not slow it down
        Finished(110.0, 0),
        Started(110.0, 1, 1.0, (0, 1)),
        Retimed(110.0, 3, 2.0),  # 70 iterations are done
        Finished(170.0, 1),
        Started(170.0, 2, 1.0, (0,)),
        Retimed(170.0, 3, 1.0),  # 100; the newcomer is on the other slot
        Finished(185.0, 2),
        Finished(190.0, 3),
    ]


def test_under_antman_two_gangs_that_lack_a_gpu_do_not_wait_for_each_other_for_ever():
    # The first gang is on node 0. The second reserves slot 3 of node 1, whose slot 2 is busy until 110 s.
    # Node 0 is lost at 50 s, so at 110 s the first gang, being the older one, reserves slot 2. When node 0 is
    # back at 300 s one of them could run there at once, and then the other on node 1.
    work = jobs((0, 2, 100), (0, 1, 100), (10, 2, 50))
    changes = (NodeChange(50.0, 0, joins=False), NodeChange(300.0, 0, joins=True))
    events = timeline(work, Cluster((Node(2), Node(2)), changes=changes), AntMan())
    assert sum(isinstance(event, Finished) for event in events) == 3


def test_under_antman_a_gang_is_split_when_the_only_node_that_was_large_enough_has_left():
    gone = Cluster((Node(8), Node(4), Node(4)), changes=(NodeChange(10.0, 0, joins=False),))
    assert timeline(jobs((20, 8, 100)), gone, AntMan()) == [
        NodeLost(10.0, 0),
        Arrived(20.0, 0),
        Started(20.0, 0, 1.0, tuple(range(8, 16))),
        Finished(130.0, 0),
    ]


def test_under_antman_a_gang_that_has_reserved_some_nodes_uses_them_when_a_large_one_is_back():
    # One node of four is busy until 110 s, so the gang reserves the other one at 20 s. At 50 s, a node of
    # eight is back: it takes four of its GPUs, and the next job the other four.
    changes = (NodeChange(10.0, 0, joins=False), NodeChange(50.0, 0, joins=True))
    cluster = Cluster((Node(8), Node(4), Node(4)), changes=changes)
    work = jobs((11, 4, 89), (20, 8, 100), (60, 4, 10))
    starts = [event for event in timeline(work, cluster, AntMan()) if isinstance(event, Started)]
    assert starts == [
        Started(11.0, 0, 1.0, (8, 9, 10, 11)),
        Started(50.0, 1, 1.0, (0, 1, 2, 3, 12, 13, 14, 15)),
        Started(60.0, 2, 1.0, (4, 5, 6, 7)),
    ]


# Muri. Two jobs that only compute and only synchronise alternate: a period of 1 s, in the best order. In the
# worst one they meet half-way: max(0, 1) + max(0, 1) = 2 s. Two that only compute need 2 s in any order. On
# top of that come 33 % for sharing, of which 1.5 % are in every iteration already.

SHARED = 1.33 / 1.015


def test_under_muri_two_complementary_jobs_share_a_gpu():
    work = jobs((0, 1, 100), (0, 1, 50), stages=[COMPUTE, SYNC])
    for policy in (MuriS(), MuriL()):
        events = timeline(work, Cluster.uniform(1, 1), policy)
        assert {event.slots for event in events if isinstance(event, Started)} == {(0,)}
        assert rounded(sorted(events[2:4], key=lambda event: event.job)) == rounded(
            [Started(0.0, 0, SHARED, (0,)), Started(0.0, 1, SHARED, (0,))]
        )
        assert rounded(events[4:]) == rounded(
            [
                Finished(10 + 50 * SHARED, 1),
                Retimed(10 + 50 * SHARED, 0, 1.0),  # half of it is done
                Finished(10 + 50 * SHARED + 50, 0),
            ]
        )


def test_under_the_interval_cost_a_group_loses_the_start_up_of_all_its_members():
    work = jobs((0, 1, 100), (0, 1, 50), stages=[COMPUTE, SYNC])
    left = 100 - (50 * SHARED - 20) / SHARED
    assert rounded(timeline(work, Cluster.uniform(1, 1), MuriL(), INTERVAL)[4:]) == rounded(
        [
            Finished(50 * SHARED, 1),
            Retimed(50 * SHARED, 0, 1.0),
            Finished(50 * SHARED + left, 0),
        ]
    )


def test_muri_leaves_jobs_alone_while_there_are_gpus_for_all():
    work = jobs((0, 1, 100), (0, 1, 50), stages=[COMPUTE, SYNC])
    events = timeline(work, Cluster.uniform(1, 2), MuriL())
    assert events[2:4] == [Started(0.0, 0, 1.0, (0,)), Started(0.0, 1, 1.0, (1,))]


@pytest.mark.parametrize("policy", [MuriL(), MuriLNoBlossom()])
def test_muri_shares_the_devices_that_are_short_though_there_are_others(policy):
    # Four jobs that may use the two v100 only, and one that may use anything: it gets a k80 of its own.
    cluster = Cluster((Node(2, 0, "v100"), Node(2, 0, "k80")))
    kinds = [("v100",)] * 4 + [()]
    work = jobs(*[(0, 1, 100)] * 5, stages=[COMPUTE, SYNC, COMPUTE, SYNC, COMPUTE], kinds=kinds)
    starts = [event for event in timeline(work, cluster, policy) if isinstance(event, Started)]
    assert {event.job: event.at_s for event in starts} == dict.fromkeys(range(5), 0.0)
    assert rounded(starts)[-1] == Started(0.0, 4, 1.0, (2,))


# Two jobs that only compute would share at 2.62 s where one after the other takes 2: they are not put
# together. The first needs 20 s, the second comes at 10 s (still the first one's start-up) and needs 100.

NOT_TO_BE_SHARED = jobs((0, 1, 20), (10, 1, 100), stages=COMPUTE)


def test_muri_s_runs_who_has_least_service_left():
    assert timeline(NOT_TO_BE_SHARED, Cluster.uniform(1, 1), MuriS())[2:] == [
        Arrived(10.0, 1),
        Finished(30.0, 0),
        Started(30.0, 1, 1.0, (0,)),
        Finished(140.0, 1),
    ]


def test_muri_l_runs_who_has_had_least_service():
    assert timeline(NOT_TO_BE_SHARED, Cluster.uniform(1, 1), MuriL())[2:] == [
        Arrived(10.0, 1),
        Preempted(10.0, 0, 20.0),
        Started(10.0, 1, 1.0, (0,)),
        Finished(120.0, 1),
        Started(120.0, 0, 1.0, (0,)),
        Finished(150.0, 0),
    ]


def test_without_autopack_muri_shares_where_taking_turns_is_faster():
    events = timeline(
        jobs((0, 1, 100), (0, 1, 100), stages=COMPUTE), Cluster.uniform(1, 1), MuriL(autopack=False)
    )
    assert rounded(events[4:]) == rounded(
        [Finished(10 + 100 * 2 * SHARED, 0), Finished(10 + 100 * 2 * SHARED, 1)]
    )


# The ablations. On two GPUs, two jobs that only compute and behind them two that only synchronise.

FOUR = jobs(*[(0, 1, 100)] * 4, stages=[COMPUTE, COMPUTE, SYNC, SYNC])


def starts(policy):
    events = timeline(FOUR, Cluster.uniform(1, 2), policy)
    return rounded(event for event in events if isinstance(event, Started))


def test_muri_l_matches_those_who_complement_each_other():
    assert starts(MuriL(packing_num=2)) == rounded(
        [
            Started(0.0, 0, SHARED, (0,)),
            Started(0.0, 2, SHARED, (0,)),
            Started(0.0, 1, SHARED, (1,)),
            Started(0.0, 3, SHARED, (1,)),
        ]
    )


def test_in_the_worst_order_a_group_takes_twice_as_long_and_is_kept():
    # Autopack judges by the best order, as the reference does: at 2.62 s two in turn would be faster.
    work = jobs((0, 1, 100), (0, 1, 100), stages=[COMPUTE, SYNC])
    assert rounded(timeline(work, Cluster.uniform(1, 1), MuriLWorstOrder())[2:]) == rounded(
        [
            Started(0.0, 0, 2 * SHARED, (0,)),
            Started(0.0, 1, 2 * SHARED, (0,)),
            Finished(10 + 100 * 2 * SHARED, 0),
            Finished(10 + 100 * 2 * SHARED, 1),
        ]
    )


def test_without_blossom_neighbours_in_the_queue_are_put_together():
    assert starts(MuriLNoBlossom(packing_num=2, autopack=False)) == rounded(
        [
            Started(0.0, 0, 2 * SHARED, (0,)),
            Started(0.0, 1, 2 * SHARED, (0,)),
            Started(0.0, 2, 2 * SHARED, (1,)),
            Started(0.0, 3, 2 * SHARED, (1,)),
        ]
    )


def test_without_blossom_autopack_takes_such_neighbours_apart_again():
    assert starts(MuriLNoBlossom(packing_num=2)) == [
        Started(0.0, 0, 1.0, (0,)),
        Started(0.0, 1, 1.0, (1,)),
        Started(110.0, 3, 1.0, (0,)),  # who need not join the leader of its run is listed before it
        Started(110.0, 2, 1.0, (1,)),
    ]


@pytest.mark.parametrize("policy", [MuriLNoBlossom(), MuriLNoBlossom(autopack=False), MuriL(autopack=False)])
def test_under_muri_jobs_whose_stages_nobody_knows_are_not_faster_together(policy):
    work = jobs(*[(0, 1, 1000)] * 3, stages=(0.0, 0.0, 0.0))
    events = timeline(work, Cluster.uniform(1, 1), policy)
    assert all(event.at_s >= 1000.0 for event in events if isinstance(event, Finished))


# LAS: of two equal jobs on one GPU, the first gives way after 100 GPU-seconds, the second after as many, and
# then the first goes on to 200.


def test_under_las_a_job_gives_way_to_those_that_have_used_less():
    work = jobs((0, 1, 150), (0, 1, 150)).with_startup(0.0)
    ends = [
        (event.at_s, event.job)
        for event in timeline(work, Cluster.uniform(1, 1), Las(first_gpu_s=100.0))
        if isinstance(event, Preempted | Finished)
    ]
    assert ends == [(100.0, 0), (200.0, 1), (250.0, 0), (300.0, 1)]


# Random: it draws an order, not a preemption, and the seed is all that it follows from.


def test_a_random_order_is_one_that_the_seed_gives():
    work = jobs(*[(0, 1, 10)] * 40)
    orders = [
        [
            event.job
            for event in timeline(work, Cluster.uniform(1, 1), Random(seed))
            if isinstance(event, Started)
        ]
        for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(40)) != orders[0]


# Gittins. Bin b ends at 2^(b / 2) s: 32 s is the end of bin 10, 64 s that of bin 12, 128 s that of bin 14.


def expected(jobs_per_bin):
    weights = np.zeros(BINS)
    for number, count in jobs_per_bin.items():
        weights[number] = count
    return weights


@pytest.mark.parametrize(
    ("jobs_per_bin", "attained_s", "index"),
    [
        # All end between 32 s (the end of bin 10) and 45.25 s (that of bin 11), after 38.63 s on average.
        ({11: 5.0}, 0.0, 2 / (32 + 2**5.5)),
        # The same after 40 s: they end in 2.63 s on average.
        ({11: 5.0}, 40.0, 2 / (2**5.5 - 40)),
        # One of four ends after 38.63 s, the others after 1,236 s: giving each 45.25 s first is best.
        ({11: 1.0, 21: 3.0}, 0.0, 1 / ((32 + 2**5.5) / 2 + 3 * 2**5.5)),
        # When the short one would have ended, only long ones are left.
        ({11: 1.0, 21: 3.0}, 2**5.5, 2 / (2**10 + 2**10.5 - 2 * 2**5.5)),
    ],
)
def test_the_gittins_index_is_the_best_chance_of_an_end_per_second(jobs_per_bin, attained_s, index):
    found, until_s = gittins_index(expected(jobs_per_bin), attained_s)
    assert found == pytest.approx(index, rel=1e-12)
    assert until_s > attained_s


def test_gittins_learns_from_the_jobs_that_ended():
    """Jobs of one group have ended after 60 s, those of another after 6,000 s; then one of each comes."""
    rows = [(0, 60, "short"), (0, 6000, "long")] * 6 + [(50_000, 6000, "long"), (50_000, 60, "short")]
    submit_s, seconds, group = zip(*rows, strict=True)
    work = workload(
        "groups", [f"j{i}" for i in range(len(rows))], submit_s, [1] * len(rows), ["unmeasured"] * len(rows),
        duration_s=seconds, group=group,
    )  # fmt: skip
    events = timeline(work, Cluster.uniform(1, 1), Gittins())
    assert next(event.job for event in events if isinstance(event, Started) and event.at_s >= 50_000) == 13
