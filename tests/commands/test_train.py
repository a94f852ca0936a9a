"""`rota train`, as its user sees it."""

import json
import signal
import subprocess
import sys
import time

import pytest

from rota import cli

SMALL = """
epochs = 2
[epoch]
steps = 3
[setup]
model = "feedforward1"
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


def test_interrupted_it_saves_what_was_trained_and_goes_on_from_there(here):
    (here / "long.toml").write_text(
        SMALL.replace("epochs = 2", "budget_steps = 4000").replace("= 3", "= 3000")
    )
    command = [sys.executable, "-m", "rota", "train", "long.toml", "--set", "setup.hyper.batch_size=4"]
    running = subprocess.Popen(command, cwd=here, stderr=subprocess.PIPE, text=True)
    while not (here / "results/train/long/train.toml").exists():
        time.sleep(0.05)
    time.sleep(1.0)
    running.send_signal(signal.SIGINT)
    assert "interrupted" in running.communicate()[1]
    assert running.returncode == 130
    assert (here / "results/train/long/checkpoint.pt").exists()
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    assert done.stdout.count("epoch") == 2  # a whole one, and what the budget left of another
    straight = subprocess.run(
        [*command, "--out", "other"], cwd=here, capture_output=True, text=True, check=True
    )
    assert straight.stdout.splitlines()[-3:-1] == done.stdout.splitlines()[-3:-1]  # to the last digit shown


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
