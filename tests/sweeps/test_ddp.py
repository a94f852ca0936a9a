"""Trials of several processes: the example trains with two, and what happens when one of them fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rota.sweeps as ss

EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep_ddp.py"


def alone(rate: float) -> list[float]:
    """The losses of the example's training in one process, with all data."""
    import torch

    torch.manual_seed(0)
    network = torch.nn.Linear(4, 1)
    optimiser = torch.optim.SGD(network.parameters(), lr=rate)
    inputs = torch.randn(64, 4)
    targets = inputs.sum(dim=1, keepdim=True)
    losses = []
    for _ in range(20):
        loss = torch.nn.functional.mse_loss(network(inputs), targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def check(result: ss.Result) -> None:
    """Two processes with half of the data each did what one does with all of it."""
    assert len(result.trials) == 2
    assert {trial.status for trial in result.trials} <= {"completed", "pruned"}, result.trials[0].failure
    for trial in result.trials:
        found = list(trial.metrics["loss"].values())
        assert found == pytest.approx(alone(trial.cfg["rate"])[: len(found)], rel=1e-4)
        assert trial.metrics["ranks"][0] == 2
    assert result.best_trial().status == "completed"


def test_the_example_trains_with_two_processes_here(tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLE, str(tmp_path)], capture_output=True, text=True, timeout=200, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    check(ss.Result("ddp", tmp_path))


def test_the_example_trains_with_two_processes_on_slurm(slurm, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(f'#!/bin/bash\nexec "{sys.executable}" "{EXAMPLE}" "{tmp_path}"\n')
    job = slurm.submit("--nodes=2", "--ntasks-per-node=2", f"--output={tmp_path}/out", str(script))
    slurm.wait_for(job)
    check(ss.Result("ddp", tmp_path))


def test_only_rank_0_is_heard_and_all_ranks_run(sweep, tmp_path):
    def train(cfg):
        rank = int(os.environ["RANK"])
        (tmp_path / f"rank{rank}-of-{os.environ['WORLD_SIZE']}").touch()
        ss.log({"rank": rank}, 0)

    (trial,) = sweep(train, {}, slurm_cfg=ss.SlurmCfg(ntasks=3)).run().trials
    assert trial.metrics == {"rank": {0: 0}}
    assert sorted(file.name for file in tmp_path.glob("rank*")) == ["rank0-of-3", "rank1-of-3", "rank2-of-3"]


def test_when_one_process_fails_the_trial_has_failed_with_its_traceback(sweep):
    def train(cfg):
        import time

        if os.environ["RANK"] == "1":
            raise ArithmeticError("rank one cannot go on")
        time.sleep(600)

    (trial,) = sweep(train, {}, slurm_cfg=ss.SlurmCfg(ntasks=2)).run().trials
    assert trial.status == "failed"
    assert "rank one cannot go on" in (trial.failure or "")


def test_when_rank_0_is_pruned_the_others_are_ended_at_once(sweep):
    def train(cfg):
        import time

        ss.log({"loss": cfg["x"]}, 1)
        if os.environ["RANK"] == "1" and cfg["x"] == 2:
            time.sleep(600)

    asha = ss.ASHA("loss", "min", reduction_factor=2)
    experiment = sweep(train, {"x": ss.Grid([1, 2])}, asha=asha, slurm_cfg=ss.SlurmCfg(ntasks=2))
    result = experiment.run(max_concurrent_trials=1)
    assert [trial.status for trial in result.trials] == ["completed", "pruned"]


def test_a_process_that_does_not_end_when_all_is_done_is_ended(sweep, monkeypatch):
    monkeypatch.setattr("rota.sweeps.processes.GRACE_S", 0.3)

    def train(cfg):
        import threading
        import time

        threading.Thread(target=time.sleep, args=[600]).start()

    (trial,) = sweep(train, {}).run().trials
    assert trial.status == "completed"


def test_a_rank_left_in_the_environment_does_not_silence_a_trial(sweep, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("SLURM_PROCID", "2")
    (trial,) = sweep(lambda cfg: ss.log({"x": 1}, 0), {}).run().trials
    assert trial.metrics == {"x": {0: 1}}
