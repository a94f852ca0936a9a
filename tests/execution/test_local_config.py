"""What can be said about the slots of this machine."""

import os

import pytest

from rota.core.errors import ConfigError
from rota.execution import local
from rota.execution.controller import control
from rota.execution.engine import WorkerSetup
from rota.execution.folder import RunPaths
from rota.execution.local import LocalConfig, LocalSlotConfig
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.population import PopulationPolicy


def test_slots_take_the_cores_one_after_the_other_and_begin_again_when_they_end():
    config = LocalConfig(
        (LocalSlotConfig(count=2, cores=2), LocalSlotConfig(cores=1), LocalSlotConfig(cores=0))
    )
    places = config.pinned([0, 1, 2, 3])
    assert [place.cores for place in places] == [(0, 1), (2, 3), (0,), ()]


def test_gpus_can_be_shared_and_stand_beside_cores():
    config = LocalConfig(
        (LocalSlotConfig(count=2, gpu="0", speed=8.0, node="g"), LocalSlotConfig(node="g"), LocalSlotConfig())
    )
    assert [place.gpu for place in config.pinned([0])] == ["0", "0", "", ""]
    cluster = config.cluster()
    assert cluster.names == ("g", "here")
    assert [(slot.node, slot.speed, slot.device) for slot in cluster.all_slots] == [
        (0, 8.0, "gpu 0"), (0, 8.0, "gpu 0"), (0, 1.0, "cpu"), (1, 1.0, "cpu"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"node": "a b"},
        {"node": "../a"},
        {"node": "a\nb"},
        {"node": "'a'"},
        {"node": ""},
        {"gpu": "0;x"},
        {"gpu": "$(x)"},
        {"count": 0},
        {"cores": -1},
    ],
)
def test_hostile_names_and_impossible_numbers_are_refused(wrong):
    with pytest.raises(ConfigError):
        LocalSlotConfig(**wrong)


ASKS = """
    import os
    from rota.execution.idle import Idle

    class Asks(Idle):
        def evaluate(self):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"
            assert os.environ["OMP_NUM_THREADS"] == "1"
            return float(next(iter(os.sched_getaffinity(0))) if len(os.sched_getaffinity(0)) == 1 else -1)

    def make(settings, seed) -> Asks:
        return Asks(0.0)
"""


def test_a_worker_is_pinned_to_its_core_and_sees_its_gpu(tmp_path, small, trial_module):
    wanted, paths = small(), RunPaths(tmp_path / "run")
    engine = LocalConfig((LocalSlotConfig(count=2, cores=1, gpu="7"),))
    setup = WorkerSetup(trial_module(ASKS), {}, 0, paths)
    outcome = control(
        wanted.spec(),
        PopulationPolicy(FifoAllocation()),
        lambda: engine.workers(wanted.cluster, setup),
        paths,
    )
    cores = sorted(os.sched_getaffinity(0))
    seen = {event.slot: event.metric for event in outcome.timeline if type(event).__name__ == "Reported"}
    assert outcome.status.record()["failed"] == []
    assert seen == {slot: cores[slot % len(cores)] for slot in seen}


def test_slots_may_share_cores_but_none_has_more_than_there_are():
    there = len(os.sched_getaffinity(0))
    LocalConfig((LocalSlotConfig(count=3 * there, cores=there), LocalSlotConfig(cores=0))).check()
    with pytest.raises(ConfigError, match=rf"local\.slots\[1\]: cores is {there + 1}, but .* {there} of"):
        LocalConfig((LocalSlotConfig(), LocalSlotConfig(cores=there + 1))).check()


LISTED = """#!/bin/sh
echo 'GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c)'
echo 'GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-aa0f1c77-0000-1111)'
echo '  MIG 3g.20gb     Device  0: (UUID: MIG-c7384736-a75d)'
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with two GPUs, one of them in parts."""
    (tmp_path / "nvidia-smi").write_text(LISTED)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(local, "AMD", tmp_path / "none")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("visible", "there", "missing"),
    [
        (None, ["0", "1", "GPU-5d5", "MIG-c7384736-a75d"], ["2", "10", "GPU-6"]),
        ("1", ["1", "GPU-5d5"], ["0", "2"]),
        ("GPU-aa0f1c77", ["0", "1", "GPU-aa0"], ["2"]),
        ("", [], ["0", "1", "GPU-5d5"]),
    ],
)
def test_a_gpu_that_is_not_there_is_refused(machine, visible, there, missing):
    if visible is not None:
        machine.setenv("CUDA_VISIBLE_DEVICES", visible)
    for gpu in there:
        LocalConfig((LocalSlotConfig(count=2, gpu=gpu),)).check()
    for gpu in missing:
        with pytest.raises(ConfigError, match=rf"local\.slots\[0\]: gpu is '{gpu}', but .* no such GPU"):
            LocalConfig((LocalSlotConfig(gpu=gpu),)).check()


def test_where_nothing_lists_gpus_there_are_none_unless_they_are_amds(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(local, "AMD", tmp_path / "none")
    assert local.is_missing("0")
    monkeypatch.setattr(local, "AMD", tmp_path)
    assert not local.is_missing("0")
