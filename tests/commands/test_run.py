"""`rota run` and `rota status`, as they are called."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from rota.cli import main
from rota.config.load import read
from rota.core.errors import InputError
from rota.execution import controller
from rota.execution.folder import Spool
from rota.execution.status import read_status
from rota.library import real_run
from rota.library.real_run import ordered
from rota.policies.allocation.fifo import FifoAllocation
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
    assert "has joined" in out.err
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == found


def test_a_run_leaves_what_a_simulation_leaves_for_the_eyes_of_its_owner(config, tmp_path, capsys):
    out = tmp_path / "out"
    printed(capsys, "run", config, "--out", out, "--set", "seed=3")
    run = read_population(out)
    assert len(run.events(3)) > 32
    assert (run.summary.allocation, run.summary.evolution) == ("fifo", "pbt")
    assert run.summary.repetitions[0].lower_bound_s > 0.0
    assert {file.name for file in (out / "seed3").iterdir()} >= {"timeline.jsonl", "0-accuracy.json"}
    assert out.stat().st_mode & 0o777 == 0o700


def test_pbt_explores_what_trials_begin_with(config, tmp_path, capsys):
    config.write_text(CONFIG.replace("[training]", "wd = { low = 0.0, high = 0.5 }\n\n[training]"))
    printed(capsys, "run", config, "--out", tmp_path / "out", "--set", "options.pbt.quantile=0.5")
    space = read(tmp_path / "out/config.toml")["options"]["pbt"]["space"]
    assert {name: (each["low"], each["high"]) for name, each in space.items()} == {
        "lr": (0.1, 1.0),
        "wd": (0.0, 0.5),
    }


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
    _, shown = printed(capsys, "status", out, "--json")
    found = json.loads(shown.out)
    assert found["phase"] == "complete"
    ran = json.loads(ran.out)
    assert {key: found[key] for key in ran if key != "complete"} == {
        key: ran[key] for key in ran if key != "complete"
    }
    _, shown = printed(capsys, "status", out)
    lines = shown.out.splitlines()
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
        (["--set", "training=3"], "'training' is a table; set one of its keys, as in training.KEY"),
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


@pytest.mark.parametrize("slots", ["[{count = 2, cores = 10000}]", "[{count = 2, gpu = '99'}]"])
def test_what_this_machine_does_not_have_is_refused_before_anything_begins(config, tmp_path, capsys, slots):
    for what in (config, ROOT / "config/run/jobs.toml"):
        code, out = printed(capsys, "run", what, "--out", tmp_path / "out", "--set", f"local.slots={slots}")
        assert code == 2
        assert "local.slots[0]: " in out.err
        assert "--set local.slots=" in out.err
        assert not (tmp_path / "out").exists()


def test_folders_are_not_mixed_up(config, tmp_path, capsys):
    out = tmp_path / "out"
    code, said = printed(capsys, "run", "--resume", out)
    assert (code, "no run is there" in said.err) == (2, True)
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


OWN = """
import sys
from rota.execution.idle import Idle

class Boom(Idle):
    def train(self, steps, hyper, changes):
        self.look_up({})

    def look_up(self, table):
        return table["weight_decay"]

class Nan(Idle):
    def evaluate(self):
        return float("nan")

class Either(Boom):
    def train(self, steps, hyper, changes):
        if hyper["lr"] > 0.5:
            self.look_up({})

    def evaluate(self):
        return float("nan")

class Loss(Idle):
    def evaluate(self):
        return 100.0 - super().evaluate()

def loss(settings, seed) -> Loss:
    return Loss(0.0)

def boom(settings, seed) -> Boom:
    return Boom(0.0)

def nan(settings, seed) -> Nan:
    return Nan(0.0)

def either(settings, seed) -> Either:
    return Either(0.0)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Gives what runs a trial of one's own in a process, and prints what came of it."""
    (tmp_path / "own_trials.py").write_text(OWN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")

    def run(capsys, config, name, *words):
        trial = ("--set", f"trial='own_trials:{name}'", "--set", "local.slots=[{cores = 0}]")
        return printed(capsys, "run", config, "--out", tmp_path / "out", *trial, *words)

    return run


def test_the_traceback_of_a_trial_is_logged_and_its_end_shown(config, own, tmp_path, capsys):
    code, out = own(capsys, config, "boom", "-v")
    assert code == 1
    for line in ("rota.execution.backend: trial 0 failed on slot 0:", 'return table["weight_decay"]'):
        assert line in out.err
    last = out.err.splitlines()[-1]
    assert last == (
        "rota: error: all 4 trials failed, at last with KeyError: 'weight_decay' "
        f"(more: rota status {tmp_path / 'out'})"
    )
    log = tmp_path / "out/runs/0/logs/slot0.log"
    assert log.read_text().startswith("trial 0 failed:\nTraceback (most recent call last):")
    code, shown = printed(capsys, "status", tmp_path / "out")
    lines = [line.strip() for line in shown.out.splitlines()]
    assert code == 0
    (at,) = [number for number, line in enumerate(lines) if line.endswith(f"all of it is in {log}:")]
    assert 'return table["weight_decay"]' in lines[at:]
    assert lines[-3] == "KeyError: 'weight_decay'"
    assert lines[-1] == "all 4 trials failed, at last with KeyError: 'weight_decay'"
    _, shown = printed(capsys, "status", tmp_path / "out", "--json")
    assert json.loads(shown.out)["failed"][0]["slot"] == 0


@pytest.mark.parametrize("evolution", ["pbt", "asha"])
def test_a_loss_is_made_small_and_has_its_own_sign_everywhere(config, own, tmp_path, capsys, evolution):
    out, mode = tmp_path / "out", ("--set", "mode='min'", "--set", f"evolution='{evolution}'")
    code, said = own(capsys, config, "loss", *mode, "--set", "options.pbt.quantile=0.5", "--json")
    assert code == 0
    found = json.loads(said.out)
    begun = read_status(out / "runs/0/journal.sqlite")[0].frame.hypers
    lrs = [hyper["lr"] for hyper in begun]
    # Each step takes lr off. What has the largest gets 40 steps with it, whatever becomes of the others.
    least = found["best"]["best_metric"]
    assert least == min(trial["best_metric"] for trial in found["trials"])
    assert 60.0 <= least <= 100.0 - 40 * max(lrs) + 1e-3
    assert any(trial["status"] == "stopped" for trial in found["trials"]) == (evolution == "asha")
    _, shown = printed(capsys, "status", out)
    assert f"best {least:.4f} (trial {found['best']['id']})" in shown.out
    assert f"- best metric: {least:.4g}" in (out / "summary.md").read_text()
    printed(capsys, "report", out, "--out", tmp_path / "page.html")
    assert f"its best trial reaches {least:.4g}" in (tmp_path / "page.html").read_text()
    code, again = printed(capsys, "run", "--retrain-best", out, "--json")
    assert json.loads(again.out)["metric"] == pytest.approx(least)


def test_what_the_best_trial_saved_can_be_taken_out(config, own, tmp_path, capsys, monkeypatch):
    best, again = tmp_path / "best.pt", tmp_path / "again.pt"
    code, out = own(capsys, config, "loss", "--export", best, "--repeat", 2, "--set", "mode='min'", "--json")
    assert code == 0
    found = json.loads(out.out)
    seed, least = min(
        ((each["seed"], each["best"]["best_metric"]) for each in found["repetitions"]),
        key=lambda pair: pair[1],
    )
    assert 100.0 - json.loads(best.read_bytes())["had"] == least
    assert f"{best}: trial" in out.err
    assert f"of seed {seed}, as it was after its best report" in out.err
    monkeypatch.setenv("PYTHONPATH", "")  # nothing is trained again: what was trained cannot even be found
    code, out = printed(capsys, "run", "--resume", tmp_path / "out", "--export", again)
    assert code == 0
    assert again.read_bytes() == best.read_bytes()
    code, out = printed(capsys, "run", "--resume", tmp_path / "out", "--export", again)
    assert (code, "is there already; choose another name" in out.err) == (2, True)
    (tmp_path / "out/runs/0/checkpoints").rename(tmp_path / "gone")
    (tmp_path / "out/runs/1/checkpoints").rename(tmp_path / "gone too")
    code, out = printed(capsys, "run", "--resume", tmp_path / "out", "--export", tmp_path / "third.pt")
    assert (code, "checkpoint" in out.err) == (2, True)


def test_where_nothing_is_best_nothing_is_exported(config, own, tmp_path, capsys):
    best = tmp_path / "best.pt"
    code, out = own(capsys, config, "nan", "--export", best)
    assert (code, best.exists()) == (1, False)
    assert f"{best}: not written, for there is no best trial" in out.err
    words = ("--out", tmp_path / "jobs", "--export", best)
    code, out = printed(capsys, "run", ROOT / "config/run/jobs.toml", *words)
    assert (code, "a run of jobs has no best trial" in out.err) == (2, True)


NANS = "all metrics are NaN, so no trial is the best; return a number from `evaluate`"


@pytest.mark.parametrize(
    ("name", "said"),
    [("nan", f"rota: error: {NANS}"), ("either", f"of 4 trials failed, and {NANS} (more: rota status ")],
)
def test_a_run_in_which_nothing_was_measured_has_failed(config, own, tmp_path, capsys, name, said):
    code, out = own(capsys, config, name)
    assert code == 1
    assert said in out.err.splitlines()[-1]
    _, shown = printed(capsys, "status", tmp_path / "out")
    assert shown.out.splitlines()[-1].endswith(NANS)


PLAIN = """
from pathlib import Path

def plain(settings, seed):
    Path(__file__).with_name("called").touch()
"""


@pytest.fixture
def strange(tmp_path, monkeypatch):
    """The name of a function that does not say what it makes, and the file that it would leave."""
    (tmp_path / "strange_code.py").write_text(PLAIN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    return "strange_code:plain", tmp_path / "called"


def refused(capsys, *words):
    """What is said about it, in one sentence."""
    code, shown = printed(capsys, "run", *words)
    assert code == 2
    assert "Traceback" not in shown.err
    (said,) = [line for line in shown.err.splitlines() if line.startswith("rota: error:")]
    return said


def test_code_that_does_not_say_that_it_can_be_trained_is_not_called(config, strange, tmp_path, capsys):
    name, called = strange
    said = refused(capsys, config, "--out", tmp_path / "out", "--set", f"trial='{name}'")
    assert f"trial {name}: not called" in said
    assert not called.exists()


@pytest.mark.parametrize("how", ["--resume", "--retrain-best"])
def test_code_that_a_strangers_folder_names_is_not_called_either(
    config, strange, held, tmp_path, capsys, how
):
    (name, called), out = strange, tmp_path / "out"
    process = started(config, out, *held[0])
    wait_for_reports(out)
    process.kill()
    process.communicate()
    file = out / "config.toml"
    file.write_text(file.read_text().replace("held_trials:make", name))
    assert name in file.read_text()
    refused(capsys, how, out)
    assert not called.exists()


@pytest.fixture
def spooled(config, tmp_path, monkeypatch):
    """Gives a function that runs with a small spool, and is asked about each instant whether that goes on.

    It returns the modes that the file of the spool had, and whether it is still there.
    """
    monkeypatch.setattr(controller, "Spool", partial(Spool, most=5))

    def run(goes_on):
        real = real_run.RealRun.begin(ordered(read(config), config), tmp_path / "out", "test")
        file, modes = real.folder.paths(0).spool, []

        def watch(status, events):
            modes.extend([file.stat().st_mode & 0o777] if file.exists() else [])
            goes_on(status)

        with suppress(ArithmeticError):
            real.carry_out(lambda: len(modes) > 3 and goes_on is stops, lambda seed: watch)
        return set(modes), file.exists()

    return run


def stops(status):
    """The run is asked to."""


def fails(status):
    if status.reports > 5:
        raise ArithmeticError


@pytest.mark.parametrize("goes_on", [lambda status: None, stops, fails])
def test_the_spool_is_its_owners_and_goes_with_the_run(spooled, tmp_path, goes_on):
    assert spooled(goes_on) == ({0o600}, False)
    written = (tmp_path / "out/seed0/timeline.jsonl").exists()
    assert written == (goes_on not in (stops, fails))


def test_the_spool_is_read_once_for_all_results(spooled, monkeypatch):
    reads, iterate = [], Spool.__iter__
    monkeypatch.setattr(Spool, "__iter__", lambda self: reads.append(self) or iterate(self))
    spooled(lambda status: None)
    assert len(reads) == 1


HELD = """
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from rota.execution.idle import Idle

class Held(Idle):
    left = 2

    def train(self, steps, hyper, changes):
        while not self.left and not Path(self.free).exists():
            time.sleep(0.02)
        self.left = max(0, self.left - 1)
        super().train(steps, hyper, changes)

def make(settings, seed) -> Held:
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
    """Until the run has reported something; its phase then."""
    journal, until_s = folder / "runs" / "0" / "journal.sqlite", time.monotonic() + 120
    while time.monotonic() < until_s:
        with suppress(InputError):  # there is no journal yet, or nothing in it
            status, phase = read_status(journal)
            if status.reports:
                return phase
        time.sleep(0.05)
    raise AssertionError("nothing was reported")


@pytest.fixture
def hung_up():
    """Has SIGHUP end what is started here, also if the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hung_up")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_once_the_present_parts_are_done_and_it_can_be_resumed(
    config, held, tmp_path, capsys, how
):
    words, free = held
    folder = tmp_path / "a folder with 'quotes' and spaces?#%"
    process = started(config, folder, *words, "--json")
    assert wait_for_reports(folder) == "running"
    process.send_signal(how)
    free.touch()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert json.loads(out)["complete"] is False
    assert "go on with: rota run --resume" in err
    _, shown = printed(capsys, "status", folder, "--json")
    stopped = json.loads(shown.out)
    assert stopped["phase"] == "stopped"
    assert stopped["reports"] == json.loads(out)["reports"] < 16
    code, done = printed(capsys, "run", "--resume", folder, "--json")
    assert code == 0
    assert json.loads(done.out)["reports"] == 16


def in_terminal(command, folder):
    """A process in a folder that has a terminal, and our end of that."""
    pid, ours = pty.fork()
    if not pid:
        os.chdir(folder)  # nohup writes there
        os.execv(command[0], command)
    return pid, ours


@pytest.mark.usefixtures("hung_up")
@pytest.mark.parametrize("nohup", [False, True])
def test_a_terminal_that_is_closed_stops_it_as_well_unless_that_is_to_be_ignored(
    config, held, tmp_path, capsys, nohup
):
    words, free = held
    folder = tmp_path / "out"
    command = [sys.executable, "-m", "rota", "run", str(config), "--out", str(folder), *words]
    command += ["--every", "1000"]  # nobody reads what is shown
    pid, ours = in_terminal(["/usr/bin/nohup", *command] if nohup else command, tmp_path)
    wait_for_reports(folder)
    os.close(ours)
    time.sleep(0.5)
    free.touch()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == (0 if nohup else 130)
    _, shown = printed(capsys, "status", folder, "--json")
    assert json.loads(shown.out)["phase"] == ("complete" if nohup else "stopped")
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
    code, shown = printed(capsys, "run", "--retrain-best", out, "--json")
    again = json.loads(shown.out)
    assert code == 0
    assert (again["trial"], again["metric"]) == (best["id"], best["best_metric"])
    assert all(stage["metric"] == stage["metric_then"] for stage in again["stages"])
    assert again["steps"] == sum(stage["steps"] for stage in again["stages"])
    code, shown = printed(capsys, "run", "--retrain-best", out)  # what is there is not trained again
    assert shown.out.startswith(f"trial {best['id']} again, alone")
    code, shown = printed(capsys, "run", config, "--retrain-best", out)
    assert (code, "give only the folder" in shown.err) == (2, True)


def test_there_is_nothing_to_train_again_where_nothing_was_trained(config, tmp_path, capsys):
    out = tmp_path / "out"
    (out / "runs").mkdir(parents=True)
    (out / "config.toml").write_text(config.read_text())
    code, shown = printed(capsys, "run", "--retrain-best", out)
    assert code == 2
    assert "nothing has been trained there yet" in shown.err


def test_the_command_of_a_run_is_the_one_that_was_given(config, tmp_path, capsys):
    out = tmp_path / "out"
    printed(capsys, "-v", "run", config, "--out", out)
    found = json.loads((out / "summary.json").read_text())
    assert found["command"] == f"rota -v run {config} --out {out}"


def test_what_allocation_needs_is_compiled_before_slots_wait_for_it(config, tmp_path, capsys, monkeypatch):
    asked = []
    simulate, control = real_run.simulate_trials, real_run.control

    def simulated(scene, landscape, policy):
        asked.append(type(policy.allocation))
        return simulate(scene, landscape, policy)

    def begun(*words, **options):
        asked.append("workers")
        return control(*words, **options)

    monkeypatch.setattr(real_run, "simulate_trials", simulated)
    monkeypatch.setattr(real_run, "control", begun)
    code, _ = printed(capsys, "run", config, "--out", tmp_path / "out")
    assert code == 0
    assert asked == [FifoAllocation, "workers"]
