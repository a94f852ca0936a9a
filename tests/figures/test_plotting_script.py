"""`./plotting.py` finds rota, here or in the environment of the checkout, and the runs of the checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "plotting.py"


@pytest.fixture
def checkout(tmp_path):
    """A folder with the script in it."""
    folder = tmp_path / "my checkout"
    folder.mkdir()
    shutil.copy(SCRIPT, folder)
    return folder


def run(script, *arguments, isolated=False, where=None):
    """`-I -S` makes a Python in which rota is not installed."""
    flags = ["-I", "-S"] if isolated else []
    command = [sys.executable, *flags, str(script), *map(str, arguments)]
    folder = where or Path(script).parent
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_it_is_rota_plot(checkout):
    result = run(checkout / "plotting.py", "--help")
    assert result.returncode == 0
    assert "usage: rota plot" in result.stdout


SAYS_HOW_IT_WAS_CALLED = '#!/bin/sh\necho "$0" "$@"\n'


@pytest.fixture
def python(checkout):
    """Where the Python of the checkout's own environment is, or would be."""
    return checkout / ".venv" / "bin" / "python"


@pytest.fixture
def set_up(checkout):
    """Writes what the checkout's set-up does."""
    script = checkout / "scripts" / "setup.sh"
    script.parent.mkdir()
    return script.write_text


def test_without_rota_it_turns_to_the_python_of_the_checkout(checkout, python, set_up):
    set_up("exit 1\n")
    python.parent.mkdir(parents=True)
    python.write_text(SAYS_HOW_IT_WAS_CALLED)
    python.chmod(0o755)
    result = run(checkout / "plotting.py", "--quick", isolated=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{python} {checkout / 'plotting.py'} --quick\n"


def test_without_any_environment_one_is_made(checkout, python, set_up, tmp_path):
    make = f"mkdir -p '{python.parent}' && printf '%s' '{SAYS_HOW_IT_WAS_CALLED}' > '{python}'"
    set_up(f"{make} && chmod +x '{python}' && echo '{python}'\n")
    result = run(checkout / "plotting.py", "--quick", isolated=True, where=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{python} {checkout / 'plotting.py'} --quick\n"


def test_a_set_up_that_fails_is_said(checkout, set_up):
    set_up("echo no network >&2; exit 1\n")
    result = run(checkout / "plotting.py", isolated=True)
    assert result.returncode == 1
    assert result.stderr == "no network\nplotting.py: rota could not be set up (above)\n"


def test_it_can_be_run_as_a_program():
    assert os.access(SCRIPT, os.X_OK)
    assert SCRIPT.read_text().startswith("#!/usr/bin/env python3\n")


@pytest.fixture
def runs(checkout, make_run):
    """The script's checkout, with a run in it; and another run elsewhere."""
    make_run("my checkout/results/simulate/srtf")
    make_run("elsewhere/others/fifo", "fifo")
    return checkout


def drawn(folder):
    return sorted(path.name for path in folder.rglob("*.png"))


def test_it_draws_the_runs_of_the_checkout_into_its_plots(runs):
    result = run(runs / "plotting.py", "--figure", "jct", "--quick")
    assert (result.returncode, result.stderr) == (0, "")
    assert drawn(runs / "plots") != []
    assert {line.split("/")[0] for line in result.stdout.splitlines()} == {"plots"}


def test_its_neighbours_do_not_hide_modules(runs):
    (runs / "profile.py").write_text("raise SystemExit('the wrong profile')")
    (runs / "numpy.py").write_text("raise SystemExit('the wrong numpy')")
    result = run(runs / "plotting.py", "--figure", "jct", "--quick")
    assert (result.returncode, result.stderr) == (0, "")


def test_without_runs_it_says_what_to_run_first(checkout):
    result = run(checkout / "plotting.py")
    assert result.returncode == 2
    said = "no runs in results; make some first: rota simulate --out results/simulate"
    assert result.stderr == f"rota: error: {said}\n"


def test_it_does_so_from_any_folder(runs, tmp_path):
    result = run(runs / "plotting.py", "--figure", "jct", "--quick", where=tmp_path / "elsewhere")
    assert (result.returncode, result.stderr) == (0, "")
    assert drawn(runs / "plots") != []
    assert drawn(tmp_path / "elsewhere") == []


def test_a_folder_that_is_given_is_drawn_instead(runs, tmp_path):
    (runs / "results" / "simulate" / "srtf" / "metrics.json").write_text("broken")
    result = run(runs / "plotting.py", "others", "--figure", "jct", "--quick", where=tmp_path / "elsewhere")
    assert (result.returncode, result.stderr) == (0, "")
    assert drawn(runs / "plots") != []


def test_figures_go_where_they_are_wanted(runs, tmp_path):
    result = run(
        runs / "plotting.py", "--figure", "jct", "--quick", "--out", "figures", where=tmp_path / "elsewhere"
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert drawn(tmp_path / "elsewhere" / "figures") != []
    assert not (runs / "plots").exists()


def test_so_they_do_if_that_folder_is_there_already(runs, tmp_path):
    (tmp_path / "elsewhere" / "figures").mkdir()
    test_figures_go_where_they_are_wanted(runs, tmp_path)


def test_a_folder_that_is_not_there_is_named(runs):
    result = run(runs / "plotting.py", "nowhere")
    assert result.returncode == 2
    assert "no runs in nowhere" in result.stderr


def test_what_was_recorded_is_drawn_too_even_without_runs(checkout, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("scenario,action_1,left_1_s,total_s,accuracy\nearly,0,30,40,0.5\nearly,1,30,40,0.25\n")
    recordings = checkout / "results" / "recordings"
    words = ["recordings", "import-adaptation", str(table), "--model", "net", "--out", str(recordings)]
    subprocess.run([sys.executable, "-m", "rota", *words], check=True, capture_output=True)
    result = run(checkout / "plotting.py")
    names = ["overview.png", "overview.svg", "adaptation.png", "adaptation.svg"]
    assert result.stdout.split() == [f"plots/recordings/{name}" for name in names]
    assert result.stderr == "note: no runs in results; make some: rota simulate --out results/simulate\n"
    assert (checkout / "plots" / "recordings" / "adaptation.png").stat().st_size > 10_000
