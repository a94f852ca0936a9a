"""`rota learn` and `rota evaluate`, as their user sees them."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rota import cli
from rota.recordings.folder import FACTS, Provenance
from rota.recordings.tree import EpochPoint, Tree, beginnings, folder_name, write_tree

ACTIONS = ("deepen 0", "deepen 1", "nothing")
MAIN = "from rota.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
QUICK = ("--set", "episodes=6400", "--quiet")


def tree(model: str, scenario: str, start_s: float, best: tuple[int, int], seed: int = 0) -> Tree:
    """Two decisions between three actions. One sequence is best; for the others, deeper is better."""
    curves = {}
    for sequence in ((a, b) for a in range(3) for b in range(3)):
        for made in beginnings(sequence):
            at_s = 400.0 if len(made) == 2 else start_s + 12.0 * len(made)
            accuracy = 0.9 if made == best else 0.5 + 0.05 * sum(action < 2 for action in made)
            curves[made] = (EpochPoint(len(made), at_s, 0, 1.0, accuracy),)
    origin = Provenance("cpu", {}, "", seed, "by hand", "2026-01-02T03:04:05+00:00", "0")
    return Tree(model, "cifar10", scenario, seed, 400.0, start_s, 2, ACTIONS, curves, origin)


@pytest.fixture
def recordings(here) -> Path:
    folder = here / "trees"
    for each in (
        tree("ConvNet2", "early", 70.0, (1, 0)),
        tree("ConvNet2", "late", 340.0, (2, 1)),
        tree("ConvNet2", "late", 340.0, (2, 1), seed=1),
        tree("ConvNet3", "early", 70.0, (0, 0)),
    ):
        write_tree(folder / folder_name(each), each)
    return folder


@pytest.fixture
def rota(here, capsys):
    def run(*words):
        code = cli.main([*map(str, words)])
        return (code, *capsys.readouterr())

    return run


def test_learn_prints_one_object_and_so_does_evaluate(rota, recordings):
    code, out, _ = rota(
        "learn", "--recordings", recordings, "--pooled", "--seed", 0, "--out", "a", "--json", *QUICK
    )
    assert code == 0
    found = json.loads(out)
    rows = [(row["model"], row["scenario"], row["sequence"], row["rank"]) for row in found["scenarios"]]
    assert rows == [
        ("ConvNet2", "early", [1, 0], 1),
        ("ConvNet2", "late", [2, 1], 1),
        ("ConvNet2", "late", [2, 1], 1),
        ("ConvNet3", "early", [0, 0], 1),
    ]
    assert all(row["of"] == 9 and row["headroom"] == pytest.approx(1.0) for row in found["scenarios"])
    assert found["episodes"] == 4 * 6400
    assert found["episodes_per_s"] == pytest.approx(found["episodes"] / found["seconds"], rel=0.01)
    code, out, _ = rota("evaluate", "--agent", "a", "--recordings", recordings, "--json")
    assert code == 0
    again = json.loads(out)
    assert [row["sequence"] for row in again["scenarios"]] == [row[2] for row in rows]
    assert {"scenario", "model", "sequence", "accuracy", "rank", "of", "headroom"} <= set(
        again["scenarios"][0]
    )


def test_without_joint_there_is_an_agent_for_each_scenario(rota, recordings, here):
    code, out, err = rota("learn", "--recordings", recordings, "--out", "a", *QUICK, "--workers", 1)
    assert code == 0
    agents = sorted(path.parent.name for path in here.glob("a/*/agent.json"))
    assert agents == ["convnet2-early", "convnet2-late", "convnet3-early"]
    assert out.count("headroom") == 3
    code, out, _ = rota("evaluate", "--agent", "a/convnet2-early", "--recordings", recordings)
    assert code == 0
    assert out.count(" *") >= 3  # the unseen are marked
    code, _, err = rota("learn", "--recordings", recordings, "--out", "a", *QUICK, "--workers", 1)
    assert code == 0
    assert "is learned already; --again learns it anew" in err


def test_a_configuration_with_a_grid_is_a_family(rota, recordings, here):
    (here / "family.toml").write_text(
        'recordings = ["trees"]\nmodels = ["convnet2"]\nepisodes = 64\n'
        '[grid]\nstages = [["early"], ["early", "late"]]\ntemperature = [1, 10]\n'
    )
    code, out, _ = rota("learn", "family.toml", "--workers", 1, "--quiet")
    assert code == 0
    names = sorted(path.parent.name for path in here.glob("results/learn/family/*/agent.json"))
    assert names == [
        "stages=early,temperature=1",
        "stages=early,temperature=10",
        "stages=early_late,temperature=1",
        "stages=early_late,temperature=10",
    ]
    assert out.count("rank") == 2 * 1 + 2 * 3  # a line per agent, which names each tree it has learned from
    code, out, _ = rota("evaluate", "--agent", "results/learn/family", "--recordings", recordings, "--json")
    assert code == 0
    assert len(json.loads(out)["scenarios"]) == 4 * 4


@pytest.mark.parametrize("what", ["scenario", "model"])
def test_what_is_left_out_is_not_learned_from(rota, recordings, here, what):
    words = ("evaluate", "--leave-out", what, "--recordings", recordings, "--set", "episodes=640", "--quiet")
    code, out, _ = rota(*words, "--seed", 0, "--seed", 1, "--workers", 1, "--json")
    assert code == 0
    found = json.loads(out)
    assert len(found["scenarios"]) == 2 * 4  # each tree once for each seed of the agent
    assert not any(row["seen"] for row in found["scenarios"])
    assert found["ceilings"] == {"convnet2/late": pytest.approx(1.0)}  # two recordings that are equal
    for path in here.glob("results/evaluate/*/without-*/*/agent.json"):
        left_out = path.parts[-3].removeprefix("without-")
        learned_from = json.loads(path.read_text())["about"]["stages"][0]["trees"]
        assert learned_from
        assert not any(left_out in name for name in learned_from)
    code, out, _ = rota(*words, "--seed", 0, "--seed", 1, "--workers", 1)
    assert "left out" in out
    assert "mean" in out


KILLED = """
import os, signal
import rota.learning.learner as it

it.CHECKPOINT_EVERY_S = 0.0
make = it.StageLearner._update

def update(self, size):
    make(self, size)
    if self.update == 20:
        os.kill(os.getpid(), signal.SIGKILL)

it.StageLearner._update = update
"""


def test_killed_at_any_moment_it_goes_on_and_comes_to_the_same(rota, recordings, here):
    words = ["learn", "--recordings", "trees", "--pooled", "--set", "episodes=12800", "--quiet"]
    rota(*words, "--out", "whole")
    command = [sys.executable, "-c", KILLED + MAIN, *words, "--out", "killed"]
    done = subprocess.run(command, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL
    assert list(here.glob("killed/.stages/*/checkpoint.npz"))
    assert rota(*words, "--out", "killed")[0] == 0
    assert (here / "killed" / "weights.npz").read_bytes() == (here / "whole" / "weights.npz").read_bytes()


def test_logs_are_plain_and_for_tensorboard(rota, recordings, here):
    rota("learn", "--recordings", recordings, "--pooled", "--out", "a", *QUICK)
    head, first, *_ = (here / "a" / "updates.csv").read_text().splitlines()
    assert head == "stage,episodes,objective,reward,accuracy,entropy,lr,temperature"
    assert first.startswith("0,256,")  # 64 of each of four trees
    assert list((here / "a" / "tensorboard").glob("events.out.tfevents.*"))


# ── what a user may get wrong ───────────────────────────────────────────────────────────────────────────────


def wrong(said, *parts):
    code, out, err = said
    assert code == 2
    assert out == ""
    assert err.startswith("rota: error:")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err


def test_a_recording_with_missing_sequences_says_which(rota, recordings):
    whole = tree("ConvNet2", "middle", 200.0, (0, 1))
    curves = {made: points for made, points in whole.curves.items() if made not in ((0, 1), (2, 2))}
    partial = Tree(whole.model, whole.data, "middle", 0, 400.0, 200.0, 2, ACTIONS, curves, whole.provenance)
    write_tree(recordings / "partial", partial)
    said = rota("learn", "--recordings", recordings, "--pooled", "--out", "a")
    wrong(said, "ConvNet2 middle", "2 of 9 sequences are missing (0-1, 2-2)", "record them first")


def test_damaged_recordings_and_agents_are_told(rota, recordings, here):
    rota("learn", "--recordings", recordings, "--pooled", "--out", "a", *QUICK)
    facts = json.loads((here / "a" / "agent.json").read_text())
    (here / "a" / "agent.json").write_text(json.dumps(facts | {"version": 99}))
    said = rota("evaluate", "--agent", "a", "--recordings", recordings)
    wrong(said, "an agent of version 99", "learn it again")
    (here / "a" / "agent.json").write_text("{")
    wrong(rota("evaluate", "--agent", "a", "--recordings", recordings), "agent.json: cannot be read")
    points = next(recordings.glob("*early*")) / "points.csv"
    points.write_text(points.read_text()[:200])
    wrong(rota("learn", "--recordings", recordings, "--pooled", "--out", "b"), "checksum differs")
    (points.parent / FACTS).unlink()
    wrong(rota("learn", "--recordings", recordings, "--pooled", "--out", "b"), "not a complete recording")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("learn",), "from what?"),
        (("learn", "--recordings", "nowhere", "--pooled"), "nowhere: not there"),
        (("learn", "--recordings", ".", "--pooled", "--workers", "ray"), "only agents that place trials"),
        (("learn", "none.toml"), "none.toml: no such file"),
        (("evaluate", "--recordings", "trees"), "Give --agent DIR"),
        (("evaluate", "--agent", "nowhere", "--recordings", "trees"), "nowhere: no agent in it"),
        (("evaluate", "--agent", "trees", "--recordings", "trees"), "trees: no agent in it"),
        (("evaluate", "--agent", "x", "--leave-out", "model"), "Give --agent DIR"),
        (
            ("learn", "--recordings", "trees", "--pooled", "--set", "method.netwrk=x"),
            "Did you mean 'network'?",
        ),
        (("learn", "--recordings", "trees", "--pooled", "--set", 'models=["vgg16"]'), "no tree of 'vgg16'"),
    ],
)
def test_a_mistake_is_one_line_that_says_how_to_fix_it(rota, recordings, words, message):
    wrong(rota(*words), message)


@pytest.mark.parametrize("grid", ["[grid]\n", "[grid]\nstages = []\n"])
def test_an_empty_grid_is_a_mistake(rota, recordings, here, grid):
    (here / "empty.toml").write_text(f'recordings = ["trees"]\n{grid}')
    wrong(rota("learn", "empty.toml"), "empty.toml: grid:", "empty")


def test_all_keys_are_listed(rota):
    code, out, _ = rota("learn", "--help-config")
    assert code == 0
    assert "method.entropy" in out
    assert "transfer_episodes" in out


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_growth_policy_of_the_users_is_evaluated_beside_others(rota, recordings, here):
    """It deepens block 1 and then block 0, which is best in one tree, and not in the others."""
    (here / "mine.py").write_text(
        "from dataclasses import dataclass\nimport rota\n\n@dataclass(frozen=True)\n"
        "class Mine(rota.Growth):\n"
        "    first: int = 0\n    def choose(self, observation):\n"
        '        return "deepen 0" if observation.made else f"deepen {self.first}"\n'
    )
    words = ("evaluate", "--agent", "mine.py:Mine", "--recordings", recordings, "--json")
    code, out, _ = rota(*words, "--set", "options.mine.first=1")
    assert code == 0
    found = json.loads(out)["scenarios"]
    assert [row["sequence"] for row in found] == [[1, 0]] * 4
    assert [row["rank"] == 1 for row in found] == [True, False, False, False]
    assert {row["agent"] for row in found} == {"mine"}
    assert "--set episodes: is for learning" in rota(*words, "--set", "episodes=1")[2]
