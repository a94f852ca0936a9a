"""What can be said about slots on Ray."""

import tomllib
from pathlib import Path

import pytest

from rota.core.errors import ConfigError
from rota.core.population.scores import Score, ScoredDevice, write_scores
from rota.execution.ray import NodeSelector
from rota.execution.ray_cluster import RayNode
from rota.execution.ray_config import RayConfig, RaySlotConfig
from rota.library.real_run import ordered


def node(name, address, **labels):
    return RayNode("id", name, frozenset({name, address, "host"}), labels, {"CPU": 2.0})


def test_slots_of_a_node_stand_together_and_unequal_ones_beside_each_other():
    slots = (
        RaySlotConfig(count=2, gpus=0.5, speed=8.0, node="g", labels={"kind": "gpu"}),
        RaySlotConfig(node="g"),
        RaySlotConfig(cpus=2, node="c"),
    )
    config = RayConfig("auto", slots)
    cluster = config.cluster()
    assert cluster.names == ("g", "c")
    assert [(slot.node, slot.speed, slot.device) for slot in cluster.all_slots] == [
        (0, 8.0, "gpu"), (0, 8.0, "gpu"), (0, 1.0, "cpu"), (1, 1.0, "cpu"),
    ]  # fmt: skip
    assert config.wanted() == [NodeSelector("g", {"kind": "gpu"}), NodeSelector("c", {})]


def test_a_node_is_known_by_its_labels_or_else_by_its_name_address_or_host():
    there = node("fast", "10.0.0.7", kind="gpu", rack="3")
    assert NodeSelector("anything", {"kind": "gpu"}).fits(there)
    assert not NodeSelector("fast", {"kind": "cpu"}).fits(there)
    assert all(NodeSelector(name).fits(there) for name in ("fast", "10.0.0.7", "host", ""))
    assert not NodeSelector("slow").fits(there)


@pytest.mark.parametrize(
    "wrong",
    [
        {"node": "a b"},
        {"node": "../a"},
        {"node": "a\nb"},
        {"node": "'a'"},
        {"count": 0},
        {"cpus": -1.0},
        {"cpus": 1.5},
        {"gpus": float("nan")},
        {"resources": {"disk": -1.0}},
    ],
)
def test_hostile_names_and_impossible_numbers_are_refused(wrong):
    with pytest.raises(ConfigError):
        RaySlotConfig(**wrong)


def test_without_an_address_there_is_only_this_machine():
    with pytest.raises(ConfigError, match="without an address there is one, this machine"):
        RayConfig("", (RaySlotConfig(node="a"), RaySlotConfig(node="b")))


def test_labels_that_contradict_each_other_are_refused():
    slots = (RaySlotConfig(labels={"kind": "a"}), RaySlotConfig(labels={"kind": "b"}))
    with pytest.raises(ConfigError, match="kind is both 'a' and 'b'"):
        RayConfig("auto", slots)


def test_what_was_asked_for_can_be_read_again():
    slots = [{"count": 2, "node": "a", "labels": {"kind": "fast"}, "resources": {"disk": 0.5}}]
    table = {"backend": "ray", "ray": {"address": "127.0.0.1:6379", "slots": slots}}
    order = ordered(table, Path("here"))
    assert ordered(tomllib.loads(order.text()), Path("there")).config == order.config


def test_speeds_are_those_of_a_file_of_scores_and_are_kept_with_the_run(tmp_path):
    scores = {
        ScoredDevice("a", "CPU"): Score(2, 300.0),
        ScoredDevice("a", "GPU"): Score(1, 1600.0),
        ScoredDevice("b", "CPU"): Score(1, 100.0),
    }
    write_scores(tmp_path / "score.json", scores)
    slots = [{"node": "b", "count": 2}, {"node": "a", "cpus": 2}, {"node": "a", "gpus": 0.5}]
    table = {"backend": "ray", "ray": {"address": "auto", "scores": "score.json", "slots": slots}}
    order = ordered(table, tmp_path / "config.toml")
    assert [slot.speed for slot in order.config.engine.cluster().all_slots] == [1.0, 1.0, 3.0, 8.0]
    (tmp_path / "score.json").unlink()
    assert ordered(tomllib.loads(order.text()), Path("there")).config == order.config


@pytest.mark.parametrize(
    ("slot", "message"),
    [({"node": "c"}, "no score of c CPU"), ({"node": "a"}, "for 2, but the slots take 1")],
)
def test_a_score_that_is_missing_or_of_another_bundle_is_an_error(tmp_path, slot, message):
    write_scores(tmp_path / "score.json", {ScoredDevice("a", "CPU"): Score(2, 300.0)})
    table = {"backend": "ray", "ray": {"address": "auto", "scores": "score.json", "slots": [slot]}}
    with pytest.raises(ConfigError, match=message):
        ordered(table, tmp_path / "config.toml")
