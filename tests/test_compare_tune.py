"""The stopwatches of scripts/compare-tune.sh, and its own side of it: real processes, without Ray Tune."""

import subprocess
import sys
from pathlib import Path

import pytest

from rota.config.load import override, read
from rota.core.errors import ConfigError
from rota.library.real_run import ordered

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "config" / "run" / "ray.toml"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")


def asked_for(*settings):
    return ordered(override(read(CONFIG), settings), CONFIG)


def test_a_timed_trial_trains_as_the_other_and_says_when_how_much_and_how_good(tmp_path):
    import timed_trial

    trial = timed_trial.timed(timed_trial.settings("rota.execution.idle:idle", {}, tmp_path), 0)
    trial.begin(1)
    trial.train(10, {"lr": 0.5}, ())
    first = trial.evaluate()
    content = trial.save()
    trial.train(4, {"lr": 0.25}, ())
    trial.evaluate()
    trial.load(content)
    trial.train(2, {"lr": 1.0}, ())
    trial.evaluate()
    parts = timed_trial.parts(tmp_path)
    assert [part.steps for part in parts] == [10, 4, 2]
    assert [part.metric - first for part in parts] == [0.0, 1.0, 2.0]
    assert [part.fresh for part in parts] == [1, None, None]
    assert all(part.began_s <= part.ended_s for part in parts)


BURNS = """
import subprocess, sys, time
burn = "import time\\nwhile time.process_time() < 0.5: pass\\nprint('done', flush=True)\\ninput()"
child = subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("done", flush=True)
input()
child.communicate(b"end")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_the_cpu_seconds_of_a_process_are_also_those_of_its_children():
    from cpu_time import CpuTime

    command = [sys.executable, "-c", BURNS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        clock = CpuTime(process.pid)
        clock.look()
        process.communicate(b"end")
    assert 0.45 <= clock.used_s < 30.0


def test_our_side_is_a_run_of_its_own_whose_trials_are_timed():
    import compare_tune

    order = asked_for(
        "backend=local", "trial=rota.execution.idle:idle", "population.trials=3", "population.steps=50",
        "training={step_s=0.001}",
    )  # fmt: skip
    run = compare_tune.run(compare_tune.OURS, order, 5)
    assert (run.seed, run.reports, run.steps, len(run.finals)) == (5, 6, 150, 3)
    assert sorted(run.beginnings) == [0, 1, 2]
    assert run.work_s >= 150 * 0.001
    assert max(run.finals) == run.best
    assert 0.0 < run.training_s < run.process_s


def test_a_side_that_fails_says_why(tmp_path):
    import compare_tune

    from rota.core.errors import RotaError

    with pytest.raises(RotaError, match=r"rota: ended with 3:\nno such luck"):
        compare_tune.carried_out(
            "rota", [sys.executable, "-c", "import sys\nsys.stderr.write('no such luck')\nsys.exit(3)"]
        )


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("backend=local", "backend ray"),
        ("evolution=none", "evolution pbt"),
        ("ray.slots=[{cpus=1}, {cpus=2}]", "all alike"),
        ("population.steps=60", "whole intervals"),
    ],
)
def test_what_ray_tune_could_not_do_is_not_compared(setting, said):
    import compare_tune

    with pytest.raises(ConfigError, match=said):
        compare_tune.checked(asked_for(setting))
    assert compare_tune.checked(asked_for())
