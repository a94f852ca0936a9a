"""What must hold for every scheduler, on any workload, under both cost models."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.costs import COSTS, RESTART
from rota.core.timeline import Migrated, Started
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.simulator.jobs import simulate
from rota.workload.jobs import Workload, workload
from rota.workload.profiles import MODELS

GANGS = [1, 1, 1, 2, 3, 4, 5, 8, 12, 16]


@st.composite
def workloads(draw: st.DrawFn, largest: int = 16, models: tuple[str, ...] = MODELS) -> Workload:
    """Up to thirty jobs, often at the same time, from shorter than a start-up to a day."""
    n = draw(st.integers(1, 30))
    times = st.one_of(st.sampled_from([0.0, 10.0, 100.0]), st.floats(0.0, 5e4))
    seconds = st.one_of(st.sampled_from([1.0, 60.0, 3600.0]), st.floats(0.5, 1e5))
    return workload(
        "random",
        ids=[f"j{i}" for i in range(n)],
        submit_s=draw(st.lists(times, min_size=n, max_size=n)),
        gpus=draw(st.lists(st.sampled_from([g for g in GANGS if g <= largest]), min_size=n, max_size=n)),
        model=draw(st.lists(st.sampled_from(models), min_size=n, max_size=n)),
        duration_s=draw(st.lists(seconds, min_size=n, max_size=n)),
        priority=draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)),
    )


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=40, deadline=None)
@given(jobs=workloads())
def test_every_scheduler_keeps_its_promises(name, cost, referee, jobs):
    cluster = Cluster.uniform(2, 8)
    policy = scheduler_class(name)()
    done = simulate(jobs, cluster, policy, COSTS[cost])
    referee(jobs, cluster, COSTS[cost], policy.needs.sharing, done.timeline)


@pytest.mark.parametrize("placement", ["consolidated", "spread", "anywhere"])
@pytest.mark.parametrize("name", ["fifo", "srtf", "srsf", "tiresias", "themis"])
@settings(max_examples=25, deadline=None)
@given(jobs=workloads(), checkpoint_every_s=st.sampled_from([0.0, 30.0, 1000.0]))
def test_promises_hold_on_unequal_machines_that_come_and_go(
    name, placement, referee, jobs, checkpoint_every_s
):
    cluster = Cluster(
        nodes=(
            Node(8, 0, "v100"),
            Node(4, 0, "k80"),
            Node(4, 1, "k80"),
            Node(8, 1, "p100"),
            Node(8, 1, "v100"),
        ),
        cross_node=1.5,
        cross_switch=3.0,
        speeds={"k80": {"default": 0.25, "bert": 0.1}, "p100": {"default": 0.5}},
        changes=(
            NodeChange(50.0, 1, joins=False),
            NodeChange(90.0, 1, joins=True),
            NodeChange(100.0, 4, joins=True),
            NodeChange(100.0, 0, joins=False),
            NodeChange(5000.0, 0, joins=True),
        ),
    )
    policy = scheduler_class(name)(placement=placement)
    cost = replace(RESTART, checkpoint_every_s=checkpoint_every_s)
    done = simulate(jobs, cluster, policy, cost)
    referee(jobs, cluster, cost, policy.needs.sharing, done.timeline)


@pytest.mark.parametrize("name", ["antman", "muri-s", "muri-l", "muri-l-no-blossom"])
@settings(max_examples=25, deadline=None)
@given(jobs=workloads(largest=8))
def test_sharing_schedulers_survive_the_loss_of_nodes(name, referee, jobs):
    changes = (NodeChange(20.0, 0, joins=False), NodeChange(3000.0, 0, joins=True))
    cluster = Cluster(Cluster.uniform(3, 8).nodes, changes=changes)
    policy = scheduler_class(name)()
    done = simulate(jobs, cluster, policy)
    referee(jobs, cluster, RESTART, policy.needs.sharing, done.timeline)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", ["antman", "muri-s", "muri-l", "muri-l-worst-order", "muri-l-no-blossom"])
@settings(max_examples=40, deadline=None)
@given(jobs=workloads(models=("vgg16", "gpt2", "dqn", "unnamed", "mine")))
def test_jobs_without_stages_share_with_nobody(name, cost, referee, jobs):
    policy, cluster = scheduler_class(name)(), Cluster.uniform(2, 8)
    done = simulate(jobs, cluster, policy, COSTS[cost])
    referee(jobs, cluster, COSTS[cost], policy.needs.sharing, done.timeline)


@pytest.mark.parametrize("name", ["antman", "muri-s", "muri-l-no-blossom"])
@settings(max_examples=40, deadline=None)
@given(jobs=workloads(largest=8, models=("vgg16", "dqn", "unnamed")))
def test_jobs_without_stages_share_with_nobody_while_nodes_come_and_go(name, referee, jobs):
    changes = (NodeChange(20.0, 0, joins=False), NodeChange(3000.0, 0, joins=True))
    cluster = Cluster(Cluster.uniform(2, 8).nodes, changes=changes)
    policy = scheduler_class(name)()
    done = simulate(jobs, cluster, policy)
    referee(jobs, cluster, RESTART, policy.needs.sharing, done.timeline)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=15, deadline=None)
@given(jobs=workloads(largest=8), data=st.data())
def test_jobs_run_only_on_devices_that_they_may_use(name, cost, jobs, data):
    choices = st.sampled_from([(), ("v100",), ("k80",), ("k80", "v100")])
    kinds = tuple(data.draw(st.lists(choices, min_size=len(jobs), max_size=len(jobs))))
    cluster = Cluster((Node(4, 0, "k80"), Node(8, 0, "v100"), Node(8, 0, "k80"), Node(4, 0, "v100")))
    node_of = cluster.slot_nodes()
    done = simulate(replace(jobs, kinds=kinds), cluster, scheduler_class(name)(), COSTS[cost])
    for event in done.timeline:
        if isinstance(event, Started | Migrated) and kinds[event.job]:
            assert {cluster.nodes[node_of[slot]].kind for slot in event.slots} <= set(kinds[event.job])


@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=10, deadline=None)
@given(jobs=workloads())
def test_the_same_inputs_give_the_same_timeline(name, jobs):
    runs = [simulate(jobs, Cluster.uniform(2, 8), scheduler_class(name)()).timeline for _ in range(2)]
    assert np.array_equal(runs[0].events, runs[1].events)
    assert np.array_equal(runs[0].slots, runs[1].slots)


@settings(max_examples=40, deadline=None)
@given(jobs=workloads())
def test_nobody_overtakes_the_head_under_strict_fifo(jobs):
    done = simulate(jobs, Cluster.uniform(2, 8), scheduler_class("fifo")())
    starts = [event.job for event in done.timeline if type(event).__name__ == "Started"]
    assert starts == sorted(starts)


@settings(max_examples=40, deadline=None)
@given(jobs=workloads())
def test_a_lone_job_takes_its_solo_time_and_one_start(jobs):
    one = jobs.head(1)
    for name in SCHEDULERS:
        done = simulate(one, Cluster.uniform(2, 8), scheduler_class(name)())
        end_s = float(done.timeline.events["at_s"][-1])
        assert end_s - one.submit_s[0] == pytest.approx(one.startup_s[0] + one.solo_s[0], rel=1e-9)
