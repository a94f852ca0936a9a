"""A small workload and a small cluster, and a scheduler that is not rota's."""

from dataclasses import dataclass

import pytest

import rota

AGING = """
from dataclasses import dataclass

import rota


@dataclass(frozen=True)
class Aging(rota.Scheduler):
    patience: float = 0.1

    def plan(self, view):
        return view.first_fit(view.rank(view.remaining_s - self.patience * view.waited_s))
"""


@dataclass(frozen=True)
class Aging(rota.Scheduler):
    """Short jobs first, but a second of waiting makes a job `patience` seconds shorter."""

    patience: float = 0.1

    def plan(self, view):
        return view.first_fit(view.rank(view.remaining_s - self.patience * view.waited_s))


@pytest.fixture
def aging():
    """The class."""
    return Aging


@pytest.fixture
def aging_file(tmp_path):
    """The same class in a file."""
    file = tmp_path / "aging.py"
    file.write_text(AGING)
    return file


@pytest.fixture(scope="session")
def jobs():
    return rota.synthetic_trace(jobs=120, gpus=16, seed=1)


@pytest.fixture(scope="session")
def cluster():
    return rota.Cluster.uniform(nodes=2, gpus=8)


@pytest.fixture(scope="session")
def run(jobs, cluster):
    """Under srtf, which preempts."""
    return rota.simulate(jobs, cluster, "srtf")
