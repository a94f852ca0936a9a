"""What a configuration file may say, and what it becomes."""

import re
from pathlib import Path

import numpy as np
import pytest

from rota.config.bind import bind
from rota.config.load import dump
from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.costs import INTERVAL, RESTART
from rota.core.errors import ConfigError, InputError
from rota.policies.cluster.antman import AntMan
from rota.policies.cluster.registry import BY_DEFAULT
from rota.policies.cluster.srtf import Srtf
from rota.simulator.jobs_config import (
    ClusterConfig,
    NodeChangeConfig,
    NodeGroup,
    PlacementConfig,
    SimulateConfig,
    WorkloadConfig,
)
from rota.workload.synthetic import SyntheticConfig

TRACE = "id,submit_s,gpus,duration_s,model,priority\na,5,1,60,bert,0\nb,7,1,60,bert,0\nc,9,1,60,bert,0\n"
SYNTHETIC = WorkloadConfig(synthetic=SyntheticConfig(jobs=20, gpus=8))


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "three.csv"
    path.write_text(TRACE)
    return path


# workload


@pytest.mark.parametrize("settings", [{}, {"trace": Path("a.csv"), "synthetic": SyntheticConfig()}])
def test_a_workload_is_either_read_or_made_up(settings):
    with pytest.raises(ConfigError, match="either a trace or a synthetic workload"):
        WorkloadConfig(**settings)


def test_a_trace_can_be_cut_and_submitted_all_at_once(trace):
    jobs = WorkloadConfig(trace=trace, jobs=2, all_at_once=True).load()
    assert (jobs.ids, jobs.submit_s.tolist()) == (("a", "b"), [0.0, 0.0])
    assert WorkloadConfig(trace=trace).load().submit_s.tolist() == [5.0, 7.0, 9.0]


def test_the_seed_draws_what_the_trace_leaves_out(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("id,submit_s,gpus,duration_s\n" + "".join(f"j{i},{i},1,60\n" for i in range(40)))
    drawn = [WorkloadConfig(trace=path, seed=seed, draw_models=True).load() for seed in (1, 1, 2)]
    models = [[jobs.models[number] for number in jobs.model] for jobs in drawn]
    assert models[0] == models[1] != models[2]
    assert np.array_equal(drawn[0].priority, drawn[1].priority)


def test_a_made_up_workload_has_as_many_jobs_as_asked_for():
    assert len(SYNTHETIC.load()) == 20


# cluster


def test_the_default_machines_are_eight_by_eight():
    assert ClusterConfig().build() == Cluster.uniform(8, 8)


def test_nodes_are_per_switch():
    assert ClusterConfig(nodes=2, gpus_per_node=4, switches=3).build() == Cluster.uniform(2, 4, 3)


def test_groups_replace_the_equal_nodes_and_keep_their_order():
    config = ClusterConfig(groups=(NodeGroup(1, 8, "v100"), NodeGroup(2, 4, "k80", switch=1)))
    assert config.build().nodes == (Node(8, 0, "v100"), Node(4, 1, "k80"), Node(4, 1, "k80"))


def test_speeds_crossings_and_changes_reach_the_cluster():
    cluster = ClusterConfig(
        nodes=2,
        cross_node=1.5,
        cross_switch=3.0,
        speeds={"gpu": {"bert": 0.5}},
        changes=(NodeChangeConfig(5.0, 1, "join"), NodeChangeConfig(9.0, 0, "leave")),
    ).build()
    assert (cluster.cross_node, cluster.cross_switch, cluster.speed("bert", "gpu")) == (1.5, 3.0, 0.5)
    assert cluster.changes == (NodeChange(5.0, 1, joins=True), NodeChange(9.0, 0, joins=False))


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        (
            "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n2,1,4,92,520\n",
            (Node(4, 0), Node(4, 1)),
        ),
        (
            "sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,2,T4\nn1,1,1,0,\nn2,1,1,8,V100\n",
            (Node(2, kind="T4"), Node(8, kind="V100")),
        ),
    ],
    ids=["muri", "alibaba"],
)
def test_a_file_of_machines_is_recognised_by_its_header(tmp_path, text, nodes):
    path = tmp_path / "machines.csv"
    path.write_text(text)
    assert ClusterConfig(file=path).build().nodes == nodes


def test_a_split_gpu_is_a_node_and_its_machine_a_switch():
    cluster = ClusterConfig(nodes=2, gpus_per_node=2, slots_per_gpu=4, cross_node=1.5).build()
    assert cluster.nodes == (Node(4, 0), Node(4, 0), Node(4, 1), Node(4, 1))
    # GPUs of one machine are as close as before, and to leave the machine is now to leave the switch.
    assert (cluster.cross_node, cluster.cross_switch, cluster.slots_per_gpu) == (1.0, 1.5, 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nodes": 0}, "nodes is 0; it must be at least 1"),
        ({"gpus_per_node": -1}, "gpus_per_node is -1"),
        ({"switches": 0}, "switches is 0"),
        ({"slots_per_gpu": 0}, "slots_per_gpu is 0"),
        ({"groups": (NodeGroup(0, 8),)}, "groups: 0 nodes with 8 GPUs; both must be at least 1"),
        ({"groups": (NodeGroup(1, 0),)}, "groups: 1 nodes with 0 GPUs"),
    ],
)
def test_machines_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        ClusterConfig(**settings)


def test_a_change_that_names_no_node_is_refused():
    with pytest.raises(InputError, match="node 8 changes at 1 s; there are nodes 0 to 7"):
        ClusterConfig(changes=(NodeChangeConfig(1.0, 8, "leave"),)).build()


def test_changes_and_split_gpus_exclude_each_other():
    with pytest.raises(ConfigError, match="slots_per_gpu cannot be combined with changes"):
        ClusterConfig(slots_per_gpu=2, changes=(NodeChangeConfig(1.0, 0, "leave"),)).build()


# the experiment


def test_by_default_all_schedulers_are_compared_under_the_restart_cost():
    config = SimulateConfig(SYNTHETIC)
    assert config.schedulers == BY_DEFAULT
    assert config.cost_model == RESTART


def test_the_cost_model_is_what_was_named():
    assert SimulateConfig(SYNTHETIC, cost="interval").cost_model == INTERVAL
    assert SimulateConfig(SYNTHETIC, checkpoint_every_s=60.0).cost_model.checkpoint_every_s == 60.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schedulers": ()}, "schedulers is empty"),
        ({"schedulers": ("srtf", "shortest")}, "schedulers names srtf twice"),
        ({"schedulers": ("srft",)}, "unknown scheduler 'srft'. Did you mean 'srtf'?"),
        ({"checkpoint_every_s": -1.0}, "checkpoint_every_s is -1.0; it must be 0 or more"),
        ({"cost": "interval", "checkpoint_every_s": 5.0}, "no meaning with cost = 'interval'; leave it out"),
    ],
)
def test_an_experiment_that_makes_no_sense_is_refused(settings, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        SimulateConfig(SYNTHETIC, **settings)


def test_the_placement_goes_to_the_schedulers_that_leave_the_choice():
    config = SimulateConfig(SYNTHETIC, placement=PlacementConfig("spread"))
    assert config.placement.defaults_for(Srtf) == {"placement": "spread"}
    assert config.placement.defaults_for(AntMan) == {}
    assert SimulateConfig(SYNTHETIC).placement.defaults_for(Srtf) == {}


def test_an_experiment_is_what_its_file_says_when_it_is_written_down():
    import tomllib

    config = SimulateConfig(
        WorkloadConfig(trace=Path("/a/b.csv"), jobs=5),
        ClusterConfig(
            groups=(NodeGroup(1, 8, "v100"),),
            speeds={"v100": {"default": 1.0}},
            changes=(NodeChangeConfig(1.0, 0, "leave"),),
        ),
        schedulers=("fifo",),
        placement=PlacementConfig("anywhere", "blind"),
    )
    assert bind(SimulateConfig, tomllib.loads(dump(config))) == config
