"""A real Slurm on this machine does what tests of rota on Slurm count on."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "setup" / "slurm-local.sh"


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", SCRIPT, *arguments], capture_output=True, text=True, timeout=200)


def wait_until(is_so, at_most_s: float = 120) -> None:
    until_s = time.monotonic() + at_most_s
    while not is_so():
        assert time.monotonic() < until_s, "waited in vain"
        time.sleep(0.2)


def test_four_nodes_run_a_task_each_and_know_their_names(slurm):
    names = slurm.run("srun", "--nodes=4", "--ntasks=4", "hostname").splitlines()
    if os.geteuid() != 0:
        pytest.skip("nodes have names of their own only if root starts them")
    assert sorted(names) == ["node1", "node2", "node3", "node4"]


@pytest.mark.parametrize(("feature", "nodes"), [("fast", {"node1", "node2"}), ("slow", {"node3", "node4"})])
def test_a_feature_decides_where_a_task_runs(slurm, feature, nodes):
    name = slurm.run("srun", f"--constraint={feature}", "bash", "-c", "echo $SLURMD_NODENAME")
    assert name in nodes


def test_two_gpus_of_a_node_are_numbered(slurm):
    assert slurm.run("srun", "--gres=gpu:2", "bash", "-c", "echo $CUDA_VISIBLE_DEVICES") == "0,1"


def test_a_batch_job_runs_job_steps_in_its_allocation(slurm, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/bash\nsrun --nodes=1 --ntasks=1 --exact bash -c 'echo $SLURM_STEP_ID of $SLURM_NTASKS'\n"
    )
    slurm.wait_for(slurm.submit("--ntasks=6", f"--output={tmp_path}/out", str(script)))
    assert (tmp_path / "out").read_text() == "0 of 1\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start nodes that end as a whole")
def test_a_killed_node_is_noticed_and_its_job_runs_elsewhere(slurm, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/bash\necho $SLURMD_NODENAME >> nodes\nsleep $((SLURM_RESTART_COUNT ? 0 : 600))\n"
    )
    job = slurm.submit("--requeue", "--constraint=slow", str(script), cwd=tmp_path)
    nodes = tmp_path / "nodes"
    wait_until(nodes.exists)
    first = nodes.read_text().strip()
    try:
        slurm.kill_node(first)
        wait_until(lambda: slurm.states()[first] == "down*")
        slurm.wait_for(job)
    finally:
        slurm.start_node(first)
    assert sorted(nodes.read_text().split()) == ["node3", "node4"]
    wait_until(lambda: slurm.states()[first] == "idle")


def listening(ports: range) -> set[str]:
    """Addresses at which somebody listens on one of the ports, as the kernel writes them."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    addresses = [fields[1].split(":") for fields in lines if fields[3] == "0A"]
    return {address for address, port in addresses if int(port, 16) in ports}


def test_it_cannot_be_reached_from_another_machine(slurm):
    configuration = dict(
        line.split("=", 1) for line in (slurm.folder / "slurm.conf").read_text().splitlines()
    )
    base = int(configuration["SlurmctldPort"])
    assert listening(range(base, base + 601)) == {"0100007F"}  # 127.0.0.1
    assert slurm.folder.stat().st_mode & 0o777 == 0o700
    assert (slurm.folder / "munge.key").stat().st_mode & 0o777 == 0o600


def test_it_can_be_started_twice_and_nothing_is_left_when_it_has_been_stopped(slurm):
    folder = slurm.folder / "second"
    try:
        first, again = (call("start", "--folder", str(folder), "--nodes", "1") for _ in range(2))
        assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
        assert f"export SLURM_CONF={folder}/slurm.conf" in first.stderr
        assert "is running already" in again.stderr
        pids = [int(file.read_text().split()[0]) for file in (folder / "pids").iterdir()]
        assert len(pids) == 3  # munged, slurmctld, one node
        assert call("status", "--folder", str(folder)).returncode == 0
    finally:
        assert call("stop", "--folder", str(folder)).returncode == 0
    assert not any(is_alive(pid) for pid in pids)
    assert call("status", "--folder", str(folder)).returncode == 1
    assert call("stop", "--folder", str(folder)).returncode == 0


def is_alive(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["start", "--folder", "/tmp/a b"], "give an absolute path"),
        (["start", "--folder", "here"], "give an absolute path"),
        (["start", "--nodes", "0"], "give 1 to 32"),
        (["kill-node", "../node1"], "is no node"),
        (["begin"], "A real Slurm"),
        ([], "A real Slurm"),
    ],
)
def test_a_mistake_is_named(arguments, sentence):
    done = call(*arguments)
    assert (done.returncode, sentence in done.stderr) == (2, True)


def test_without_its_programs_and_without_root_it_says_what_is_missing(tmp_path):
    """A PATH with the shell's tools only, and a user who may install nothing."""
    text = SCRIPT.read_text().replace('PATH="$PATH:/usr/sbin:/sbin"', f'PATH="{tmp_path}"')
    for tool in ("id", "paste"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    done = subprocess.run(
        ["/bin/bash", "-c", text, "slurm-local.sh", "start"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "missing: munged slurmctld slurmd srun sbatch scontrol sinfo" in done.stderr
    assert "apt-get install slurm-wlm munge" in done.stderr


@pytest.mark.parametrize(("engines", "outcome"), [("", "1 skipped"), ("required", "1 error")])
def test_where_it_cannot_be_had_tests_are_skipped_or_fail_if_it_is_required(tmp_path, engines, outcome):
    shell = tmp_path / "bash"
    shell.write_text("#!/bin/sh\necho 'slurm-local: missing: slurmd' >&2\nexit 1\n")
    shell.chmod(0o755)
    test = f"{__file__}::test_two_gpus_of_a_node_are_numbered"
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "--config-file",
        ROOT / "pyproject.toml",
        "--rootdir",
        ROOT,
        test,
    ]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ROTA_ENGINES": engines}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert outcome in done.stdout.splitlines()[-1]
    assert "no Slurm: slurm-local: missing: slurmd" in done.stdout


HELD = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from conftest import slurm_ended, _slurm_local
folder = Path({folder!r})
with slurm_ended(folder):
    _slurm_local("start", "--folder", str(folder), "--nodes", "1")
    print("up", flush=True)
    time.sleep(600)
"""


def test_nothing_is_left_of_it_if_the_tests_that_use_it_are_killed():
    with tempfile.TemporaryDirectory(prefix="rota-slurm-", dir="/tmp") as name:
        folder = Path(name, "killed")
        code = HELD.format(tests=str(ROOT / "tests"), folder=str(folder))
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as tests:
            assert tests.stdout.readline() == "up\n"
            pids = [int(file.read_text().split()[0]) for file in (folder / "pids").iterdir()]
            assert all(map(is_alive, pids))
            tests.kill()
        wait_until(lambda: not folder.exists())
    assert len(pids) == 3
    assert not any(map(is_alive, pids))
