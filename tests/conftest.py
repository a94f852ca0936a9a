"""Fixtures for every test."""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def reference() -> Callable[..., Path]:
    """Gives a function that finds public reference data; the test is skipped where it is absent."""
    folder = Path(os.environ.get("ROTA_REFERENCE") or REPOSITORY.parent / "shared" / "reference")

    def find(*parts: str) -> Path:
        path = folder.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"no reference data {'/'.join(parts)}; set ROTA_REFERENCE to its folder")
        return path

    return find


@pytest.fixture
def humble() -> list[str]:
    """What a command must begin with so that root may not read and write everything, either."""
    less = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={less}", f"--inh-caps={less}"] if os.geteuid() == 0 else []


def do_without(engine: str, reason: str) -> NoReturn:
    """Skip a test whose engine cannot be had here; where ROTA_ENGINES is "required" it fails instead."""
    if os.environ.get("ROTA_ENGINES") == "required":
        pytest.fail(f"ROTA_ENGINES is required, but there is no {engine}: {reason}", pytrace=False)
    pytest.skip(f"no {engine}: {reason}")


@dataclass(frozen=True)
class Slurm:
    """A real Slurm on this machine: node1 and node2 are fast and have two GPUs, node3 and node4 are slow."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find it, and none of what says that it is inside an allocation."""
        outside = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        return outside | {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command: str, timeout_s: float = 120, cwd: Path | None = None) -> str:
        """What srun, sbatch, squeue … print."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=timeout_s, cwd=cwd
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout.strip()

    def be_calm(self, at_most_s: float = 120) -> None:
        """End what an earlier test may have left, until all nodes are idle."""
        until_s = time.monotonic() + at_most_s
        while left := self.run("squeue", "--noheader", "--format=%i").split():
            self.run("scancel", *left)
            assert time.monotonic() < until_s, f"jobs {left} do not end"
            time.sleep(0.2)
        while set(self.states().values()) != {"idle"}:
            assert time.monotonic() < until_s, f"not all nodes are idle: {self.states()}"
            time.sleep(0.2)

    def submit(self, *arguments: str, cwd: Path | None = None) -> str:
        """The id of a batch job."""
        return self.run("sbatch", "--parsable", *arguments, cwd=cwd)

    def wait_for(self, job: str, at_most_s: float = 400) -> None:
        """Until a job has left the queue. (`sbatch --wait` looks less and less often.)"""
        until_s = time.monotonic() + at_most_s
        while job in self.run("squeue", "--noheader", "--format=%i").split():
            assert time.monotonic() < until_s, f"job {job} does not end"
            time.sleep(0.2)

    def states(self) -> dict[str, str]:
        """Node → idle, allocated, down* …; a star says that it does not respond."""
        lines = self.run("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return dict(line.split(maxsplit=1) for line in lines)

    def kill_node(self, name: str) -> None:
        """End a node with all that runs on it, as when its power fails."""
        _slurm_local("kill-node", name, "--folder", str(self.folder))

    def start_node(self, name: str) -> None:
        """Switch it on again."""
        _slurm_local("start-node", name, "--folder", str(self.folder))


def _slurm_local(*arguments: str) -> None:
    script = REPOSITORY / "setup" / "slurm-local.sh"
    done = subprocess.run(["bash", script, *arguments], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])


@pytest.fixture(scope="session")
def slurm_guarded() -> Callable[[str], AbstractContextManager[None]]:
    """Gives what ends the Slurms in folders of a pattern."""
    return slurm_ended


@pytest.fixture
def slurm(slurm_of_all_tests) -> Slurm:
    """A real Slurm of four nodes, on which nothing runs yet."""
    slurm_of_all_tests.be_calm()
    return slurm_of_all_tests


@pytest.fixture(scope="session")
def slurm_of_all_tests() -> Iterator[Slurm]:
    """A real Slurm of four nodes, started for all tests together and ended with them."""
    folder = Path(tempfile.mkdtemp(prefix="rota-slurm-", dir="/tmp"))
    with slurm_ended(folder):
        try:
            _slurm_local("start", "--folder", str(folder))
        except RuntimeError as error:
            do_without("Slurm", str(error))
        yield Slurm(folder)


@contextmanager
def slurm_ended(folder: Path | str) -> Iterator[None]:
    """End the Slurm of a folder, or of all of a pattern, afterwards: also if this process is killed."""
    guard = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("slurm_guard.py"), folder],
        stdin=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        guard.communicate()


@dataclass(frozen=True)
class Ray:
    """A real cluster of Ray on this machine, of unequal nodes that are told apart by their label `kind`."""

    cluster: Any
    home: Path
    """Its files."""

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add_node(self, kind: str, cpus: int) -> Any:
        """One more node."""
        return self.cluster.add_node(
            num_cpus=cpus, labels={"kind": kind}, node_name=kind, object_store_memory=80_000_000,
            node_ip_address="127.0.0.1",
        )  # fmt: skip

    def kill_node(self, node: Any) -> None:
        """As when its power fails."""
        self.cluster.remove_node(node, allow_graceful=False)


RAY = {
    "RAY_AUTH_MODE": "token",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the loopback only
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
}
HEALTH = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 20_000,
    "health_check_failure_threshold": 3,
}
"""A node that is gone is missed after two seconds; one that is slow to answer is not taken for gone."""


@pytest.fixture(scope="session")
def ray() -> Iterator[Ray]:
    """A real Ray of three nodes, with 1, 2 and 1 CPUs, started for all tests together and ended with them."""
    folder = Path(tempfile.mkdtemp(prefix="rota-ray-", dir="/tmp"))
    (folder / "ray").mkdir()
    (folder / "token").touch(0o600)
    (folder / "token").write_text(secrets.token_hex(32))
    before = dict(os.environ)
    os.environ.update(RAY | {"RAY_AUTH_TOKEN_PATH": str(folder / "token"), "RAY_TMPDIR": str(folder)})
    try:
        from ray.cluster_utils import Cluster
    except ModuleNotFoundError:
        shutil.rmtree(folder)
        do_without("Ray", 'pip install "rota[ray]"')
    head = {
        "num_cpus": 1, "labels": {"kind": "head"}, "node_name": "head", "temp_dir": str(folder / "ray"),
        "include_dashboard": False, "object_store_memory": 80_000_000, "node_ip_address": "127.0.0.1",
        "_system_config": HEALTH,
    }  # fmt: skip
    found = Ray(Cluster(initialize_head=True, head_node_args=head), folder)
    found.add_node("fast", 2)
    found.add_node("slow", 1)
    yield found
    found.cluster.shutdown()
    os.environ.clear()
    os.environ.update(before)
    shutil.rmtree(folder)
