"""What a configuration of a population may say, and what comes of it."""

import math
from pathlib import Path

import pytest

from rota.config.bind import bind
from rota.core.cluster import NodeChange, Slot, Slowdown
from rota.core.errors import ConfigError
from rota.core.population.events import TrialFinished
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.population import PopulationPolicy
from rota.simulator.population import simulate_trials
from rota.simulator.population_config import NINE, PopulationsConfig, SlotsConfig

CURVES = Path(__file__).parents[3] / "results" / "recordings" / "curves" / "convnet2-fashion-mnist"


def config(**table):
    return bind(PopulationsConfig, table)


def test_by_default_the_slots_are_those_of_the_original_systems():
    assert tuple(slot.speed for slot in config().population_cluster().all_slots) == NINE
    assert config().cluster_name() == "slots 1.3,1,0.33,0.33,0.33,1.6,1,1,8"


def test_equal_trials_have_no_hyper_parameters_and_cost_what_is_said():
    small = config(population={"trials": 2, "steps": 100, "step_s": 0.5}, slots=[1.0, 2.0])
    assert small.scene(0).hypers == ({}, {})
    done = simulate_trials(small.scene(0), small.population.landscape(), PopulationPolicy(FifoAllocation()))
    # An interval of 50 steps takes 25 s on the slow slot, 12.5 s on the fast one. The second trial does both
    # of its intervals there; at 25 s the first one goes on where it is: its slot was the first to be idle.
    assert done.makespan_s == 50.0
    assert sum(isinstance(event, TrialFinished) for event in done.timeline) == 2


def test_the_bound_of_equal_trials_does_not_depend_on_what_happened():
    small = config(population={"trials": 2, "steps": 100, "step_s": 0.5}, slots=[1.0, 2.0])
    # 50 s of work each: 100 s at a speed of 3 take 33.3 s; one trial alone takes 25 s on the fast slot.
    assert small.lower_bound_s([], small.scene(0)) == pytest.approx(100 / 3)


def test_a_seed_is_that_of_noise_and_of_first_hyper_parameters():
    recorded = config(population={"curves": str(CURVES)}, noise={"sigma": 0.1})
    assert recorded.scene(3).noise.seed == 3
    assert recorded.scene(3).hypers == recorded.scene(3).hypers
    assert recorded.scene(3).hypers != recorded.scene(4).hypers


def test_trials_begin_with_what_was_recorded_unless_something_else_is_said():
    start = {"lr": {"low": 0.01, "high": 0.02}, "batch_size": {"values": [16, 32]}}
    said = config(population={"curves": str(CURVES), "trials": 40, "start": start}).scene(0).hypers
    assert {hyper["momentum"] for hyper in said} == {0.0, 0.5, 0.9}
    assert all(0.01 <= hyper["lr"] <= 0.02 for hyper in said)
    sizes = {hyper["batch_size"] for hyper in said}
    assert sizes == {16, 32}
    assert all(isinstance(size, int) for size in sizes)


def test_slots_of_a_cluster_are_on_nodes_that_have_names():
    machines = bind(
        SlotsConfig,
        {
            "slots": [
                {"speed": 2.0, "node": "head"},
                {"speed": 1.0, "count": 2, "switch": 1},
                {"speed": 8.0, "node": "head", "device": "gpu"},
            ],
            "changes": [{"at_s": 5.0, "node": "node1", "what": "leave"}],
            "slowdowns": [{"at_s": 6.0, "node": "head", "factor": 2.0}],
        },
    )
    cluster = machines.build()
    assert cluster.names == ("head", "node1", "node2")
    assert cluster.switches == (0, 1, 1)
    assert cluster.all_slots == (Slot(0, 2.0), Slot(1, 1.0), Slot(2, 1.0), Slot(0, 8.0, device="gpu"))
    assert cluster.changes == (NodeChange(5.0, 1, False),)
    assert cluster.slowdowns == (Slowdown(6.0, 0, 2.0),)


def test_slots_without_a_node_are_on_none_that_has_a_name():
    slots = [{"speed": 1.0, "count": 2}, {"speed": 2.0, "node": "node1"}, {"speed": 3.0}]
    cluster = bind(SlotsConfig, {"slots": slots}).build()
    assert cluster.names == ("node0", "node2", "node1", "node3")
    assert [slot.node for slot in cluster.all_slots] == [0, 1, 2, 3]


def test_a_trial_may_take_several_slots_of_a_node():
    slots = [{"speed": 1.0, "node": "a", "count": 4}, {"speed": 3.0, "node": "b", "count": 3}]
    cluster = bind(SlotsConfig, {"slots": slots, "per_trial": 2, "efficiency": 0.9}).build()
    assert [slot.node for slot in cluster.all_slots] == [0, 0, 1]
    assert [slot.speed for slot in cluster.all_slots] == pytest.approx([1.8, 1.8, 5.4])


def test_reports_can_wait_for_the_end_of_a_list():
    assert config().scene(0).report_each
    assert not config(population={"report": "batch"}).scene(0).report_each


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"population": {"trials": 0}}, "population: trials is 0; it must be 1 to 100,000"),
        ({"population": {"steps": 0}}, "population: steps is 0; it must be at least 1"),
        ({"population": {"interval": 0}}, "population: interval is 0; it must be at least 1"),
        ({"population": {"steps": 40}}, "population: interval is 50, but a trial has 40 steps"),
        ({"population": {"step_s": 0.0}}, "population: step_s is 0; it must be above 0"),
        ({"population": {"step_s": math.inf}}, "population: step_s is inf"),
        ({"population": {"checkpoint_mb": -1.0}}, "population: checkpoint_mb is -1; it must be 0 or more"),
        ({"population": {"target": 0.8}}, "population.target is 0.8, but nothing is measured without"),
        ({"population": {"growth": 0.0}}, "population: size_mb is 0.0, growth 0.0"),
        ({"evolution": "pbt"}, "evolution is 'pbt', but nothing is measured without population.curves"),
        ({"evolution": "ptb"}, "unknown evolution 'ptb'. Did you mean 'pbt'?"),
        ({"allocations": []}, "allocations is empty; name at least one"),
        ({"allocations": ["fifo", "fifo"]}, "allocations names fifo twice"),
        ({"allocations": ["spa-era", "gpa-ero"]}, "unknown allocation 'gpa-ero'. Did you mean 'gpa-era'?"),
        ({"seeds": 0}, "seeds is 0; it must be 1 to 100,000"),
        ({"slots": [1.0, -1.0]}, "slots: slot 1: speed -1; it must be"),
        ({"slots": [1.0], "cluster": "a"}, "slots and cluster are both given; leave one of them out"),
        ({"cluster": "a"}, "cluster: unknown cluster 'a'. Known: none; define it: [clusters.a]"),
        ({"noise": {"sigma": -1.0}}, "noise: sigma is -1.0"),
        ({"costs": {"dispatch_s": -1.0}}, "costs: dispatch_s is -1; it must be 0 to 1e+09"),
    ],
)
def test_what_cannot_be_is_refused_with_where_and_why(table, message):
    with pytest.raises(ConfigError) as error:
        config(**table)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("machines", "message"),
    [
        ({"slots": []}, "slots: none; give at least one"),
        ({"slots": [{"speed": 1.0, "count": 0}]}, "clusters.a.slots[0]: count is 0"),
        ({"slots": [{"speed": 0.0}]}, "clusters.a: slots: slot 0: speed 0"),
        (
            {"slots": [{"speed": 1.0, "node": "x"}, {"speed": 1.0, "node": "x", "switch": 1}]},
            "clusters.a: slots: x is at two switches",
        ),
        (
            {"slots": [{"speed": 1.0}], "changes": [{"at_s": 1.0, "node": "nod0", "what": "leave"}]},
            "clusters.a: unknown node 'nod0'. Did you mean 'node0'?",
        ),
        ({"slots": [{"speed": 1.0}], "per_trial": 2}, "clusters.a: slots: no node has 2 slots for a trial"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_even_if_it_is_not_used(machines, message):
    with pytest.raises(ConfigError) as error:
        config(clusters={"a": machines})
    assert message in str(error.value)


def test_a_hyper_parameter_that_was_not_recorded_cannot_be_begun_with():
    wrong = config(population={"curves": str(CURVES), "start": {"learning_rate": {"low": 0.1, "high": 1.0}}})
    with pytest.raises(ConfigError, match="start: unknown hyper-parameter 'learning_rate'"):
        wrong.scene(0)
