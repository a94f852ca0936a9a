"""`rota train`, as its user sees it."""

import json
import subprocess
import sys

import pytest

from rota import cli
from rota.learning.agent import Agent, write_agent
from rota.policies.allocation.learned import SHIPPED
from rota.recordings.folder import provenance

SMALL = """
epochs = 2
[epoch]
steps = 3
[setup]
model = "feedforward1"
threads = 1
"""

UP = """
budget_s = 3.0
allocation = [{ at_s = 0.1, to = "up" }]
[epoch]
steps = 2
[setup]
model = "feedforward3"
threads = 1
"""


@pytest.fixture
def train(here, capsys):
    """Gives a function that runs `rota train …` in the folder `here`; the code, stdout and stderr."""
    (here / "small.toml").write_text(SMALL)

    def run(*words):
        return (cli.main(["train", *map(str, words)]), *capsys.readouterr())

    return run


def test_it_prints_a_line_per_epoch_and_the_end(train, here):
    code, out, _ = train("small.toml")
    lines = out.splitlines()
    assert code == 0
    assert [line.split()[:2] for line in lines[:2]] == [["epoch", "0"], ["epoch", "1"]]
    assert lines[2].startswith("validation:  accuracy 0.")
    assert lines[3].startswith("test:  accuracy 0.")
    assert lines[4] == "results/train/small"
    assert json.loads((here / lines[4] / "result.json").read_text())["steps"] == 6


def test_a_second_call_says_the_same_without_training(train):
    first = train("small.toml")
    note = "note: results/train/small is trained already; --again trains it anew\n"
    assert train("small.toml") == (0, first[1], note)


def test_again_trains_anew_but_deletes_only_runs(train, here):
    train("small.toml")
    before = (here / "results/train/small/result.json").stat().st_mtime_ns
    assert train("small.toml", "--again")[0] == 0
    assert (here / "results/train/small/result.json").stat().st_mtime_ns > before
    (here / "mine").mkdir()
    (here / "mine" / "thesis.txt").write_text("years of work")
    code, _, err = train("small.toml", "--again", "--out", "mine")
    assert code == 2
    assert "not the folder of a training run" in err
    assert (here / "mine" / "thesis.txt").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "which configuration?"),
        (["smal.toml"], "Did you mean 'small.toml'"),
        (
            ["small.toml", "--set", "setup.model=resnet19"],
            "unknown model 'resnet19'. Did you mean 'resnet18'",
        ),
        (["small.toml", "--set", "setup.data=cifar11"], "unknown data set 'cifar11'. Did you mean 'cifar10'"),
        (["small.toml", "--set", "setup.hyper.lrr=1"], "Did you mean 'lr'"),
        (["small.toml", "--set", "setup.hyper.batch_size=0"], "batch_size is 0; it must be at least 1"),
        (["small.toml", "--set", "budget_s=1e-9"], "shorter than"),
        (["small.toml", "--set", "setup.device=gpu"], "device 'gpu': is not one"),
        (["small.toml", "--set", "profile=nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_told_in_one_line_with_exit_code_2(train, words, message):
    code, _, err = train(*words)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_run_that_fails_ends_with_exit_code_1(train):
    code, out, _ = train("small.toml", "--set", "setup.hyper.lr=1e30", "--set", "setup.optimizer=sgd")
    assert code == 1
    assert "try a smaller lr" in out


def test_changes_of_the_network_are_told(train, here):
    (here / "grow.toml").write_text(
        'changes = ["deepen 0", "shrink"]\nallocation = [{ at_s = 0, to = "up" }]\n' + SMALL
    )
    _, out, _ = train("grow.toml")
    assert [line.split()[-2:] for line in out.splitlines() if line.startswith(" ")] == [
        ["deepen", "0"],
        ["3", "shrink"],
    ]


@pytest.mark.parametrize(
    "wrong", ["setup.data=cifar11", "setup.model=resnet19", 'changes=["deepen 9"]', "budget_s=1e-9"]
)
def test_a_start_that_failed_does_not_stand_in_the_way_of_the_next(train, wrong):
    up = ["--set", 'allocation=[{at_s = 1, to = "up"}]']
    assert train("small.toml", *up, "--set", wrong)[0] == 2
    assert train("small.toml")[0] == 0


INTERRUPTED = """
import os, signal, sys
from rota.cli import main
from rota.training.run import Watch

seen, step = [], Watch.__call__

def watch(self):
    seen.append(self)
    if len(seen) == 150:
        os.kill(os.getpid(), signal.SIGINT)
    step(self)

Watch.__call__ = watch
sys.exit(main(sys.argv[1:]))
"""


def test_interrupted_it_saves_what_was_trained_and_goes_on_from_there(train, here):
    (here / "long.toml").write_text(SMALL.replace("epochs = 2", "budget_steps = 400").replace("= 3", "= 300"))
    words = ["long.toml", "--set", "setup.hyper.batch_size=4"]
    interrupted = subprocess.run(
        [sys.executable, "-P", "-c", INTERRUPTED, "train", *words], cwd=here, capture_output=True, text=True
    )
    assert "interrupted" in interrupted.stderr
    assert interrupted.returncode == 130
    assert (here / "results/train/long/checkpoint.pt").exists()
    code, resumed, _ = train(*words)
    assert (code, resumed.count("epoch")) == (0, 2)  # a whole one, and what the budget left of another
    code, straight, _ = train(*words, "--out", "other")
    assert code == 0
    assert straight.splitlines()[-3:-1] == resumed.splitlines()[-3:-1]  # to the last digit shown


def test_a_grid_trains_each_point_in_a_folder_of_its_own(train, here):
    (here / "grid.toml").write_text(SMALL + "[grid]\nseed = [0, 1]\n")
    code, out, _ = train("grid.toml")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith(("seed", "results"))] == [
        "seed=0",
        "results/train/grid/seed=0",
        "seed=1",
        "results/train/grid/seed=1",
    ]


def test_a_profile_is_looked_for_beside_the_file_that_names_it(train, here):
    (here / "below").mkdir()
    (here / "below" / "some.toml").write_text('profile = "tree"\n' + SMALL)
    assert "below/tree" in train("below/some.toml")[2]


def test_the_keys_of_the_configuration_can_be_listed(train):
    code, out, _ = train("--help-config")
    assert code == 0
    assert "setup.hyper.lr" in out
    assert "resnet18       ResNet-18 for small images" in out


@pytest.fixture
def agents(here):
    """Agents with fresh weights in the folders `agent0` and `agent1`, and a run for them to decide in."""
    (here / "up.toml").write_text(UP)
    made = provenance(device="cpu", seed=0, command="rota learn")
    for seed in (0, 1):
        write_agent(here / f"agent{seed}", Agent.new("structural", {}, seed=seed), made)


@pytest.mark.usefixtures("agents")
def test_an_agent_decides_and_its_decisions_are_told(train, here):
    code, out, _ = train("up.toml", "--agent", "agent0")
    assert code == 0
    found = json.loads((here / "results/train/up/result.json").read_text())
    assert found["provenance"]["command"] == "rota train up.toml --agent agent0"
    assert found["seconds"] >= 3.0
    decisions = found["decisions"]
    assert len(decisions) == 3
    assert all(each["at_s"] >= 0.1 for each in decisions)
    shown = [line.split(None, 2) for line in out.splitlines() if line.startswith(" ")]
    assert [(word, int(steps)) for word, steps, _ in shown] == [("step", each["steps"]) for each in decisions]
    for (_, _, text), each in zip(shown, decisions, strict=True):
        chances = each["probabilities"]
        assert each["chosen"] == max(chances, key=chances.get)
        assert text.startswith(f"{each['chosen']} (p {chances[each['chosen']]:.2f})  ")
        assert text.count(", ") == 2  # three blocks and nothing: three others
    assert (here / "results/train/up/decisions.csv").read_text().count("\n") == 4


@pytest.mark.usefixtures("agents")
def test_decisions_are_told_again_but_another_agent_does_not_take_them_for_its_own(train):
    first = train("up.toml", "--agent", "agent0")
    assert train("up.toml", "--agent", "agent0")[:2] == first[:2]
    for words in ([], ["--agent", "agent1"]):
        code, _, err = train("up.toml", *words)
        assert code == 2
        assert "another run is there" in err


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agent", "nowhere"], "nowhere: no agent in it (agent.json is missing)"),
        (["--agent", "."], "give the folder that rota learn wrote"),
        (["--agent", str(SHIPPED)], "this agent places trials on slots (kind 'placement'); give one that"),
        (["--agent", "agent0", "--set", 'changes=["deepen 0"]'], "leave out one of both"),
        (["--agent", "agent0", "--set", "allocation=[]"], "allocation: an agent is asked once it goes up"),
        (["--agent", "agent0", "--set", 'actions=["deepen 0"]'], "one of them 'nothing'"),
    ],
)
def test_an_agent_that_cannot_decide_is_told_in_one_line_with_exit_code_2(train, here, words, message):
    code, _, err = train("up.toml", *words)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not (here / "results/train/up/train.toml").exists()


@pytest.mark.usefixtures("agents")
def test_an_agent_for_another_number_of_actions_is_told_before_training(train, here):
    made = provenance(device="cpu", seed=0, command="rota learn")
    write_agent(here / "five", Agent.new("original", {"actions": 5}, seed=0), made)
    code, out, err = train("up.toml", "--agent", "five")
    assert (code, out) == (2, "")
    assert "decides between 5 actions, not 4" in err


@pytest.mark.usefixtures("agents")
def test_again_with_what_cannot_be_trained_deletes_nothing(train, here):
    assert train("up.toml")[0] == 0
    words = ("--agent", "agent0", "--set", "allocation=[]", "--again")
    assert train("up.toml", *words)[0] == 2
    assert (here / "results/train/up/result.json").exists()


GROW = """
from dataclasses import dataclass
import rota

@dataclass(frozen=True)
class GrowFirst(rota.Growth):
    block: int = 0
    def choose(self, observation):
        return f"deepen {self.block}" if len(observation.made) < 1 else "nothing"
"""


class Equal:
    """Any structure: 0.1 s per step."""

    def __getitem__(self, pace):
        return 0.1


@pytest.fixture
def grow(here, monkeypatch):
    from rota.training.clock import ProfiledClock
    from rota.training.run import TrainingRun

    monkeypatch.setattr(TrainingRun, "_clock", lambda self: ProfiledClock(Equal()))
    (here / "grow.py").write_text(GROW)
    (here / "up.toml").write_text(UP)
    return here / "grow.py"


def chosen(here):
    found = json.loads((here / "results/train/up/result.json").read_text())
    return [each["chosen"] for each in found["decisions"]]


def test_a_class_of_the_users_decides(train, here, grow):
    words = ("up.toml", "--agent", "grow.py:GrowFirst")
    code, out, _ = train(*words)
    assert (code, chosen(here)) == (0, ["deepen 0", "nothing", "nothing"])
    assert "deepen 0 (p 1.00)" in out
    assert "is trained already" in train(*words)[2]
    code, _, err = train(*words, "--set", "options.grow-first.block=1")
    assert (code, "another run is there" in err) == (2, True)
    assert train(*words, "--set", "options.grow-first.block=1", "--again")[0] == 0
    assert chosen(here) == ["deepen 1", "nothing", "nothing"]


def test_it_can_be_named_in_the_configuration_and_its_content_belongs_to_the_run(train, here, grow):
    (here / "deep").mkdir()
    grow.rename(here / "deep" / "grow.py")
    named = 'agent = "grow.py:GrowFirst"\noptions = { grow-first = { block = 2 } }\n'
    (here / "deep" / "up.toml").write_text(named + UP)
    assert train("deep/up.toml")[0] == 0
    assert chosen(here) == ["deepen 2", "nothing", "nothing"]
    (here / "deep" / "grow.py").write_text(GROW + "# another thought\n")
    code, _, err = train("deep/up.toml")
    assert (code, "another run is there" in err) == (2, True)


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (GROW, ["--agent", "grow.py:Grow"], "no class 'Grow' in grow.py; it has GrowFirst"),
        (
            "class GrowFirst: ...",
            [],
            "is not a growth policy: it has no choose; write def choose(self, ",
        ),
        (
            "class GrowFirst:\n    def choose(self, observation): ...",
            [],
            "it has no 'probabilities'; derive it from rota.Growth",
        ),
        (GROW, ["--set", "options.grow-first.blok=1"], "options.grow-first: unknown key 'blok'"),
        (GROW, ["--set", "options.grow.block=1"], "options: unknown growth policy 'grow'"),
        (GROW, ["--set", "options=1"], "options: 1 is not a table"),
        (GROW.replace("deepen", "widen"), [], "'widen 0': not a change"),
        (
            GROW,
            ["--set", "options.grow-first.block=7"],
            "chose deepen 7, which is not offered; choose one of",
        ),
    ],
)
def test_a_class_that_does_not_fit_is_told_what_it_lacks(train, here, grow, content, words, message):
    grow.write_text(content)
    agent = [] if "--agent" in words else ["--agent", "grow.py:GrowFirst"]
    code, _, err = train("up.toml", *agent, *words)
    assert code == 2
    assert message in err.replace("widen 0: not", "'widen 0': not")
    assert not (here / "results/train/up/train.toml").exists()


def test_options_without_such_a_class_are_refused(train, grow):
    code, _, err = train("up.toml", "--set", "options.mine.x=1")
    assert (code, "options: are for a class of yours" in err) == (2, True)
