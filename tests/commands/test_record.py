"""`rota record`, as its user sees it, and killed."""

import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from rota import cli
from rota.recordings.tree import read_tree

TREES = """
[[trees]]
budget_s = 0.4
epoch_s = 0.05
decisions = 2
actions = ["deepen 0", "nothing"]
scenarios = { late = 0.6 }
[trees.setup]
model = "feedforward1"
data = "digits"
threads = 1
"""
CURVES = """
[[curves]]
name = "x"
grid = { learning_rate = [0.1] }
"""


@pytest.fixture
def record(here, capsys):
    (here / "trees.toml").write_text(TREES)
    (here / "curves.toml").write_text(CURVES)

    def run(*words):
        return (cli.main(["record", *map(str, words)]), *capsys.readouterr())

    return run


KILLED = """
import os, signal, sys
from rota.cli import main
from rota.training.recorder.partial import RecordingProgress

left, advance = [int(sys.argv.pop(1))], RecordingProgress.advance

def count(self, seconds):
    advance(self, seconds)
    left[0] -= 1
    if not left[0]:  # with its workers, which are at others
        os.killpg(0, signal.SIGKILL)

RecordingProgress.advance = count
sys.exit(main(sys.argv[1:]))
"""


def test_killed_at_any_moment_it_goes_on_and_all_of_it_is_there(record, here):
    words = ["record", "trees.toml", "--out", "out", "--workers", "2"]
    for pieces in (1, 3):  # of seven
        killed = [sys.executable, "-P", "-c", KILLED, str(pieces), *words]
        done = subprocess.run(killed, cwd=here, start_new_session=True, stderr=subprocess.DEVNULL)
        assert done.returncode == -signal.SIGKILL
    kept = {path: path.stat().st_mtime_ns for path in (here / "out").rglob("partial/*/seed0/**/*.json")}
    assert len(kept) >= 1 + 3
    command = [sys.executable, "-m", "rota", *words]
    running = subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, text=True)
    while running.poll() is None and not (here / "out" / "trees").exists():
        for path, when in kept.items():  # what was there is not made again
            with suppress(FileNotFoundError):  # taken into the tree by now
                assert path.stat().st_mtime_ns == when
        time.sleep(0.01)
    assert running.communicate()[0] == "out/trees/feedforward1-digits-late-seed0\n"
    tree = read_tree(here / "out" / "trees" / "feedforward1-digits-late-seed0")
    assert not tree.missing()
    assert tree.provenance.command == "rota record trees.toml"
    assert tree.provenance.libraries["torch"]
    assert record("trees.toml", "--out", "out") == (0, "", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.toml"], "no such file"),
        (["curves.toml"], "curves[0]: grid: unknown hyper-parameter 'learning_rate'. Known: lr, momentum"),
        (["trees.toml", "--workers", "0"], "--workers 0: give 1 or more"),
        (["trees.toml", "--set", "trees=[]"], "nothing to record"),
        ([], "which configuration?"),
        (["trees.toml", "--set", "trees.epoch_s=1e-9"], "a step of the slowest structure takes"),
        (["trees.toml", "--set", 'trees.actions=["deepen 7", "nothing"]'], "has 1 blocks, counted from 0"),
        (["trees.toml", "--set", "trees.budgets=1"], "Did you mean 'budget_s'"),
    ],
)
def test_mistakes_are_told_in_one_line_with_exit_code_2(record, words, message):
    code, _, err = record(*words)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_start_that_failed_does_not_stand_in_the_way_of_the_next(record, here):
    assert record("trees.toml", "--set", 'trees.actions=["deepen 7", "nothing"]')[0] == 2
    assert record("trees.toml", "--set", "trees.epoch_s=1e-9")[0] == 2
    assert not [path for path in (here / "results").rglob("*") if path.is_file()]


def test_the_keys_of_the_configuration_can_be_listed(record):
    code, out, _ = record("--help-config")
    assert code == 0
    assert "trees" in out
