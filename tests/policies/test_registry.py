"""The schedulers by name: what a contract over the whole table can check without running them."""

import os
import subprocess
import sys

import pytest

from rota.core.errors import ConfigError
from rota.core.policy import Needs
from rota.policies.cluster.registry import ALIASES, SCHEDULERS, canonical, scheduler_class


@pytest.mark.parametrize(
    ("original", "name"),
    [
        ("shortest", "srtf"),
        ("shortest-gpu", "srsf"),
        ("dlas-gpu", "tiresias"),
        ("themis", "themis"),
        ("antman", "antman"),
        ("multi-resource-blossom-same-gpu", "muri-s"),
        ("multi-resource-blossom-same-gpu-unaware", "muri-l"),
        ("multi-resource-blossom-same-gpu-unaware-worstordering", "muri-l-worst-order"),
        ("multi-resource-gpu-unaware", "muri-l-no-blossom"),
    ],
)
def test_the_nine_schedulers_of_the_muri_simulator_can_be_called_as_they_were_there(original, name):
    assert canonical(original) == name
    assert scheduler_class(original) is scheduler_class(name)


def test_no_alias_hides_a_scheduler():
    assert not set(ALIASES) & set(SCHEDULERS)
    assert set(ALIASES.values()) <= set(SCHEDULERS)


@pytest.mark.parametrize(("name", "guess"), [("srft", "srtf"), ("muri_l", "muri-l"), ("Themis", "themis")])
def test_an_unknown_name_suggests_what_was_probably_meant(name, guess):
    with pytest.raises(
        ConfigError, match=f"^unknown scheduler '{name}'. Did you mean '{guess}'. Known: fifo, "
    ):
        canonical(name)


def test_a_name_like_no_other_gets_the_list_only():
    with pytest.raises(ConfigError, match=r"^unknown scheduler 'xyz'\. Known: .*, muri-l-no-blossom"):
        scheduler_class("xyz")


@pytest.mark.parametrize("name", SCHEDULERS)
class TestEveryScheduler:
    def test_states_its_needs_and_can_plan(self, name):
        policy = scheduler_class(name)()
        assert isinstance(policy.needs, Needs)
        assert policy.needs == policy.needs
        assert callable(policy.plan)


# Whatever is imported from here is there to be imported, so that it would be seen.
FAKES = ("torch", "ray", "tensorflow")

ASK = """
import sys
from rota.core.cluster import Cluster
from rota.policies.cluster.registry import scheduler_class
from rota.simulator.jobs import warm_up
for name in ("fifo", "srtf", "srsf"):
    warm_up(scheduler_class(name)())
    print(name, *sys.modules)
"""


def test_simple_schedulers_run_without_importing_what_only_others_need(tmp_path):
    for fake in FAKES:
        (tmp_path / f"{fake}.py").write_text("")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
    }
    said = subprocess.check_output([sys.executable, "-c", ASK], env=environment, text=True)
    heavy = {*FAKES, "rustworkx", "matplotlib", "rota.policies.cluster.muri", "rota.policies.cluster.themis"}
    found = {name: heavy & set(modules) for name, *modules in map(str.split, said.splitlines())}
    assert found == {"fifo": set(), "srtf": set(), "srsf": set()}
