"""`rota learn` and `rota evaluate` of an agent that places trials and lets them grow."""

import json
import shutil
from pathlib import Path

import pytest

from rota import cli

TREES = Path("results/recordings/growth/feedforward1-digits").resolve()
FEW = " ".join(
    f"--set joint.{each}"
    for each in ("updates=2", "cases_per_update=1", "episodes_per_case=2", "rule_cases=1")
)
KEYS = {
    *("cases", "agent", "best_rule", "untrained", "random", "oracle", "best_rule_name"),
    *("difference", "low", "high", "captured", "time_to_rule_ratio", "decisions_per_s"),
}


@pytest.fixture
def rota(here, capsys):
    def run(*words):
        return (cli.main([*map(str, words)]), *capsys.readouterr())

    return run


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("lr=0.001-seed0", "lr=0.001-seed1", "lr=0.0023-seed0", "lr=0.0023-seed1"):
        shutil.copytree(TREES / name, tmp_path / "trees" / name)
    Path("three.toml").write_text("joint = 3\n", "utf-8")
    Path("few.toml").write_text('[joint]\nrecordings = ["trees"]\n', "utf-8")
    return tmp_path


def test_an_agent_is_learned_and_compared(rota, here):
    learn = ("learn", "few.toml", "--seed", 0, "--out", "a", "--workers", 1, *FEW.split())
    said = json.loads(rota(*learn, "--json")[1])
    assert (said["updates"], said["trees"]) == (2, 4)
    assert said["decisions"] > 0
    facts = json.loads(Path("a/agent.json").read_text("utf-8"))
    assert (facts["kind"], facts["about"]["best_rule"]) == ("joint", said["best_rule_name"])
    assert (
        Path("a/updates.csv")
        .read_text("utf-8")
        .startswith("update,seconds,decisions,accuracy,spread,entropy,lr")
    )
    compare = ("evaluate", "--agent", "a", "--recordings", "trees", "--cases", 3, "--seed", 1, "--workers", 1)
    found = json.loads(rota(*compare, "--out", "b", "--figures", "c", "--json")[1])
    assert found.keys() >= KEYS
    assert found["cases"] == 3
    assert max(found["agent"], found["best_rule"], found["random"]) <= found["oracle"] <= 1.0
    assert found["difference"] == pytest.approx(found["agent"] - found["best_rule"])
    assert 0.0 < found["time_to_rule_ratio"] <= 1.0
    rows = json.loads(Path("b/evaluation.json").read_text("utf-8"))["compared"]
    assert sum(row["agent"] for row in rows) / 3 == pytest.approx(found["agent"])
    assert Path("c/comparison.png").stat().st_size > 10_000
    assert "a is learned already" in rota(*learn)[2]
    _, said, notes = rota(*compare, "--cases", 1)
    assert "no difference can be told" in said
    assert "note: a has learned from trees of trees; leave them out" in notes
    assert """--set 'joint.leave_out=["trees"]'""" in notes
    shutil.copytree("a", "many/seed0")
    shutil.copytree("a", "many/seed1")
    code, _, error = rota("evaluate", "--agent", "many", "--recordings", "trees", "--workers", 1)
    assert (code, "give one: --agent many/seed0" in error) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("learn", "few.toml", "--pooled"), "--pooled: few.toml has one agent"),
        (("learn", "few.toml", "--set", 'joint.leave_out=["other"]'), "no folder 'other'"),
        (("learn", "few.toml", "--set", "joint.drawn=0"), "drawn is 0"),
        (("learn", "three.toml"), "joint"),
        (("learn", "few.toml", "--recordings", "trees", "nowhere"), "nowhere"),
        (("learn", "few.toml", "--set", 'joint.recordings=["trees", "no"]'), "no: no growth trees in it"),
        (("evaluate", "--agent", "a", "--recordings", "trees"), "no agent in it"),
    ],
)
def test_mistakes_are_sentences(rota, here, words, said):
    code, _, error = rota(*words)
    assert code == 2
    assert said in error
