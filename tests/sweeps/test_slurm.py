"""Sweeps in an allocation of a real Slurm: trials are job steps."""

import os
import sys
import textwrap
import time
from pathlib import Path

import pytest

import rota.sweeps as ss
from rota.core.errors import ConfigError
from rota.execution.journal import read_journal
from rota.sweeps.slurm import SlurmCfg, is_allocation, srun, tasks

EXAMPLE = (
    (Path(__file__).parent / "test_example.py").read_text().split('EXAMPLE = """\\\n')[1].split('"""')[0]
)


def submit(slurm, folder: Path, code: str, *arguments: str, before: str = "", then: str = "") -> str:
    """The id of a batch job that runs Python code in a folder."""
    (folder / "sweep.py").write_text(textwrap.dedent(code))
    script = folder / "job.sh"
    script.write_text(f'#!/bin/bash\n{before}\n"{sys.executable}" sweep.py\n{then}\n')
    return slurm.submit(*arguments, f"--output={folder}/out.txt", str(script), cwd=folder)


def wait_for(slurm, job: str, folder: Path) -> str:
    """What it has printed when it has ended."""
    slurm.wait_for(job)
    return (folder / "out.txt").read_text()


def test_the_example_runs_as_written_in_an_allocation(slurm, tmp_path):
    job = submit(slurm, tmp_path, EXAMPLE, "--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=2")
    printed = wait_for(slurm, job, tmp_path)
    result = ss.Result("MySweep", tmp_path / "slurm-sweeps")
    assert len(result.trials) == 50, printed
    assert {trial.status for trial in result.trials} == {"completed", "pruned"}, printed
    assert f"Trial({result.best_trial().trial_id}" in printed
    # four are started before any of them is heard, and from then on one when one has ended
    assert most_at_once(tmp_path / "slurm-sweeps" / "MySweep" / "journal.sqlite") == 4


def most_at_once(journal: Path) -> int:
    """How many trials had been started and had not ended, when they were most."""
    most = running = 0
    for entry in read_journal(journal):
        running += {"started": 1, "ended": -1}.get(entry.kind, 0)
        most = max(most, running)
    return most


WHERE = """
    import os, time
    from pathlib import Path
    import rota.sweeps as ss

    def count(what):
        return len(list(Path(what).iterdir()))

    def meet(place, x):
        # until six have come, of which each is still here
        Path(place, str(x)).touch()
        until_s = time.monotonic() + 100
        while count(place) < 6 and time.monotonic() < until_s:
            time.sleep(0.05)

    def train(cfg):
        Path("here", str(cfg["x"])).touch()
        meet("begun", cfg["x"])
        ss.log({"node": int(os.environ["SLURMD_NODENAME"].removeprefix("node")), "here": count("here")}, 0)
        ss.log({"cores": int(os.environ["SLURM_CPUS_PER_TASK"]), "tasks": int(os.environ["SLURM_NTASKS"])}, 0)
        meet("counted", cfg["x"])
        Path("here", str(cfg["x"])).unlink()

    for place in ("here", "begun", "counted"):
        Path(place).mkdir()
    cfg = {"x": ss.Grid(list(range(9)))}
    ss.Experiment(train, cfg, slurm_cfg=ss.SlurmCfg(args="--comment='$(touch hacked); `touch hacked`'")).run()
"""


def test_as_many_steps_as_there_are_tasks_run_at_once_on_all_nodes(slurm, tmp_path):
    job = submit(slurm, tmp_path, WHERE, "--nodes=2", "--ntasks-per-node=3", "--cpus-per-task=1")
    printed = wait_for(slurm, job, tmp_path)
    trials = ss.Result("MySweep", tmp_path / "slurm-sweeps").trials
    assert [trial.status for trial in trials] == ["completed"] * 9, printed + str(trials[0].failure)
    nodes = [trial.metrics["node"][0] for trial in trials[:6]]
    assert sorted(nodes.count(node) for node in set(nodes)) == [3, 3]
    here = [trial.metrics["here"][0] for trial in trials]
    assert here[:6] == [6] * 6  # each of the first six has seen all of them
    assert max(here[6:]) <= 6
    assert {(trial.metrics["cores"][0], trial.metrics["tasks"][0]) for trial in trials} == {(1, 1)}
    assert not (tmp_path / "hacked").exists()


KILLED = """
    import fcntl, os, time
    from pathlib import Path
    import rota.sweeps as ss

    Path("controller").write_text(str(os.getpid()))

    def train(cfg):
        with open(f"held-{cfg['x']}", "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # until the process is gone
            Path(f"alive-{cfg['x']}").touch()
            while True:
                time.sleep(0.05)
                ss.log({"beat": 1}, 0)

    ss.Experiment(train, {"x": ss.Grid([1, 2])}).run()
"""
KILLER = """
while [ ! -e alive-1 ] || [ ! -e alive-2 ]; do sleep 0.1; done
kill -9 "$(cat controller)"
"""
AFTERWARDS = r"""
for turn in {1..600}; do
    scontrol show step > steps.txt 2>&1
    grep -q "StepId=$SLURM_JOB_ID\.[0-9]" steps.txt || break
    sleep 0.1
done
for x in 1 2; do flock --timeout 60 held-$x touch "gone-$x"; done
"""


def test_when_only_the_sweep_is_killed_no_step_is_left(slurm, tmp_path):
    (tmp_path / "kill.sh").write_text(KILLER)  # by the job itself: a node has process ids of its own
    job = submit(slurm, tmp_path, KILLED, "--ntasks=2", before="bash kill.sh &", then=AFTERWARDS)
    printed = wait_for(slurm, job, tmp_path)
    assert "Killed" in printed
    steps = [line for line in (tmp_path / "steps.txt").read_text().splitlines() if f"StepId={job}." in line]
    assert [step.split()[0] for step in steps] == [f"StepId={job}.batch"]
    assert sorted(file.name for file in tmp_path.glob("gone-*")) == ["gone-1", "gone-2"]


FAILING = """
    import os, signal
    import rota.sweeps as ss

    def train(cfg):
        if cfg["x"] == 1:
            raise ArithmeticError("one is too few")
        if cfg["x"] == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if cfg["x"] == 3 and os.environ["SLURM_PROCID"] == "1":
            raise ArithmeticError("the second task fails")
        if cfg["x"] == 3:
            signal.pause()
        ss.log({"x": cfg["x"]}, 0)

    ss.Experiment(train, {"x": ss.Grid([1, 2, 3, 4])}, slurm_cfg=ss.SlurmCfg(ntasks=2)).run()
"""


def test_steps_that_fail_are_failed_and_the_others_go_on(slurm, tmp_path):
    printed = wait_for(slurm, submit(slurm, tmp_path, FAILING, "--ntasks=4", "--nodes=1"), tmp_path)
    trials = ss.Result("MySweep", tmp_path / "slurm-sweeps").trials
    assert [trial.status for trial in trials] == ["failed", "failed", "failed", "completed"], printed
    assert "one is too few" in (trials[0].failure or "")
    assert "ended without a result" in (trials[1].failure or "")
    assert "the second task fails" in (trials[2].failure or "")
    assert trials[3].metrics == {"x": {0: 4}}


def test_what_is_given_to_srun_is_a_list_of_arguments():
    cfg = SlurmCfg(exclusive=False, nodes=2, ntasks=4, args="--comment='a b' -C fast")
    assert srun(cfg, {}) == [
        "srun",
        "--nodes=2",
        "--ntasks=4",
        "--kill-on-bad-exit=1",
        "--export=ALL",
        "--mem=0",
        "--comment=a b",
        "-C",
        "fast",
    ]
    given = srun(SlurmCfg(), {"SLURM_CPUS_PER_TASK": "4"})
    assert given[-3:] == ["--exclusive", "--cpus-per-task=4", "--mem=0"]
    assert srun(SlurmCfg(args="--mem-per-cpu=1G"), {})[-2:] == ["--exclusive", "--mem-per-cpu=1G"]


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"SLURM_NTASKS": "36"}, 36),
        ({"SLURM_JOB_NUM_NODES": "2"}, 2),
        ({}, 1),
    ],
)
def test_an_allocation_is_for_so_many_tasks(environment, found):
    assert tasks(environment) == found


def test_without_a_job_there_is_no_allocation():
    assert not is_allocation({"SLURM_CONF": "/etc/slurm/slurm.conf"})


@pytest.mark.parametrize(
    "options", [{"ntasks": 0}, {"nodes": 0}, {"nodes": 3, "ntasks": 2}, {"args": "--comment='open"}]
)
def test_a_step_that_makes_no_sense_is_refused(options):
    with pytest.raises(ConfigError):
        SlurmCfg(**options)


LOST = """
    import os, time
    from pathlib import Path
    import rota.sweeps as ss

    def train(cfg):
        Path(f"on-{os.environ['SLURMD_NODENAME']}").touch()
        while cfg["x"] < 2 and not Path("killed").exists():
            time.sleep(0.1)
        ss.log({"x": cfg["x"]}, 0)

    Path("first").write_text(os.environ["SLURMD_NODENAME"])
    ss.Experiment(train, {"x": ss.Grid([0, 1, 2, 3])}).run(max_concurrent_trials=2)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start nodes that end as a whole")
def test_a_trial_whose_node_is_lost_has_failed_and_the_others_go_on(slurm, tmp_path):
    job = submit(slurm, tmp_path, LOST, "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=4", "--no-kill")
    until_s = time.monotonic() + 120
    while len(list(tmp_path.glob("on-*"))) < 2:
        assert time.monotonic() < until_s, (tmp_path / "out.txt").read_text()
        time.sleep(0.1)
    mine = (tmp_path / "first").read_text()
    (lost,) = {file.name.removeprefix("on-") for file in tmp_path.glob("on-*")} - {mine}
    try:
        slurm.kill_node(lost)
        (tmp_path / "killed").touch()
        printed = wait_for(slurm, job, tmp_path)
    finally:
        slurm.start_node(lost)
    trials = ss.Result("MySweep", tmp_path / "slurm-sweeps").trials
    assert sorted(str(trial.status) for trial in trials) == ["completed"] * 3 + ["failed"], printed
    (failure,) = (trial.failure for trial in trials if trial.status == "failed")
    assert "ended without a result" in (failure or "")


SPANNING = """
    import os
    from pathlib import Path
    import rota.sweeps as ss

    def train(cfg):
        Path(f"trial{cfg['x']}-rank{os.environ['SLURM_PROCID']}-{os.environ['SLURMD_NODENAME']}").touch()
        ss.log({"rank": int(os.environ["SLURM_PROCID"])}, 0)

    ss.Experiment(train, {"x": ss.Grid([1, 2])}, slurm_cfg=ss.SlurmCfg(nodes=2, ntasks=2)).run()
"""


def test_a_trial_may_span_nodes_and_is_heard_from_rank_0(slurm, tmp_path):
    printed = wait_for(slurm, submit(slurm, tmp_path, SPANNING, "--nodes=2", "--ntasks-per-node=2"), tmp_path)
    trials = ss.Result("MySweep", tmp_path / "slurm-sweeps").trials
    assert [trial.metrics for trial in trials] == [{"rank": {0: 0}}] * 2, printed
    for number in (1, 2):
        names = [file.name.split("-")[1:] for file in tmp_path.glob(f"trial{number}-*")]
        assert sorted(rank for rank, _ in names) == ["rank0", "rank1"]
        assert len({node for _, node in names}) == 2
