"""A sweep that is killed leaves nothing running, and goes on when it is restored."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

import rota.sweeps as ss
from rota.execution.journal import read_journal

SCRIPT = """
    import os, sys, time
    from pathlib import Path
    import rota.sweeps as ss

    folder, endless = Path(sys.argv[1]), int(sys.argv[3])

    def train(cfg):
        (folder / f"{cfg['x']}-{os.getpid()}").touch()
        while cfg["x"] >= endless:
            time.sleep(1)
        for step in range(4):
            time.sleep(cfg["step_s"])
            ss.log({"value": cfg["x"] + step}, step)

    cfg = {"x": ss.Grid(list(range(6))), "step_s": float(sys.argv[2])}
    restore = (folder / "sweeps" / "MySweep").exists()
    ss.Experiment(train, cfg, local_dir=folder / "sweeps", restore=restore).run(max_concurrent_trials=2)
"""


def heed_interrupts() -> None:
    """As in a terminal: whoever is started in the background ignores Ctrl-C, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def started(tmp_path):
    """Gives a function that starts the sweep as a script of its own; it is ended with the test."""
    script = tmp_path / "sweep.py"
    script.write_text(textwrap.dedent(SCRIPT))
    processes = []

    def start(step_s: float, endless: int = 6) -> subprocess.Popen:
        """Trials from this number on never end."""
        command = [sys.executable, str(script), str(tmp_path), str(step_s), str(endless)]
        with (tmp_path / "printed.txt").open("ab") as printed:
            processes.append(
                subprocess.Popen(
                    command,
                    stdout=printed,
                    stderr=printed,
                    start_new_session=True,
                    preexec_fn=heed_interrupts,
                )
            )
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def pids_of_trials(folder: Path) -> list[int]:
    return [int(file.name.split("-")[1]) for file in folder.iterdir() if file.name[0].isdigit()]


def is_alive(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(is_so, at_most_s: float = 60) -> None:
    until_s = time.monotonic() + at_most_s
    while not is_so():
        assert time.monotonic() < until_s, "waited in vain"
        time.sleep(0.02)


def test_killed_in_the_middle_of_two_trials_it_leaves_none_and_runs_them_again(started, tmp_path):
    process = started(0.05, endless=2)
    wait_until(lambda: len(pids_of_trials(tmp_path)) >= 3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not any(map(is_alive, pids_of_trials(tmp_path))))

    before = ss.Result("MySweep", tmp_path / "sweeps")
    done = [trial.trial_id for trial in before.trials if trial.is_terminated()]
    assert 1 <= len(done) <= 2

    assert started(0.0).wait(60) == 0, (tmp_path / "printed.txt").read_text()
    after = ss.Result("MySweep", tmp_path / "sweeps")
    assert [trial.cfg["x"] for trial in after.trials] == [0, 1, 2, 3, 4, 5]
    for trial in after.trials:
        assert trial.status == "completed"
        assert trial.metrics == {"value": {step: trial.cfg["x"] + step for step in range(4)}}
    starts = Counter(after_kill(tmp_path))
    assert all(starts[number] == 1 for number, trial in enumerate(after.trials) if trial.trial_id in done)
    assert max(starts.values()) == 2


def after_kill(folder: Path) -> list[int]:
    """Trials in the order in which they were started, as often as they were."""
    entries = read_journal(folder / "sweeps" / "MySweep" / "journal.sqlite")
    return [entry.body["trial"] for entry in entries if entry.kind == "started"]


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_instants_it_loses_nothing(started, tmp_path, seed):
    instants = random.Random(seed)
    for turn in range(4):
        process, before = started(0.1), len(pids_of_trials(tmp_path))
        if turn % 2:  # at times before there is anything, at times in the middle of trials
            wait_until(
                lambda process=process, before=before: (
                    process.poll() is not None or len(pids_of_trials(tmp_path)) > before
                )
            )
        time.sleep(instants.uniform(0.05, 0.6))
        process.kill()
        process.wait()
    wait_until(lambda: not any(map(is_alive, pids_of_trials(tmp_path))))
    assert started(0.0).wait(60) == 0, (tmp_path / "printed.txt").read_text()
    result = ss.Result("MySweep", tmp_path / "sweeps")
    assert [trial.status for trial in result.trials] == ["completed"] * 6
    assert all(len(trial.metrics["value"]) == 4 for trial in result.trials)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_stopped_politely_it_leaves_nothing_either(started, tmp_path, how):
    process = started(0.0, endless=0)
    wait_until(lambda: len(pids_of_trials(tmp_path)) == 2)
    process.send_signal(how)
    assert process.wait(100) != 0
    wait_until(lambda: not any(map(is_alive, pids_of_trials(tmp_path))))


def test_what_a_trial_has_started_ends_with_it(sweep, tmp_path):
    def train(cfg):
        child = subprocess.Popen(["sleep", "300"])
        (tmp_path / f"1-{child.pid}").touch()
        os.kill(os.getpid(), signal.SIGKILL)

    sweep(train, {}).run()
    (pid,) = pids_of_trials(tmp_path)
    wait_until(lambda: not is_alive(pid))


def test_a_finished_experiment_can_be_given_more_trials(sweep):
    def train(cfg):
        ss.log({"x": cfg["x"]}, 0)

    cfg = {"x": ss.Uniform(0, 1, seed=3)}
    first = sweep(train, cfg).run(n_trials=2)
    cfg = {"x": ss.Uniform(0, 1, seed=3)}
    second = sweep(train, cfg, restore=True).run(n_trials=4)
    xs = [trial.cfg["x"] for trial in second.trials]
    assert xs[:2] == [trial.cfg["x"] for trial in first.trials]
    draw = ss.Uniform(0, 1, seed=3)
    assert xs == [draw() for _ in range(4)]
    assert len(sweep(train, cfg, restore=True).run(n_trials=3).trials) == 4


def test_what_was_logged_before_is_compared_with_after_restoring(sweep):
    def train(cfg):
        ss.log({"loss": cfg["x"]}, 1)

    asha = ss.ASHA("loss", "min", reduction_factor=2)
    sweep(train, {"x": ss.Grid([1.0])}, asha=asha).run()
    result = sweep(train, {"x": ss.Grid([1.0, 9.0])}, asha=asha, restore=True).run()
    assert [trial.status for trial in result.trials] == ["completed", "pruned"]
