"""Learning to schedule: what an episode is worth, the loop that resumes, and the command."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rota.cli import main
from rota.core.errors import ConfigError, InputError
from rota.learning.scheduling.evolution import ScheduleLearner
from rota.learning.scheduling.run import ScheduleRun
from rota.learning.scheduling.training import (
    ScheduleAgentConfig,
    SchedulingObjective,
    WorldsConfig,
    worlds_of,
)
from rota.policies.cluster.learned import Corrected, CorrectionWeights, write_agent
from rota.policies.cluster.registry import scheduler_class
from rota.simulator.jobs import simulate
from rota.simulator.windows import contention, sized, windows
from rota.workload.synthetic import SyntheticConfig, generate

WORLDS = WorldsConfig(synthetic=5, jobs=40, kinds=("a", "b"), gpus=8)
CONFIG = ScheduleAgentConfig(
    durations="exact", updates=4, pairs=2, worlds_per_update=2, hidden=3, validate_every=2, worlds=WORLDS
)


@pytest.fixture(scope="module")
def worlds():
    return worlds_of(CONFIG)


def test_the_objective_is_a_sum_of_logarithms():
    jct_s, solo_s = np.array([10.0, 20.0, 60.0]), np.array([5.0, 20.0, 20.0])
    assert SchedulingObjective(1.0, 0.0).value(jct_s, solo_s) == pytest.approx(np.log(30.0))
    # Slowdowns: 10/10, as jobs count as 10 s at least, 20/20 and 60/20; the worst tenth is the last job.
    assert SchedulingObjective(0.0, 0.0, 1.0).value(jct_s, solo_s) == pytest.approx(np.log(5 / 3))
    assert SchedulingObjective(0.0, 0.0, 0.0, 2.0).value(jct_s, solo_s) == pytest.approx(2 * np.log(3.0))
    assert SchedulingObjective(0.0, 1.0).value(np.full(200, 7.0), np.ones(200)) == pytest.approx(np.log(7.0))


def test_a_world_is_played_as_it_is_simulated(worlds):
    world = worlds.training[0]
    done = simulate(world.jobs, world.cluster, scheduler_class("srtf")())
    ends = {event.job: event.at_s for event in done.timeline if type(event).__name__ == "Finished"}
    for _ in range(2):  # its engine is used again
        assert world.play(Corrected()) == pytest.approx(
            [ends[job] for job in range(40)] - world.jobs.submit_s
        )


def test_stopped_and_resumed_it_learns_the_same(worlds, tmp_path):
    whole = ScheduleLearner(CONFIG, 7, worlds, tmp_path / "whole", "same")
    whole.learn()
    first = ScheduleLearner(CONFIG, 7, worlds, tmp_path / "parts", "same")
    with pytest.raises(InterruptedError):
        first.learn(lambda row: stop() if row.update == 2 else None)
    first.save()
    second = ScheduleLearner(CONFIG, 7, worlds, tmp_path / "parts", "same")
    second.resume()
    assert len(second.rows) == 2
    second.learn()
    assert second.flat.tolist() == whole.flat.tolist()
    assert second.kept.tolist() == whole.kept.tolist()
    assert [row.objective for row in second.rows] == [row.objective for row in whole.rows]
    other = ScheduleLearner(CONFIG, 7, worlds, tmp_path / "parts", "another")
    with pytest.raises(InputError, match="another agent is being learned here"):
        other.resume()


def stop():
    raise InterruptedError


def test_what_is_kept_is_never_worse_than_the_rule(worlds, tmp_path):
    learner = ScheduleLearner(CONFIG, 1, worlds, tmp_path, "x")
    learner.learn()
    kept = [
        world.value(learner.weights, CONFIG.objective) - world.rule(CONFIG.objective)
        for world in worlds.validation
    ]
    assert np.mean(kept) == pytest.approx(learner.kept_value)
    assert learner.kept_value <= 0.0


def test_a_step_goes_down_the_gradient(worlds, tmp_path):
    learner = ScheduleLearner(CONFIG, 1, worlds, tmp_path, "x")
    before = learner.flat.copy()
    gradient = np.zeros(len(before))
    gradient[3], gradient[5] = 2.0, -0.1
    learner._step(gradient, 0)
    # The first step of Adam has the length of the learning rate in each direction that there is.
    assert (learner.flat - before)[[3, 5]] == pytest.approx([-CONFIG.lr, CONFIG.lr], rel=1e-5)
    assert np.count_nonzero(learner.flat != before) == 2


def test_clusters_are_sized_by_contention():
    jobs = generate(SyntheticConfig(jobs=80, load=1.0, seed=2))
    cluster = sized(jobs, 2.0)
    assert cluster is not None
    found = {
        nodes: abs(np.log(contention(jobs, cluster.uniform(nodes, 8)) / 2.0))
        for nodes in (len(cluster.nodes) - 1, len(cluster.nodes), len(cluster.nodes) + 1)
        if nodes * 8 >= jobs.gpus.max()
    }
    assert min(found, key=found.get) == len(cluster.nodes)
    assert sized(jobs, 1e6) is None
    for window, of in windows(jobs, 40, 3, (1.5, 2.0), seed=1, largest_gang=8):
        assert len(window) == 40
        assert window.gpus.max() <= 8
        assert of.slots % 8 == 0
    assert list(windows(jobs, 81, 3, (2.0,), seed=1)) == []


@pytest.mark.parametrize(("make", "message"), [
    (lambda: SchedulingObjective(0.0, 0.0), "one of them above 0"),
    (lambda: ScheduleAgentConfig(seeds=()), "seeds"),
    (lambda: ScheduleAgentConfig(pairs=0), "pairs is 0"),
    (lambda: ScheduleAgentConfig(sigma=0.0), "sigma is 0"),
    (lambda: WorldsConfig(synthetic=2), "at least 5 synthetic worlds"),
    (lambda: WorldsConfig(synthetic=201), "at most 200"),
    (lambda: WorldsConfig(contentions=(0.5,)), "contentions must be above 1"),
    (lambda: WorldsConfig(kinds=("a", "b"), gpus=6), "give a multiple of 4"),
])  # fmt: skip
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_the_command_learns_agents_that_schedule(tmp_path, capsys):
    file = tmp_path / "tiny.toml"
    file.write_text(
        '[schedule]\ndurations = "exact"\nupdates = 2\npairs = 1\nworlds_per_update = 1\nhidden = 2\n'
        'worlds = { synthetic = 5, jobs = 30, kinds = ["a", "b"], gpus = 8 }\n'
    )
    out = tmp_path / "out"
    command = ["learn", str(file), "--seed", "3", "--seed", "4", "--out", str(out), "--json", "--quiet"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)["agents"]
    assert [each["seed"] for each in found] == [3, 4]
    assert found[0]["updates"] == 2
    for seed in (3, 4):
        assert (out / f"seed{seed}" / "tensorboard").is_dir()
    assert main(command) == 0
    assert "is learned already" in capsys.readouterr().err
    other = [*command, "--set", "schedule.updates=3"]
    assert main(other) == 2
    assert "another agent is there" in capsys.readouterr().err
    weights = CorrectionWeights.new(2, 3)
    assert weights.flat.shape == (2 * 14,)


def test_an_agent_that_starts_at_another_depends_on_its_weights(worlds, tmp_path):
    found = []
    for seed in (1, 1, 2):
        write_agent(tmp_path, CorrectionWeights.new(2, seed), "none", {})
        config = replace(CONFIG, start=tmp_path)
        found.append(ScheduleRun(tmp_path, config, 0, worlds).digest)
    assert found[0] == found[1] != found[2]
