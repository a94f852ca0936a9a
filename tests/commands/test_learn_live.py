"""`rota learn --live`: really trained, on the digits."""

import json

import pytest
import torch

from rota import cli
from rota.learning.agent import read_agent
from rota.recordings.tree import read_tree
from rota.training.recorder.step_times import grown

TREES = """
[[trees]]
budget_s = 0.3
epoch_s = 0.04
decisions = 2
actions = ["deepen 0", "nothing"]
scenarios = { early = 0.2, late = 0.5 }
[trees.setup]
model = "feedforward1"
data = "digits"
threads = 1
"""


@pytest.fixture
def rota(here, capsys):
    (here / "trees.toml").write_text(TREES)
    before = torch.get_num_threads()

    def run(*words):
        return (cli.main([*map(str, words)]), *capsys.readouterr())

    yield run
    torch.set_num_threads(before)


def test_it_learns_from_training_and_leaves_what_a_recorder_can_finish(rota, here):
    words = ("learn", "--live", "trees.toml", "--out", "a", "--set", "episodes=4")
    code, out, _ = rota(*words)
    assert code == 0
    lines = [line for line in out.splitlines() if line.startswith("episode")]
    assert len(lines) == 2 * (4 + 1)  # in the end once more, as it has learned to
    assert [line.split()[3] for line in lines[:2]] == ["1-1", "1-1"]  # first of all, nothing is changed
    about = read_agent(here / "a").about
    assert about["episodes"] == 8
    trained = list((here / "a" / "recordings" / "partial").rglob("[01]-[01].json"))
    assert about["live"]["sequences_trained"] == len(trained)
    when = {path: path.stat().st_mtime_ns for path in trained}

    code, again, _ = rota(*words, "--again")  # nothing is trained twice, and it comes to the same
    assert (code, again) == (0, out)
    assert {path: path.stat().st_mtime_ns for path in trained} == when

    assert rota("record", "trees.toml", "--out", "a/recordings", "--workers", 1, "--quiet")[0] == 0
    trees = [read_tree(path.parent) for path in (here / "a" / "recordings").rglob("recording.json")]
    assert sorted(tree.scenario for tree in trees) == ["early", "late"]
    assert not any(tree.missing() for tree in trees)
    reached = {line.split()[3]: line.split()[-1] for line in lines if line.split()[2] == "late"}
    (late,) = (tree for tree in trees if tree.scenario == "late")
    for sequence, accuracy in reached.items():
        assert f"{late.accuracy(tuple(map(int, sequence.split('-')))):.2%}" == accuracy

    code, out, _ = rota("evaluate", "--agent", "a", "--recordings", "a/recordings", "--json")
    assert [row["seen"] for row in json.loads(out)["scenarios"]] == [True, True]


def test_widening_is_an_action_like_any_other(rota, here, monkeypatch):
    """Recorded, learned from, and done again where it was done already, which does nothing."""

    def known(setup, changes, decisions):
        """However busy the machine is, so that what is learned from is the same each time."""
        trainers = grown(setup, changes, decisions, seed=0)
        return {(each.structure.fingerprint, each.hyper.batch_size): 0.001 for each in trainers}

    monkeypatch.setattr("rota.training.recorder.trees.measured", known)
    wide = TREES.replace('"deepen 0"', '"deepen 0", "widen 0 160"').replace("early = 0.2, ", "")
    (here / "wide.toml").write_text(wide)
    assert rota("record", "wide.toml", "--out", "rec", "--workers", 1, "--quiet")[0] == 0
    code, out, _ = rota(
        "learn", "--recordings", "rec", "--pooled", "--out", "a", "--json", "--set", "episodes=12800"
    )
    assert code == 0
    (row,) = json.loads(out)["scenarios"]
    assert row["of"] == 9
    # Which of them is best, by one or two test examples, depends on how a machine rounds.
    assert row["headroom"] >= -1e-9
    assert row["actions"] == ["deepen 0", "widen 0 160", "nothing"]


def test_it_prints_one_object_if_asked_to(rota):
    code, out, err = rota("learn", "--live", "trees.toml", "--out", "a", "--set", "episodes=2", "--json")
    assert code == 0
    found = json.loads(out)
    assert [row["scenario"] for row in found["scenarios"]] == ["early", "late"]
    assert all(1 <= row["rank"] <= row["of"] <= 3 for row in found["scenarios"])
    assert "episode    1" in err


def test_mistakes_are_told(rota, here):
    (here / "two.toml").write_text(TREES + TREES)
    for words, message in (
        (("--live", "none.toml"), "none.toml: no such file"),
        (("--live", "two.toml"), "has 2 [[trees]]; --live learns from exactly one"),
        (("--live", "trees.toml", "--recordings", "x"), "leave CONFIG, --recordings and --pooled out"),
        (("--live", "trees.toml", "--set", "temperature=3"), "unknown key 'temperature'"),
        (("--live", "trees.toml", "--set", 'start="agent"'), "unknown key 'start'"),
        (("--live", "trees.toml", "--set", "seeds=[0, 1]"), "seeds: --live learns one agent; give one"),
        (("--live", "trees.toml", "--set", "episodes=0"), "episodes is 0; it must be at least 1"),
    ):
        code, out, err = rota("learn", *words)
        assert (code, out) == (2, "")
        assert message in err
    (here / "results" / "learn" / "live").mkdir(parents=True)
    (here / "results" / "learn" / "live" / "agent.json").write_text("{}")
    code, _, err = rota("learn", "--live", "trees.toml")
    assert code == 2
    assert "an agent is there" in err
