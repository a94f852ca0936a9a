"""Whatever a file says, a command ends in time, with a sentence and never with a traceback."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


def test_damaged_inputs_of_every_kind_are_read_or_refused(tmp_path):
    """The same few cases each time; `bash scripts/fuzz.sh` goes on for as long as one likes."""
    limits = ("--cases", "150", "--seconds", "60")
    ran = subprocess.run(
        [sys.executable, SCRIPTS / "fuzz.py", *limits, "--keep", tmp_path / "kept"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said = re.search(r"([\d,]+) cases with seed 0: ([\d,]+) refusals, 0 tracebacks, 0 hangs", ran.stdout)
    assert said, ran.stdout
    cases, refusals = (int(number.replace(",", "")) for number in said.groups())
    assert cases >= 50
    assert cases / 4 < refusals < cases


@pytest.mark.parametrize(
    ("code", "out", "err", "wrong"),
    [
        (0, "a table", "note: something", ""),
        (2, "", "rota: error: a.csv: line 2: not a number", ""),
        (2, "", "usage: rota", "no sentence"),
        (1, "", "Traceback (most recent call last):\n ValueError: x", "traceback"),
        (-9, "", "", "exit code -9"),
        (-signal.SIGXCPU, "", "", "hang"),
        (0, "", "a.py:1: RuntimeWarning: overflow", "warning"),
        (0, "name \x1b[31m", "", "control character"),
    ],
)
def test_what_a_command_must_not_do_is_told_from_what_it_may(monkeypatch, code, out, err, wrong):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import fuzz

    assert fuzz._wrong(code, False, out, err)[0] == wrong
    assert fuzz._wrong(code, True, out, err)[0] == "hang"
