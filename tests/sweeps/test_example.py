"""The example that people know, as it is written: a file without main guard."""

import subprocess
import sys
import textwrap

import pytest

import rota.sweeps as ss

EXAMPLE = """\
import time
import rota.sweeps as ss

def train(cfg):
    for step in range(cfg["steps"]):
        time.sleep(0.1)
        ss.log({"error": abs(cfg["x"] - 1) / (step + 1)}, step)

sweep = ss.Experiment(train=train, cfg={"steps": 20, "x": ss.Uniform(0, 2)}, asha=ss.ASHA("error", "min"))
print(sweep.run(n_trials=50).best_trial())
"""


def run(code: str, folder) -> str:
    (folder / "example.py").write_text(code)
    command = [sys.executable, "example.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_runs_as_written(tmp_path):
    printed = run(EXAMPLE, tmp_path)
    result = ss.Result("MySweep", tmp_path / "slurm-sweeps")
    assert len(result.trials) == 50
    assert {trial.status for trial in result.trials} == {"completed", "pruned"}
    best = result.best_trial()
    assert printed.splitlines()[-1].startswith(f"Trial({best.trial_id}")
    # the best of all went on to the end, so its error is the least that its x can have
    assert best.metrics["error"][19] == pytest.approx(abs(best.cfg["x"] - 1) / 20)
    assert best.cfg["x"] == pytest.approx(1, abs=0.3)


def test_it_runs_with_a_train_function_inside_another(tmp_path):
    head, body = EXAMPLE.replace("0.1", "0.01").replace("50", "6").split("\n\n", 1)
    nested = f"{head}\n\ndef main():\n{textwrap.indent(body, '    ')}\nmain()\n"
    run(nested, tmp_path)
    assert len(ss.Result("MySweep", tmp_path / "slurm-sweeps").trials) == 6


def test_modules_beside_the_script_are_found_by_its_trials(tmp_path):
    (tmp_path / "beside.py").write_text("def error(x, step):\n    return abs(x - 1) / (step + 1)\n")
    code = EXAMPLE.replace("0.1", "0.01").replace("50", "2")
    code = code.replace('abs(cfg["x"] - 1) / (step + 1)', 'beside.error(cfg["x"], step)')
    run(f"import beside\n{code}", tmp_path)
    statuses = {trial.status for trial in ss.Result("MySweep", tmp_path / "slurm-sweeps").trials}
    assert statuses <= {"completed", "pruned"}


def test_a_trial_imports_little():
    code = "import sys, rota.sweeps.worker; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"numpy", "pandas", "torch", "sqlite3", "rota.sweeps.experiment"} & set(loaded)


def test_all_names_are_there_and_no_others():
    assert {name: getattr(ss, name) for name in ss.__all__}.keys() >= {
        "Experiment",
        "log",
        "TrialPruned",
        "ASHA",
    }
    with pytest.raises(AttributeError, match="no attribute 'Experimnt'"):
        ss.Experimnt  # noqa: B018
