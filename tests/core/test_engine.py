"""The state refuses plans that cannot be, says how a legal one differs, and grows with its jobs."""

import numpy as np
import pytest

from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.columns import JOB, OWN
from rota.core.errors import IllegalPlan
from rota.core.instant import Instant
from rota.core.timeline import Arrived, Failed, Finished, Migrated, Preempted, Started
from rota.policies.cluster.fifo import Fifo
from rota.simulator.jobs import simulate
from rota.workload.jobs import workload

NO_ROWS = np.zeros(0, np.int32)
TWO_NODES = Cluster.uniform(2, 2)  # slots 0 and 1, slots 2 and 3


# Each of these plans is for two jobs, of one and of two GPUs, in rows 0 and 1.
@pytest.mark.parametrize(
    ("units", "complaint"),
    [
        ([([2], [0])], "names a job that is not active"),
        ([([-1], [0])], "names a job that is not active"),
        ([([0], [0]), ([0], [1])], "names a job twice"),
        ([([0, 0], [0])], "names a job twice"),
        ([([0], [0, 1])], "more or fewer slots than it needs"),
        ([([1], [0])], "more or fewer slots than it needs"),
        ([([0], [])], "more or fewer slots than it needs"),
        ([([0], [4])], "names a slot that is not available"),
        ([([0], [-1])], "names a slot that is not available"),
        ([([1], [0, 99])], "names a slot that is not available"),
        ([([0], [1]), ([1], [1, 2])], "more jobs on a slot than may share it"),
        ([([1], [0, 0])], "more or fewer slots than it needs"),
    ],
)
def test_a_plan_that_cannot_be_is_illegal_and_the_error_says_why_and_when(
    state_of, plan_of, units, complaint
):
    state = state_of([1, 2], TWO_NODES)
    state.apply(Instant(7.0, NO_ROWS))
    with pytest.raises(IllegalPlan, match=rf"^at 7\.0 s: the plan .*{complaint}$"):
        state.commit(plan_of(*units))


@pytest.mark.parametrize("pace_s", [0.0, -1.0, np.nan, np.inf])
def test_a_pace_is_a_number_of_seconds(state_of, plan_of, pace_s):
    plan = plan_of(([0], [0]))
    plan.pace_s[0] = pace_s
    with pytest.raises(IllegalPlan, match=r"^at 0\.0 s: the plan gives a job a step time that is not"):
        state_of([1], TWO_NODES).commit(plan)


@pytest.mark.parametrize("order", [[0, 0, 2], [0, 1, 1], [2, 2, 2], [0, 1, 3], [-1, 1, 2]])
def test_an_order_names_each_job_once(state_of, plan_of, order):
    state = state_of([1, 1, 1], TWO_NODES)
    plan = plan_of(([0], [0]))
    plan.order = np.array(order, np.int32)
    with pytest.raises(IllegalPlan, match=r"^at 0\.0 s: the plan's order does not name each active"):
        state.commit(plan)
    plan.order = np.array([2, 0, 1], np.int32)
    state.commit(plan)
    assert state.view.order.tolist() == [2, 0, 1]


def test_a_slot_of_a_node_that_is_down_is_not_available(state_of, plan_of):
    late = Cluster((Node(1), Node(1)), changes=(NodeChange(5.0, 1, joins=True),))
    state = state_of([1], late)
    with pytest.raises(IllegalPlan, match="slot that is not available"):
        state.commit(plan_of(([0], [1])))
    state.apply(Instant(5.0, NO_ROWS, joined=[1]))
    state.commit(plan_of(([0], [1])))
    state.apply(Instant(6.0, NO_ROWS, lost=[1]))
    with pytest.raises(IllegalPlan, match="slot that is not available"):
        state.commit(plan_of(([0], [1])))


def test_a_slot_may_be_of_a_kind_that_the_job_may_not_use(state_of, plan_of):
    mixed = Cluster((Node(1, kind="k80"), Node(1, kind="v100")))
    state = state_of([1], mixed, kinds=[("v100",)])
    with pytest.raises(IllegalPlan, match="puts a job on a device kind that it may not use"):
        state.commit(plan_of(([0], [0])))
    state.commit(plan_of(([0], [1])))


def test_a_job_that_has_finished_is_not_active_until_its_row_has_a_new_one(state_of, plan_of):
    state = state_of([1], TWO_NODES, later=1)
    state.commit(plan_of(([0], [0])))
    state.apply(Instant(9.0, np.array([0], np.int32), ends=1))
    with pytest.raises(IllegalPlan, match="not active"):
        state.commit(plan_of(([0], [0])))
    state.apply(Instant(10.0, NO_ROWS, first_job=1, arrivals=1))
    state.commit(plan_of(([0], [0])))
    assert list(state.timeline())[-1].job == 1


def test_as_many_jobs_may_share_a_slot_as_the_policy_has_asked_for(state_of, plan_of):
    state = state_of([1, 1, 1], TWO_NODES, sharing=2)
    state.commit(plan_of(([0, 1], [0])))
    with pytest.raises(IllegalPlan, match="more jobs on a slot than may share it"):
        state.commit(plan_of(([0, 1], [0]), ([2], [0])))


def test_a_gang_is_on_as_many_different_slots_as_it_needs(state_of, plan_of):
    state = state_of([2], TWO_NODES, sharing=2)
    with pytest.raises(IllegalPlan):
        state.commit(plan_of(([0], [0, 0])))


def test_after_an_illegal_plan_everything_is_as_it_was(state_of, plan_of):
    state = state_of([1, 2], TWO_NODES)
    state.commit(plan_of(([0], [0])))
    written = list(state.timeline())
    with pytest.raises(IllegalPlan):
        state.commit(plan_of(([1], [2, 3]), ([0], [3])))
    assert list(state.timeline()) == written
    state.commit(plan_of(([1], [2, 3]), ([0], [0])))
    assert list(state.timeline())[len(written) :] == [Started(0.0, 1, 1.0, (2, 3))]


def test_a_commit_writes_the_difference_to_what_runs(state_of, plan_of):
    state = state_of([1, 1, 1, 1], TWO_NODES)
    state.commit(plan_of(([0], [0]), ([1], [1]), ([2], [2])))
    written = len(state.timeline())
    state.commit(plan_of(([3], [1]), ([0], [0]), ([2], [3])))
    iterations = state.table[0, 1]
    assert list(state.timeline())[written:] == [
        Preempted(0.0, 1, iterations),
        Started(0.0, 3, 1.0, (1,)),
        Migrated(0.0, 2, 1.0, (3,)),
    ]


def test_time_does_not_run_backwards(state_of):
    state = state_of([1], TWO_NODES)
    state.apply(Instant(3.0, NO_ROWS))
    with pytest.raises(AssertionError, match=r"2\.0 after 3\.0"):
        state.apply(Instant(2.0, NO_ROWS))


def test_beyond_64_active_jobs_the_table_grows_and_nobody_is_disturbed(state_of, plan_of):
    state = state_of([1] * 64, TWO_NODES, later=36)
    assert state.view.capacity == 64
    state.commit(plan_of(([5], [2]), ([63], [0])))
    for row in range(64):
        state.columns[OWN, row] = row
    # One ends as 36 arrive: 99 are active, and one of them gets the row that became free.
    state.apply(Instant(1.0, np.array([5], np.int32), ends=1, first_job=64, arrivals=36))
    assert state.active == len(state.view.order) == 99
    assert state.view.capacity >= 99
    rows = state.view.order
    assert sorted(state.columns[JOB, rows].tolist()) == [job for job in range(100) if job != 5]
    old, new = rows[:63], rows[63:]
    assert state.columns[OWN, old].tolist() == state.columns[JOB, old].tolist()  # what it remembered
    assert not state.columns[OWN, new].any()
    assert state.view.place[63] == 1.0
    assert state.view.remaining[0] == state.table[0, 0]
    written = len(state.timeline())
    state.commit(plan_of(([63], [0]), ([int(new[-1])], [2])))
    assert list(state.timeline())[written:] == [Started(1.0, 99, 1.0, (2,))]


def test_hundreds_of_jobs_may_wait_for_one_gpu():
    n = 300
    jobs = workload(
        "queue", [str(i) for i in range(n)], [0.0] * 150 + [1.0] * 150, [1] * n, ["unmeasured"] * n,
        duration_s=[5.0] * n, iterations=[5.0] * n, iteration_s=[1.0] * n, stages_s=[[0.3] * n] * 3,
    )  # fmt: skip
    events = list(simulate(jobs, Cluster.uniform(1, 1), Fifo()).timeline)
    # 10 s start-up and 5 s of work, one after the other.
    assert [event for event in events if isinstance(event, Finished)] == [
        Finished(15.0 * (i + 1), i) for i in range(n)
    ]
    assert sum(isinstance(event, Arrived) for event in events) == n


def test_a_job_that_ends_with_iterations_left_has_failed_where_that_is_measured(state_of, plan_of):
    state = state_of([1, 1], Cluster.uniform(1, 2))
    state.commit(plan_of(((0,), (0,)), ((1,), (1,))))
    state.apply(Instant(9.0, np.array([0, 1], np.int32), 2, measured={0: 0.0, 1: 7.0}))
    assert list(state.timeline())[-2:] == [Finished(9.0, 0), Failed(9.0, 1, 7.0)]
    assert state.active == 0


def test_codes_of_compiled_code_are_different():
    from rota.core import driver, kernels, stepping

    names = ("OK", "DONE", "STUCK", "RESTLESS", "GROW", "TOO_EARLY", "TOO_MANY", "UNDECIDED", "REFIT")
    codes = [driver.DECLINED, *kernels.ILLEGAL, *(getattr(stepping, name) for name in names)]
    assert len(set(codes)) == len(codes)
