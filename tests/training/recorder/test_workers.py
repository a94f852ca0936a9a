"""Workers do what can be done, say what went wrong, and end with who started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rota.core.errors import InputError
from rota.training.recorder.workers import WorkerLost, carry_out


def note(piece: str) -> None:
    """Leave a file of that name; some names mean trouble."""
    folder, name = Path(piece).parent, Path(piece).name
    if name == "wrong":
        raise InputError("this one is wrong")
    if name == "dies":
        os._exit(9)
    (folder / name).write_text(str(os.getpid()))
    if name == "long":
        time.sleep(600)


def test_what_follows_is_done_after_what_it_follows(tmp_path):
    then = {"a": ["a1", "a2"], "a1": ["a11"]}
    names = carry_out(
        note, [str(tmp_path / "a")], lambda p: [str(tmp_path / n) for n in then.get(Path(p).name, [])], 2
    )
    order = [Path(name).name for name in names]
    assert sorted(order) == ["a", "a1", "a11", "a2"]
    assert order[0] == "a"
    assert order.index("a1") < order.index("a11")
    assert all((tmp_path / name).exists() for name in order)


def test_an_error_in_a_worker_is_the_users_to_see_and_a_death_too(tmp_path):
    with pytest.raises(InputError, match="this one is wrong"):
        list(carry_out(note, [str(tmp_path / "wrong"), str(tmp_path / "long")], lambda _: (), 2))
    with pytest.raises(WorkerLost, match="start again to go on"):
        list(carry_out(note, [str(tmp_path / "dies")], lambda _: (), 1))


def test_workers_end_when_their_recorder_is_killed(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from test_workers import note; from rota.training.recorder.workers import carry_out;"
        "list(carry_out(note, [sys.argv[2]], lambda _: (), 1))"
    )
    arguments = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path / "long")]
    recorder = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    worker = _written(tmp_path / "long")
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    for _ in range(1200):
        if not _alive(worker):
            return
        time.sleep(0.05)
    raise AssertionError("the worker lives on")


def _written(file: Path) -> int:
    while not file.exists() or not file.read_text():
        time.sleep(0.05)
    return int(file.read_text())


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0]
    except FileNotFoundError:
        return False
