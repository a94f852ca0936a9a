"""Workers that are job steps of a real Slurm keep the contract that controllers rely on."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from rota.core.errors import ConfigError, InputError
from rota.execution.assignments import Assignment, FailedAnswer, checkpoint_info
from rota.execution.engine import Answered, Died, NodeCame, NodeWent, WorkerSetup
from rota.execution.folder import RunPaths
from rota.execution.slurm_commands import StepTarget, is_there
from rota.execution.slurm_config import SlurmConfig, SlurmNodeConfig
from rota.execution.starting import CannotStart


@pytest.fixture
def begin(outside, paths):
    """Begins workers on nodes as they are described; they are ended with the test."""
    begun = []
    paths.make()
    paths.checkpoints.claim("run")

    def workers(*nodes, trial="rota.execution.idle:idle", settings=None, **more):
        config = SlurmConfig(nodes or (SlurmNodeConfig(slots=2),), **more)
        begun.append(config.workers(config.cluster(), WorkerSetup(trial, settings or {}, 0, paths)))
        return begun[-1]

    yield workers
    for each in begun:
        each.close()


def assignment(trial, version, source=None, steps=10):
    before = source.make if source else None
    return Assignment(checkpoint_info(trial, version, steps, {"lr": 0.5}, (), before, "run"), before)


def heard(workers, count, within_s=120.0):
    messages, until_s = [], time.monotonic() + within_s
    while len(messages) < count:
        messages += workers.wait(1.0)
        assert time.monotonic() < until_s, f"only {messages} within {within_s:g} s"
    return messages


def until(condition, within_s=100.0):
    until_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until_s, f"not so within {within_s:g} s"
        time.sleep(0.05)


def jobs(slurm):
    return slurm.run("squeue", "--noheader", "--format=%i", "--states=PENDING,RUNNING").split()


def steps(slurm):
    """Names of those that run."""
    return sorted(slurm.run("squeue", "--noheader", "--steps", "--format=%j").split())


def test_assignments_are_answered_one_after_the_other_by_steps_that_stay(begin, outside):
    workers = begin()
    assert workers.nodes() == [0]
    first = assignment(0, 1)
    second = assignment(0, 2, first)
    for each in (first, second):
        workers.send(1, each)
    assert [
        (message.slot, message.answer.digest, message.answer.metric) for message in heard(workers, 2)
    ] == [
        (1, first.make.digest, 5.0),
        (1, second.make.digest, 10.0),
    ]
    assert steps(outside) == ["slot0", "slot1"]
    workers.send(0, first)
    (again,) = heard(workers, 1)
    assert again.answer.again
    assert workers.wait(0.01) == []


def test_after_closing_no_job_is_left(begin, outside):
    workers = begin(SlurmNodeConfig(count=2))
    assert workers.nodes() == [0, 1]
    assert len(jobs(outside)) == 2
    workers.close()
    assert jobs(outside) == []


PRINTS = """
    import os, signal, sys
    from rota.execution.idle import Idle

    class Odd(Idle):
        def train(self, steps, hyper, changes):
            print("noise", flush=True)
            if sys.stdin.read():
                raise ArithmeticError("there is something to read")
            if steps == 13:
                print("unlucky", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            super().train(steps, hyper, changes)

    def make(settings, seed) -> Odd:
        return Odd(0.0)
"""


def test_a_worker_that_dies_is_heard_of_with_its_last_words_and_the_next_assignment_starts_another(
    begin, trial_module
):
    workers = begin(trial=trial_module(PRINTS))
    workers.nodes()
    workers.send(0, assignment(0, 1))
    (answered,) = heard(workers, 1)
    assert answered.answer.metric == 5.0  # whatever it prints
    workers.send(0, assignment(0, 1, steps=13))
    (died,) = heard(workers, 1)
    assert isinstance(died, Died)
    assert died.slot == 0
    assert "unlucky" in died.why
    workers.send(0, assignment(0, 1, steps=20))
    (answered,) = heard(workers, 1)
    assert isinstance(answered, Answered)
    assert answered.answer.metric == 10.0


def test_a_worker_whose_srun_was_killed_gives_its_cores_to_the_next_one(begin):
    workers = begin(SlurmNodeConfig(slots=1, cpus=4), settings={"step_s": 0.001})
    workers.nodes()
    os.kill(workers.pids()[0], signal.SIGKILL)
    (died,) = heard(workers, 1)
    assert isinstance(died, Died)
    workers.send(0, assignment(0, 1))  # for which there is no core until the other has gone
    (answered,) = heard(workers, 1)
    assert isinstance(answered, Answered)


def test_jobs_that_a_controller_left_together_with_its_salloc_are_ended_by_the_next_one(begin, outside):
    workers = begin()
    workers.nodes()
    (left,) = jobs(outside)
    for pid in workers.pids():
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.5)
    assert jobs(outside) == [left]
    again = begin()
    assert again.nodes() == [0]
    until(lambda: left not in jobs(outside))
    assert len(jobs(outside)) == 1


WHERE = """
    import os
    from pathlib import Path
    from rota.execution.idle import Idle

    def make(settings, seed) -> Idle:
        gpu, cpus = os.environ["CUDA_VISIBLE_DEVICES"], os.environ["SLURM_CPUS_PER_TASK"]
        node, job = os.environ["SLURMD_NODENAME"], os.environ["SLURM_JOB_ID"]
        Path(settings["folder"], f"{node}|{gpu}|{cpus}|{os.environ['OMP_NUM_THREADS']}").touch()
        return Idle(0.0)
"""


def test_slots_are_where_their_feature_and_their_gres_are(begin, trial_module, tmp_path):
    seen = tmp_path / "seen"
    seen.mkdir()
    workers = begin(
        SlurmNodeConfig(slots=2, gres="gpu:1", speed=2.0),
        SlurmNodeConfig(slots=1, cpus=2, feature="slow"),
        SlurmNodeConfig(slots=1, cpus=3, host="node4"),
        trial=trial_module(WHERE),
        settings={"folder": str(seen)},
    )
    assert workers.nodes() == [0, 1, 2]
    hosts = [place.host for _, place in sorted(workers.targets().items())]
    assert hosts[0] in ("node1", "node2")
    assert hosts[1] in ("node3", "node4")
    assert hosts[2] == "node4"
    assert sorted(file.name for file in seen.iterdir()) == sorted(
        [f"{hosts[0]}|0|1|1", f"{hosts[0]}|1|1|1", f"{hosts[1]}||2|2", "node4||3|3"]
    )


def test_a_node_that_has_to_wait_in_the_queue_comes_when_it_can(begin, outside):
    blocker = outside.submit("--nodelist=node4", "--exclusive", "--output=/dev/null", "--wrap=sleep 600")
    until(lambda: outside.run("squeue", "--noheader", "--format=%T", f"--jobs={blocker}") == "RUNNING")
    whole = SlurmNodeConfig(host="node4", cpus=4)
    workers = begin(SlurmNodeConfig(host="node3"), whole, patience_s=0.2)
    assert workers.nodes() == [0]
    workers.send(0, assignment(0, 1))
    assert isinstance(heard(workers, 1)[0], Answered)
    outside.run("scancel", blocker)
    assert heard(workers, 1) == [NodeCame(1)]
    workers.send(1, assignment(1, 1))
    assert isinstance(heard(workers, 1)[0], Answered)


def test_a_job_that_is_cancelled_is_a_node_that_went_and_another_one_comes(begin, outside):
    workers = begin(SlurmNodeConfig(slots=2), settings={"step_s": 100.0})
    workers.nodes()
    (job, _) = workers.targets()[0]
    workers.send(0, assignment(0, 1))
    outside.run("scancel", job)
    assert heard(workers, 1) == [NodeWent(0)]
    workers.send(0, assignment(0, 1))  # before the controller has been told
    assert heard(workers, 1) == [NodeCame(0)]
    assert workers.targets()[0].job != job


def test_when_a_job_is_cancelled_before_it_was_granted_the_others_go_on(begin, outside):
    blocker = outside.submit("--nodelist=node4", "--exclusive", "--output=/dev/null", "--wrap=sleep 600")
    until(lambda: outside.run("squeue", "--noheader", "--format=%T", f"--jobs={blocker}") == "RUNNING")
    workers = begin(SlurmNodeConfig(host="node3"), SlurmNodeConfig(host="node4", cpus=4), patience_s=0.2)
    assert workers.nodes() == [0]
    outside.run("scancel", *outside.run("squeue", "--noheader", "--format=%i", "--states=PENDING").split())
    assert workers.wait(1.0) == []
    outside.run("scancel", blocker)
    workers.send(0, assignment(0, 1))
    assert isinstance(heard(workers, 1)[0], Answered)
    assert len(workers.pids()) == 2  # a step and a job


@pytest.fixture
def allocation(outside, monkeypatch):
    """This process is in an allocation of two nodes with two cores each; its number."""
    asked = ["salloc", "--no-shell", "--nodes=2", "--ntasks-per-node=2", "--job-name=inside"]
    outside.run(*asked)
    job, names = outside.run("squeue", "--noheader", "--name=inside", "--format=%i %N").split()
    monkeypatch.setenv("SLURM_JOB_ID", job)
    monkeypatch.setenv("SLURM_JOB_NODELIST", names)
    monkeypatch.setenv("SLURM_JOB_CPUS_PER_NODE", "2(x2)")
    monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "2")  # as in a batch script; a step has one task all the same
    yield job
    outside.run("scancel", job)
    outside.wait_for(job)


def test_in_an_allocation_there_are_its_nodes_and_no_others(begin, allocation, outside):
    workers = begin(SlurmNodeConfig(count=3, slots=2))
    assert workers.nodes() == [0, 1]
    assert {place.job for place in workers.targets().values()} == {allocation}
    assert len({place.host for place in workers.targets().values()}) == 2
    assert jobs(outside) == [allocation]
    for slot in range(4):
        workers.send(slot, assignment(slot, 1))
    assert sorted(message.slot for message in heard(workers, 4)) == [0, 1, 2, 3]


def test_when_the_allocation_is_over_nodes_go_and_then_it_is_said_that_none_is_left(
    begin, allocation, outside
):
    workers = begin(SlurmNodeConfig(count=2), settings={"step_s": 100.0})
    workers.nodes()
    for slot in range(2):
        workers.send(slot, assignment(slot, 1))
    outside.run("scancel", allocation)
    assert sorted(heard(workers, 2)) == [NodeWent(0), NodeWent(1)]
    with pytest.raises(CannotStart, match="--resume"):
        workers.wait(1.0)


def test_an_allocation_in_which_nothing_fits_is_refused(begin, allocation):
    with pytest.raises(ConfigError, match=r"node\d with 2 CPUs.*--cpus-per-task"):
        begin(SlurmNodeConfig(cpus=3))


def test_a_job_that_is_over_is_not_there(outside):
    assert not is_there(StepTarget("999999", "node1"))


@pytest.mark.parametrize(
    ("sinfo", "squeue", "there"),
    [
        ("echo mixed", "echo 17 RUNNING; echo 7 RUNNING", True),
        ("echo mixed", "echo 17 RUNNING; echo 7 COMPLETING", False),
        ("echo mixed", "true", False),
        ("echo 'down*'", "echo 7 RUNNING", False),
        ("echo mixed", "exit 1", True),  # it does not answer
        ("exit 1", "exit 1", True),
    ],
)
def test_a_node_is_gone_only_if_slurm_says_so(monkeypatch, tmp_path, sinfo, squeue, there):
    for name, does in (("sinfo", sinfo), ("squeue", squeue)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert is_there(StepTarget("7", "node1")) == there


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (SlurmNodeConfig(feature="purple"), "Invalid feature"),
        (SlurmNodeConfig(gres="gpu:9"), "configuration is not available"),
        (SlurmNodeConfig(host="elsewhere"), "Invalid node name"),
    ],
    ids=["feature", "gres", "host"],
)
def test_what_slurm_will_never_grant_ends_the_run_with_what_slurm_says(begin, node, says):
    with pytest.raises(CannotStart, match=says):
        begin(node).nodes()


def test_a_trial_that_cannot_be_made_ends_the_run_with_a_sentence(begin):
    with pytest.raises(InputError, match="No module named 'nowhere'"):
        begin(trial="nowhere:make").nodes()


def test_a_trial_that_raises_is_an_answer(begin, trial_module):
    workers = begin(trial=trial_module(PRINTS.replace("sys.stdin.read()", "True")))
    workers.nodes()
    workers.send(0, assignment(0, 1))
    (answered,) = heard(workers, 1)
    assert isinstance(answered.answer, FailedAnswer)
    assert "something to read" in answered.answer.why


def test_a_folder_may_be_called_whatever_one_likes(outside, tmp_path):
    paths = RunPaths(tmp_path / 'it\'s "a"; $(touch x) %j\n --wrap=y')
    paths.make()
    paths.checkpoints.claim("run")
    config = SlurmConfig()
    workers = config.workers(config.cluster(), WorkerSetup("rota.execution.idle:idle", {}, 0, paths))
    try:
        assert workers.nodes() == [0]
        workers.send(0, assignment(0, 1))
        (answered,) = heard(workers, 1)
    finally:
        workers.close()
    assert answered.answer.metric == 5.0
    assert [file.name for file in paths.checkpoints.folder.iterdir() if file.name[0] != "."] == ["0-1.part"]
    assert [file.name for file in tmp_path.iterdir()] == [paths.path.name]


def test_a_folder_that_a_node_does_not_see_is_said_to_be_the_reason(tmp_path):
    command = [
        sys.executable,
        "-m",
        "rota.execution.slurm_process",
        "step",
        "rota.execution.idle:idle",
        str(tmp_path / "no" / "log"),
    ]
    said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout
    found = json.loads(said)
    assert not found["ready"]
    assert "No such file or directory" in found["why"]
    assert "where all nodes see it" in found["why"]


def test_where_there_is_no_slurm_that_is_said(begin, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="Slurm has no srun, salloc, squeue, sinfo, scancel here"):
        begin().nodes()
