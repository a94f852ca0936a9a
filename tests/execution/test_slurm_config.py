"""What can be said about nodes of Slurm, and what Slurm is asked for then."""

import os
import sys
import tomllib
from pathlib import Path

import pytest

from rota.core.errors import ConfigError
from rota.execution.slurm_commands import (
    Host,
    NodeRequest,
    StepTarget,
    cpus_per_node,
    job_command,
    outside,
    step_command,
)
from rota.execution.slurm_config import SlurmConfig, SlurmNodeConfig, match_hosts
from rota.library.real_run import ordered

CONFIG = Path(__file__).parents[2] / "config" / "run" / "slurm.toml"


def test_nodes_have_names_of_their_own_and_the_speed_of_their_feature():
    config = SlurmConfig(
        (
            SlurmNodeConfig(count=2, slots=2, feature="fast", gres="gpu:1", speed=4.0),
            SlurmNodeConfig(host="big7", speed=2.0),
            SlurmNodeConfig(count=2),
            SlurmNodeConfig(feature="fast", speed=3.0),
        )
    )
    cluster = config.cluster()
    assert cluster.names == ("fast-0", "fast-1", "big7", "node-0", "node-1", "fast-2")
    assert [(slot.node, slot.speed, slot.device) for slot in cluster.all_slots] == [
        (0, 4.0, "gpu"), (0, 4.0, "gpu"), (1, 4.0, "gpu"), (1, 4.0, "gpu"),
        (2, 2.0, "cpu"), (3, 1.0, "cpu"), (4, 1.0, "cpu"), (5, 3.0, "cpu"),
    ]  # fmt: skip
    assert len(config.requests()) == 6


@pytest.mark.parametrize(
    ("gres", "name", "count"),
    [
        ("", "", 0),
        ("gpu", "gpu", 1),
        ("gpu:2", "gpu", 2),
        ("gpu:a100", "gpu:a100", 1),
        ("gpu:a100:4", "gpu:a100", 4),
    ],
)
def test_a_gres_has_a_name_and_a_count(gres, name, count):
    request = SlurmNodeConfig(gres=gres).request
    assert (request.gres, request.gres_count) == (name, count)


HOSTILE = ["a b", "../a", "a\nb", "'a'", "$(x)", "a;b", "--wrap=x", "a,b", "é"]


@pytest.mark.parametrize("key", ["feature", "host", "gres"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused(key, name):
    with pytest.raises(ConfigError, match=key):
        SlurmNodeConfig(**{key: name})


@pytest.mark.parametrize("wrong", [{"count": 0}, {"slots": 0}, {"cpus": -1}, {"host": "a", "count": 2}])
def test_impossible_numbers_are_refused(wrong):
    with pytest.raises(ConfigError):
        SlurmNodeConfig(**wrong)


@pytest.mark.parametrize("argument", ["bash", "-p all", "--comment=a\nb", "--", "", "--Comment=a", "--a\x00"])
def test_an_argument_that_could_be_a_command_is_refused(argument):
    with pytest.raises(ConfigError, match="arguments"):
        SlurmConfig(arguments=(argument,))


def test_a_step_has_cores_and_gres_of_its_own_on_the_node_of_its_job():
    command = step_command(
        StepTarget("17", "node3"), NodeRequest(2, 4, "fast", "gpu:a100", 2), 5, "my.trials:make", Path("/a b")
    )
    assert command == [
        "srun", "--jobid=17", "--nodelist=node3", "--job-name=slot5", "--nodes=1", "--ntasks=1", "--exact",
        "--cpus-per-task=4", "--gres=gpu:a100:2", "--mem=0", "--export=ALL",
        sys.executable, "-m", "rota.execution.slurm_process", "step", "my.trials:make", "/a b",
    ]  # fmt: skip
    assert "--gres=none" in step_command(
        StepTarget("17", "node3"), NodeRequest(), 5, "my.trials:make", Path("/a b")
    )


def test_a_job_has_all_that_its_slots_need():
    command = job_command(
        NodeRequest(2, 4, "fast", "gpu", 2, "node3"), "rota-x", ("--comment='$(touch x)' y",)
    )
    ours = [sys.executable, "-P", "-m", "rota.execution.slurm_process"]
    assert command[:6] == [*ours, "ask", str(os.getpid())]
    assert command[-5:] == [*ours, "hold"]
    assert command[6:-5] == [
        "salloc", "--job-name=rota-x", "--nodes=1", "--ntasks=2", "--cpus-per-task=4", "--kill-command=KILL",
        "--constraint=fast", "--gres=gpu:4", "--nodelist=node3", "--comment='$(touch x)' y",
    ]  # fmt: skip
    assert not [
        word for word in job_command(NodeRequest(), "rota-x", ()) if "constraint" in word or "gres" in word
    ]


def test_commands_are_not_told_what_the_batch_script_was_told():
    found = outside({"SLURM_CONF": "/conf", "SLURM_NTASKS": "7", "SLURM_JOB_ID": "1", "PATH": "/bin"})
    assert {name for name in found if name.startswith("SLURM")} == {"SLURM_CONF"}
    assert found["PATH"] == "/bin"


def test_cores_per_node_are_read_as_slurm_writes_them():
    assert cpus_per_node("4(x2),2,16(x1)") == [4, 4, 2, 16]
    assert cpus_per_node("") == []


def test_demanding_nodes_choose_first_and_nodes_without_a_host_are_left_out():
    fast, slow = frozenset({"fast", "x"}), frozenset({"slow"})
    hosts = [Host("a", 4, fast), Host("b", 4, fast), Host("c", 4, slow)]
    requests = [
        NodeRequest(2, 1),
        NodeRequest(2, 2, "fast"),
        NodeRequest(1, 1, host="b"),
        NodeRequest(1, 1, "slow"),
    ]
    assert match_hosts(requests, hosts) == {2: "b", 1: "a", 3: "c"}
    assert match_hosts([NodeRequest(2, 3), NodeRequest(1, 4)], hosts) == {
        1: "a"
    }  # six cores are more than any of them has


def test_the_example_is_a_run_on_four_slots_of_two_nodes():
    config = ordered(tomllib.loads(CONFIG.read_text()), CONFIG).config
    assert config.engine is config.slurm
    assert [slot.node for slot in config.engine.cluster().all_slots] == [0, 0, 1, 1]
