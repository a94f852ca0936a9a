"""What a cluster of Ray is told, and what is removed of one that has ended."""

import tempfile
from pathlib import Path

import pytest

from rota.execution.ray_cluster import RayCluster


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """What the workers of a cluster at an address find in their environment."""
    for name in ("PYTHONPATH", "GLOO_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)

    def answer(address):
        cluster = RayCluster(address)
        cluster._folder = tmp_path
        return cluster._arguments().get("runtime_env", {}).get("env_vars", {})

    return answer


def test_gangs_of_a_cluster_of_our_own_stay_on_this_machine_and_those_of_others_do_not(environment):
    assert environment("") == {"GLOO_SOCKET_IFNAME": "lo"}
    assert environment("auto") == {}


@pytest.mark.parametrize("address", ["", "auto"])
def test_workers_find_what_this_process_finds_and_meet_where_it_says(environment, monkeypatch, address):
    monkeypatch.setenv("PYTHONPATH", "/there")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth1")
    assert environment(address) == {"PYTHONPATH": "/there", "GLOO_SOCKET_IFNAME": "eth1"}


def test_what_a_controller_that_was_killed_left_is_removed(tmp_path):
    left, link = Path(tempfile.mkdtemp(prefix="rota-ray-")), tmp_path / "ray"
    (left / "token").touch()
    link.symlink_to(left)
    RayCluster("", link=link)._remove_link()
    assert not left.exists()
    assert not link.is_symlink()


@pytest.mark.parametrize("folder", ["project", "rota-ray-project"])
def test_what_a_link_from_elsewhere_points_at_is_left_alone(tmp_path, folder):
    other, link = tmp_path / folder, tmp_path / "ray"
    other.mkdir()
    (other / "work").touch()
    link.symlink_to(other)
    RayCluster("", link=link)._remove_link()
    assert (other / "work").exists()
    assert not link.is_symlink()
