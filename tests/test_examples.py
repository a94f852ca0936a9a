"""The scripts in examples/, as a newcomer starts them: somewhere else, without arguments."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, folder: Path) -> str:
    """What it prints. It has a minute on two cores of its own; here others use them, too."""
    command = [sys.executable, EXAMPLES / name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, f"{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def rows(printed: str, *names: str) -> dict[str, list[float]]:
    """First words → the numbers behind them."""
    found = {}
    for line in printed.splitlines():
        for name in names:
            if line.startswith(f"{name} "):
                numbers = re.findall(r"-?\d[\d,]*\.?\d*", line.removeprefix(name))
                found.setdefault(name, []).extend(float(number.replace(",", "")) for number in numbers)
    return found


def test_a_policy_of_ones_own_is_between_the_two_that_it_is_made_of(tmp_path):
    names = ("fifo", "srtf", "aging(patience=0.1)", "aging(patience=2.0)")
    found = rows(run("policy.py", tmp_path), *names)
    fifo, srtf, little, much = (found[name][0] for name in names)
    assert srtf < little < much < fifo


def test_a_sweep_finds_a_sine_and_stops_most_trials_early(tmp_path):
    printed = run("sweep.py", tmp_path)
    ended = re.search(r"(\d+) trials were trained to the end, (\d+) stopped early", printed)
    assert int(ended[1]) + int(ended[2]) == 24
    assert int(ended[2]) > int(ended[1])
    assert float(re.search(r"an error of ([\d.]+)", printed)[1]) < 0.1
    assert (tmp_path / "slurm-sweeps" / "sine").is_dir()


def test_a_network_grows_shrinks_and_knows_as_much_after_growing(tmp_path):
    names = ["as it began", "deepen 1", "widen 0 64", "shrink"]
    found = rows(run("adaptive_training.py", tmp_path), *names)
    began, deeper, wider, shrunk = (found[name] for name in names)
    assert began[0] < deeper[0] < wider[0]
    assert [shrunk[0], shrunk[4]] == [deeper[0], began[0]]  # step by step back
    assert deeper[1] == pytest.approx(began[2], abs=1.0)  # per cent, of 143 images
    assert wider[1] == pytest.approx(deeper[2], abs=1.0)
    assert min(began[2], deeper[2], wider[2], shrunk[2], shrunk[6]) > 85.0


def test_a_population_on_ray_finds_a_learning_rate(tmp_path):
    if importlib.util.find_spec("ray") is None and os.environ.get("ROTA_ENGINES") != "required":
        pytest.skip('no Ray: pip install "rota[ray]"')
    printed = run("population_on_ray.py", tmp_path)
    trials = [
        line.split() for line in printed.splitlines() if re.fullmatch(r"\s+\d+\s+[\d.]+\s+[\d.]+%", line)
    ]
    assert sorted(int(trial[0]) for trial in trials) == list(range(6))
    assert float(trials[0][2].rstrip("%")) > 80.0
    assert "6 of 6 trials done" in printed
    assert not list(tmp_path.iterdir())


def test_a_learned_placement_is_ahead_of_the_rules_of_the_originals(tmp_path):
    names = ("fifo", "era", "eta", "hrfs", "finish", "learned")
    ratio = {
        name: numbers[1] for name, numbers in rows(run("learned_placement.py", tmp_path), *names).items()
    }
    assert set(ratio) == set(names)
    assert all(each >= 1.0 for each in ratio.values())
    assert ratio["learned"] < min(ratio[name] for name in ("fifo", "era", "eta", "hrfs"))


def test_a_learned_schedule_is_ahead_of_the_rules_that_know_as_little(tmp_path):
    names = ("learned", "backfill", "tiresias", "srtf")
    found = {name: numbers[0] for name, numbers in rows(run("learned_schedule.py", tmp_path), *names).items()}
    assert found["srtf"] < found["learned"] < min(found["backfill"], found["tiresias"]) < 1.0


def test_scripts_are_short_and_say_how_they_are_started():
    for script in EXAMPLES.glob("*.py"):
        text = script.read_text()
        assert len(text.splitlines()) <= 70, script.name
        assert f"python examples/{script.name}" in text, script.name
        assert not os.access(script, os.X_OK), script.name
