"""Workers do what can be done, say what went wrong, and end with who started them."""

import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from rota.core.errors import InputError
from rota.core.processes import WorkerLost, run_dag

PIECES = """
import os, time
from pathlib import Path
from rota.core.errors import InputError

def note(piece):
    name = Path(piece).name
    if name == "wrong":
        raise InputError("this one is wrong")
    if name == "dies":
        os._exit(9)
    Path(piece).write_text(str(os.getpid()))
    if name == "long":
        time.sleep(600)
"""


@pytest.fixture
def note(tmp_path, monkeypatch):
    """Work that leaves a file of its name; some names mean trouble. Workers find it where we do."""
    (tmp_path / "pieces_of_work.py").write_text(PIECES)
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("pieces_of_work").note
    del sys.modules["pieces_of_work"]


def test_what_follows_is_done_after_what_it_follows(tmp_path, note):
    after = {"a": ["a1", "a2"], "a1": ["a11"]}

    def then(piece):
        return [str(tmp_path / name) for name in after.get(Path(piece).name, [])]

    order = [Path(piece).name for piece in run_dag(note, [str(tmp_path / "a")], then, 2)]
    assert sorted(order) == ["a", "a1", "a11", "a2"]
    assert order[0] == "a"
    assert order.index("a1") < order.index("a11")
    assert all((tmp_path / name).exists() for name in order)


def test_an_error_in_a_worker_is_the_users_to_see_and_a_death_too(tmp_path, note):
    with pytest.raises(InputError, match="this one is wrong"):
        list(run_dag(note, [str(tmp_path / "wrong"), str(tmp_path / "long")], lambda _: (), 2))
    with pytest.raises(WorkerLost, match="start again to resume"):
        list(run_dag(note, [str(tmp_path / "dies")], lambda _: (), 1))


@pytest.mark.usefixtures("note")
def test_workers_end_when_their_recorder_is_killed(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from pieces_of_work import note; from rota.core.processes import run_dag;"
        "list(run_dag(note, [sys.argv[2]], lambda _: (), 1))"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "long")]
    recorder = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    worker = _written(tmp_path / "long")
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    while _alive(worker):  # or the time limit of the test
        time.sleep(0.05)


def _written(file: Path) -> int:
    while not file.exists() or not file.read_text():
        time.sleep(0.05)
    return int(file.read_text())


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
