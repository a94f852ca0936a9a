"""`rota simulate` on traces of three jobs."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from rota import cli
from rota.library.populations import simulate_population
from rota.policies.allocation.registry import ALLOCATIONS
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.simulator.jobs import warm_up

HEADER = "id,submit_s,gpus,duration_s,model,priority,startup_s"
ROWS = ("a,0,1,600,bert,0,10", "b,10,2,300,vgg16,1,7", "c,20,1,60,dqn,0,5")


class Said(NamedTuple):
    """What a command returned and printed."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """So that nobody is told that the simulator is being compiled."""
    for name in SCHEDULERS:
        warm_up(scheduler_class(name)())
    for name in ALLOCATIONS:
        simulate_population(None, [1.0, 2.0], allocation=name, trials=2, steps=100)


@pytest.fixture(autouse=True)
def _quiet_log():
    yield
    logging.getLogger("rota").handlers = []
    logging.getLogger("rota").setLevel(logging.NOTSET)


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rota(here, capsys) -> Callable[..., Said]:
    """Gives a function that runs `rota simulate …` in this process, in the folder `here`."""

    def run(*words: object) -> Said:
        code = cli.main(["simulate", *map(str, words)])
        return Said(code, *capsys.readouterr())

    return run


@pytest.fixture
def trace(here) -> Path:
    """Jobs a, b and c: one, two and one GPUs; the second does not fit beside the first on two GPUs."""
    return write_trace(here / "three.csv")


def write_trace(path: Path, *rows: str) -> Path:
    """Write a trace of these rows, which may leave out the last column."""
    lines = (row + "," * (HEADER.count(",") - row.count(",")) for row in rows or ROWS)
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


@pytest.fixture(name="write_trace")
def _write_trace() -> Callable[..., Path]:
    return write_trace
