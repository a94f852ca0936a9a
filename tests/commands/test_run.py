"""`rota run` and `rota status`, as they are called."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rota.cli import main
from rota.commands import real_run
from rota.policies.allocation.fifo import Fifo
from rota.results.population.run import read_population

ROOT = Path(__file__).parents[2]
CONFIG = """
allocation = "fifo"
evolution = "pbt"
trial = "rota.execution.idle:idle"

[population]
trials = 4
steps = 40
interval = 10

[population.start]
lr = { low = 0.1, high = 1.0 }

[training]
step_s = 0.0002
"""


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(CONFIG)
    return file


def printed(capsys, *words):
    code = main([str(word) for word in words])
    return code, capsys.readouterr()


def test_run_prints_what_the_issue_asks_for_as_json_and_nothing_else(config, tmp_path, capsys):
    one = [
        "--set",
        "local.slots=[{cores = 0}]",
        "--set",
        "options.pbt.quantile=0.5",
    ]  # so that the same trials are cloned each time
    code, out = printed(capsys, "run", config, "--out", tmp_path / "out", "--json", *one)
    assert code == 0
    found = json.loads(out.out)
    assert [trial["id"] for trial in found["trials"]] == [0, 1, 2, 3]
    for trial in found["trials"]:
        assert set(trial) >= {"id", "status", "steps", "best_metric", "hyper", "node"}
        assert (trial["status"], trial["steps"], trial["node"]) == ("finished", 40, "here")
    assert found["best"]["best_metric"] == max(trial["best_metric"] for trial in found["trials"])
    assert (found["reports"], found["failures"], found["complete"]) == (16, 0, True)
    assert found["clones"] >= 1
    assert 0.0 < found["overhead_s_per_report"] < 1.0
    assert found["wall_s"] > 0.0
    assert "is there" in out.err
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == found


def test_a_run_leaves_what_a_rehearsal_leaves_for_the_eyes_of_its_owner(config, tmp_path, capsys):
    out = tmp_path / "out"
    printed(capsys, "run", config, "--out", out, "--set", "seed=3")
    run = read_population(out)
    assert len(run.events(3)) > 32
    assert (run.summary.allocation, run.summary.evolution) == ("fifo", "pbt")
    assert run.summary.repetitions[0].lower_bound_s > 0.0
    assert {file.name for file in (out / "seed3").iterdir()} >= {"timeline.jsonl", "0-accuracy.json"}
    assert out.stat().st_mode & 0o777 == 0o700


def test_several_repetitions_have_different_seeds_and_one_summary(config, tmp_path, capsys):
    out = tmp_path / "out"
    _, said = printed(capsys, "run", config, "--out", out, "--repeat", 2, "--json")
    found = json.loads(said.out)
    assert [each["seed"] for each in found["repetitions"]] == [0, 1]
    assert [each.seed for each in read_population(out).summary.repetitions] == [0, 1]
    first, second = (each["best"]["best_metric"] for each in found["repetitions"])
    assert first != second


def test_a_finished_run_that_is_resumed_is_told_again_and_not_trained_again(config, tmp_path, capsys):
    out = tmp_path / "out"
    _, first = printed(capsys, "run", config, "--out", out, "--json")
    code, again = printed(capsys, "run", "--resume", out, "--json")
    assert code == 0
    assert json.loads(again.out) == json.loads(first.out)


def test_status_tells_the_same_as_the_run_did(config, tmp_path, capsys):
    out = tmp_path / "out"
    _, ran = printed(capsys, "run", config, "--out", out, "--json")
    _, told = printed(capsys, "status", out, "--json")
    found = json.loads(told.out)
    assert found["phase"] == "complete"
    ran = json.loads(ran.out)
    assert {key: found[key] for key in ran if key != "complete"} == {
        key: ran[key] for key in ran if key != "complete"
    }
    _, told = printed(capsys, "status", out)
    lines = told.out.splitlines()
    assert lines[0].split()[:3] == ["trial", "node", "status"]
    assert len(lines) == 6
    assert lines[-1].startswith("complete: 16 reports")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "evolution='pbd'"], "unknown evolution 'pbd'. Did you mean 'pbt'"),
        (["--set", "allocation='fivo'"], "unknown allocation 'fivo'. Did you mean 'fifo'"),
        (["--set", "trial='os.system'"], "module:function"),
        (["--set", 'trial="x:y\'; rm"'], "module:function"),
        (["--set", "populaton.trials=3"], "Did you mean 'population'"),
        (["--set", "local.slots=[{node = '../x'}]"], "use letters, digits"),
        (["--set", "local.slots=[{gpu = '0; x'}]"], "number or the UUID"),
        (["--set", "local.slots=[]"], "give at least one"),
        (["--set", "options.pbt.quantile=2"], "quantile is 2"),
        (["--set", "options.pbt.space.rate={low = 0.1, high = 1.0}"], "hyper-parameter in space: 'rate'"),
        (["--set", 'options.pbt.keep=["lrr"]'], "hyper-parameter in keep: 'lrr'. Did you mean 'lr'?"),
        (["--set", "training=3"], "training is not a table"),
        (["--repeat", "0"], "repeat is 0"),
        (["--address", "127.0.0.1:1"], 'backend is "local"'),
        (["--set", "trial='rota.nothing:there'"], "No module named 'rota.nothing'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(config, tmp_path, capsys, words, said):
    code, out = printed(capsys, "run", config, "--out", tmp_path / "out", *words)
    assert code == 2
    assert said in out.err.splitlines()[-1]
    assert out.out == ""


def test_folders_are_not_mixed_up(config, tmp_path, capsys):
    out = tmp_path / "out"
    code, said = printed(capsys, "run", "--resume", out)
    assert (code, "no run to go on with" in said.err) == (2, True)
    code, said = printed(capsys, "status", out)
    assert (code, "no run is there" in said.err) == (2, True)
    printed(capsys, "run", config, "--out", out)
    code, said = printed(capsys, "run", config, "--out", out)
    assert (code, "has a run already" in said.err) == (2, True)
    code, said = printed(capsys, "run", config, "--resume", out)
    assert (code, "give only the folder" in said.err) == (2, True)
    code, said = printed(capsys, "run")
    assert (code, "what and where" in said.err) == (2, True)


def test_a_run_whose_trials_all_fail_has_failed(config, tmp_path, capsys):
    text = 'trial = "rota.execution.idle:idle"\n[population]\ntrials = 2\nsteps = 10\ninterval = 10\n'
    config.write_text(text + '[population.start]\nlr = { names = ["no number"] }\n')
    code, out = printed(capsys, "run", config, "--out", tmp_path / "out", "--json")
    assert code == 1
    found = json.loads(out.out)
    assert [trial["status"] for trial in found["trials"]] == ["failed", "failed"]
    assert found["failures"] == 6
    assert "could not convert string to float" in found["failed"][0]["why"]
    assert "failed: ValueError" in out.err


HELD = """
import time
from pathlib import Path
from rota.execution.idle import Idle

class Held(Idle):
    left = 2

    def train(self, steps, hyper, changes):
        while not self.left and not Path(self.free).exists():
            time.sleep(0.02)
        self.left = max(0, self.left - 1)
        super().train(steps, hyper, changes)

def make(settings, seed):
    held = Held(0.0)
    held.free = settings["free"]
    return held
"""


@pytest.fixture
def held(tmp_path, monkeypatch):
    """Words that make each worker wait after two parts, until the file exists that goes with them."""
    (tmp_path / "held_trials.py").write_text(HELD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    free = tmp_path / "free"
    settings = ("trial='held_trials:make'", f"training.free='{free}'")
    return [word for setting in settings for word in ("--set", setting)], free


def started(config, folder, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "rota", "run", config, "--out", folder, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )


def wait_for_reports(folder):
    until_s = time.monotonic() + 120
    while time.monotonic() < until_s:
        status = subprocess.run(
            [sys.executable, "-m", "rota", "status", folder, "--json"],
            capture_output=True,
            text=True,
            check=False,
        )
        if status.returncode == 0 and json.loads(status.stdout)["reports"]:
            return json.loads(status.stdout)
        time.sleep(0.1)
    raise AssertionError("nothing was reported")


def test_ctrl_c_stops_it_once_the_present_parts_are_done_and_it_can_be_resumed(
    config, held, tmp_path, capsys
):
    words, free = held
    folder = tmp_path / "a folder with 'quotes' and spaces?#%"
    process = started(config, folder, *words, "--json")
    assert wait_for_reports(folder)["phase"] == "running"
    process.send_signal(signal.SIGINT)
    free.touch()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert json.loads(out)["complete"] is False
    assert "go on with: rota run --resume" in err
    _, told = printed(capsys, "status", folder, "--json")
    stopped = json.loads(told.out)
    assert stopped["phase"] == "stopped"
    assert stopped["reports"] == json.loads(out)["reports"] < 16
    code, done = printed(capsys, "run", "--resume", folder, "--json")
    assert code == 0
    assert json.loads(done.out)["reports"] == 16


def test_ctrl_c_twice_stops_it_at_once(config, held, tmp_path):
    process = started(config, tmp_path / "out", *held[0])
    wait_for_reports(tmp_path / "out")
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)  # for what is being trained, which takes for ever
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in err


def test_the_configuration_that_is_shipped_trains_real_networks(tmp_path, capsys):
    words = ["--set", "population.steps=50", "--set", "population.trials=4", "--json"]
    code, out = printed(capsys, "run", ROOT / "config/run/local.toml", "--out", tmp_path / "out", *words)
    assert code == 0
    found = json.loads(out.out)
    assert found["reports"] == 8
    assert found["best"]["best_metric"] > 0.5


def test_all_keys_are_documented(capsys):
    _, out = printed(capsys, "run", "--help-config")
    keys = [line for line in out.out.splitlines() if line and not line.startswith("[")]
    assert len(keys) > 50
    for section in ("[options.pbt]", "[training]", "local.slots[].cores", "population.interval"):
        assert section in out.out


def test_the_best_trial_trained_again_alone_comes_to_the_same(config, tmp_path, capsys):
    out = tmp_path / "out"
    more = ["options.pbt.quantile=0.5", 'options.pbt.grow={probability = 0.5, actions = ["deepen 0"]}']
    _, ran = printed(
        capsys, "run", config, "--out", out, "--json", *(word for text in more for word in ("--set", text))
    )
    best = json.loads(ran.out)["best"]
    code, told = printed(capsys, "run", "--replay", out, "--json")
    again = json.loads(told.out)
    assert code == 0
    assert (again["trial"], again["metric"]) == (best["id"], best["best_metric"])
    assert all(stage["metric"] == stage["metric_then"] for stage in again["stages"])
    assert again["steps"] == sum(stage["steps"] for stage in again["stages"])
    code, told = printed(capsys, "run", "--replay", out)  # what is there is not trained again
    assert told.out.startswith(f"trial {best['id']} again, alone")
    code, told = printed(capsys, "run", config, "--replay", out)
    assert (code, "give only the folder" in told.err) == (2, True)


def test_there_is_nothing_to_train_again_where_nothing_was_trained(config, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "config.toml").write_text(config.read_text())
    code, told = printed(capsys, "run", "--replay", out)
    assert code == 2
    assert "nothing has been trained there yet" in told.err


def test_the_command_of_a_run_is_the_one_that_was_given(config, tmp_path, capsys):
    out = tmp_path / "out"
    printed(capsys, "-v", "run", config, "--out", out)
    found = json.loads((out / "summary.json").read_text())
    assert found["command"] == f"rota -v run {config} --out {out}"


def test_what_allocation_needs_is_compiled_before_slots_wait_for_it(config, tmp_path, capsys, monkeypatch):
    asked = []
    hand_out, control = Fifo.hand_out, real_run.control

    def noted(self, view):
        asked.append("allocation")
        yield from hand_out(self, view)

    def begun(*words, **options):
        asked.append("workers")
        return control(*words, **options)

    monkeypatch.setattr(Fifo, "hand_out", noted)
    monkeypatch.setattr(real_run, "control", begun)
    code, _ = printed(capsys, "run", config, "--out", tmp_path / "out")
    assert code == 0
    assert asked[0] == "allocation"
    assert asked.count("workers") == 1
