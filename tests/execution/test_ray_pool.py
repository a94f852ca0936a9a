"""Simulations and roll-outs on the CPUs of a real Ray cluster."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rota
from rota import cli
from rota.core.processes import WorkerLost
from rota.library.processes import call_all

GRID = """
schedulers = ["srtf", "mine.py:Mine"]

[cluster]
nodes = 2
gpus_per_node = 4

[workload.synthetic]
jobs = 30
gpus = 8

[grid]
"workload.synthetic.seed" = [0, 1]
"""
MINE = """
import rota

class Mine(rota.Scheduler):
    def plan(self, view):
        return view.first_fit(view.rank(view.waited_s))
"""
PLACE = """
[placement]
updates = 1
cases_per_update = 2
episodes_per_case = 2
hidden = 6
tests = 1

[placement.cases]
slots = [2, 3]
trials = [3, 4]
intervals = [2, 3]
"""


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(GRID)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "place.toml").write_text(PLACE)
    return tmp_path


@pytest.fixture
def workers(ray) -> str:
    """The name of the cluster."""
    return f"ray:{ray.address}"


def said(capsys, *words):
    assert cli.main([*map(str, words)]) == 0
    return capsys.readouterr().out


def test_a_grid_does_not_depend_on_who_simulates_it(here, workers, capsys):
    words = ("simulate", "grid.toml", "--json")
    local = json.loads(said(capsys, *words, "--out", "local"))
    far = json.loads(said(capsys, *words, "--out", "far", "--workers", workers))
    assert [{**row, "wall_s": 0} for row in far] == [{**row, "wall_s": 0} for row in local]
    for metrics in Path("local").rglob("timeline.npz"):
        there = Path("far", *metrics.parts[1:])
        assert there.read_bytes() == metrics.read_bytes()
    assert not list(Path("far").glob(".shared*"))
    capsys.readouterr()
    assert cli.main([*words, "--out", "far", "--workers", workers]) == 0
    assert "reused" in capsys.readouterr().err


def test_learning_to_place_does_not_depend_on_who_rolls_out(here, workers, capsys):
    words = ("learn", "place.toml", "--quiet", "--json")
    local = json.loads(said(capsys, *words, "--out", "local", "--workers", 1))
    far = json.loads(said(capsys, *words, "--out", "far", "--workers", workers))
    assert far["evaluation"] == local["evaluation"]
    assert Path("far/weights.npz").read_bytes() == Path("local/weights.npz").read_bytes()


def test_a_comparison_with_a_class_of_the_caller(here, workers):
    class Latest(rota.Scheduler):
        def plan(self, view):
            return view.first_fit(view.rank(-view.submit_s))

    cluster = rota.Cluster.uniform(nodes=2, gpus=4)
    asked = (lambda seed: rota.synthetic_trace(jobs=20, gpus=8, seed=seed), cluster, ["srtf", Latest()])
    local, far = rota.compare(*asked, seeds=2), rota.compare(*asked, seeds=2, workers=workers)
    assert far.to_frame().drop(columns="wall_s").equals(local.to_frame().drop(columns="wall_s"))


def test_a_call_whose_node_dies_is_made_on_another(ray, workers, tmp_path):
    node = ray.add_node("doomed", 1)

    def work(number):
        (tmp_path / f"{number}.{os.environ.get('RAY_NODE_ID', os.getppid())}.{os.getpid()}").touch()
        time.sleep(1.5)
        return number

    found = []
    for place, result in call_all(work, [(number,) for number in range(8)], workers):
        if not found:
            ray.kill_node(node)
        found.append((place, result))
    assert sorted(found) == [(number, number) for number in range(8)]


def test_what_a_call_raises_is_raised_here(workers):
    def fail(number):
        raise rota.RotaError(f"no {number}")

    with pytest.raises(rota.RotaError, match="no 1"):
        list(call_all(fail, [(1,)], workers))


def test_a_worker_that_dies_again_and_again_is_an_error(workers, monkeypatch):
    monkeypatch.setattr("rota.library.ray_pool.TRIES", 1)
    with pytest.raises(WorkerLost, match=r"Ray: .*start again to resume"):
        list(call_all(os._exit, [(3,)], workers))


def test_a_cluster_is_started_where_none_is_named(tmp_path):
    """In a process of its own, which knows of no other cluster."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    few = ("--schedulers", "srtf,fifo", "--set", "workload.jobs=5")
    command = [sys.executable, "-P", "-m", "rota", "simulate", *few, "--json", "--workers", "ray"]
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)[0]["jobs"] == 5


def test_a_cluster_that_is_not_there_is_an_error(capsys):
    assert cli.main(["simulate", "--set", "workload.jobs=5", "--workers", "ray:127.0.0.1:1"]) == 2
    assert "Ray 127.0.0.1:1: does not answer" in capsys.readouterr().err
