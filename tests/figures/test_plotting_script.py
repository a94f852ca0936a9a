"""`./plotting.py` finds rota, in this Python or in the one of the checkout."""

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


def run(script, *arguments, isolated=False):
    """`-I -S` makes a Python in which rota is not installed."""
    flags = ["-I", "-S"] if isolated else []
    command = [sys.executable, *flags, str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(script).parent)


def test_it_is_rota_plot(checkout):
    result = run(checkout / "plotting.py", "--help")
    assert result.returncode == 0
    assert "usage: rota plot" in result.stdout


def test_its_neighbours_do_not_hide_modules(checkout):
    (checkout / "profile.py").write_text("raise SystemExit('the wrong profile')")
    (checkout / "numpy.py").write_text("raise SystemExit('the wrong numpy')")
    result = run(checkout / "plotting.py", "nowhere")
    assert result.returncode == 2
    assert "no runs in nowhere" in result.stderr


def test_without_rota_it_turns_to_the_python_of_the_checkout(checkout):
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    result = run(checkout / "plotting.py", "--quick", isolated=True)
    assert result.stdout == f"{checkout / 'plotting.py'} --quick\n"


def test_without_any_rota_it_says_what_to_do(checkout):
    result = run(checkout / "plotting.py", isolated=True)
    assert result.returncode == 1
    assert result.stderr == "plotting.py: rota is not installed; set it up first: bash scripts/setup.sh\n"


def test_it_can_be_run_as_a_program():
    assert os.access(SCRIPT, os.X_OK)
    assert SCRIPT.read_text().startswith("#!/usr/bin/env python3\n")
