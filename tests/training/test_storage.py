"""Storage as slow as it is said to be, which changes nothing but time."""

import math
import time

import pytest

from rota.core.errors import ConfigError
from rota.training.setup import Setup
from rota.training.trial import network

BATCH_BYTES = 16_384
"""Of 64 images of 8 × 8 numbers of 4 bytes."""
SETUP = Setup(model="feedforward1", data="digits", threads=1, storage_mb_s=0.32768)  # 0.05 s for a batch


def test_a_batch_comes_after_as_long_as_its_bytes_take():
    task = SETUP.task(0)
    began_s = time.perf_counter()
    found = task.batch(None, 0, 64)
    assert time.perf_counter() - began_s >= 0.05
    assert found.inputs.nbytes == BATCH_BYTES


def test_storage_that_is_faster_than_the_machine_is_not_waited_for(monkeypatch):
    waited = []
    monkeypatch.setattr(time, "sleep", waited.append)
    Setup(model="feedforward1", data="digits", storage_mb_s=1e9).task(0).batch(None, 0, 64)
    assert waited == [0.0]


@pytest.mark.parametrize("model", ["feedforward1", "transformer", "a2c", "dqn"])
def test_what_a_trial_becomes_does_not_depend_on_its_storage(model):
    """Also if its task remembers something, as games do."""
    settings = {"model": model, "threads": 1, "device": "cpu", "hyper": {"batch_size": 8}}
    found = []
    for trial in (network(settings, 0), network({**settings, "storage_mb_s": 10.0}, 0)):
        trial.begin(1)
        trial.train(3, {}, ())
        halfway = trial.save()
        trial.train(2, {}, ())
        trial.load(halfway)
        trial.train(3, {}, ())
        found.append((trial.evaluate(), trial.save()))
    assert found[0] == found[1]
    assert math.isfinite(found[0][0])


def test_a_trial_waits_at_every_step():
    trial = network({"model": "feedforward1", "data": "digits", "threads": 1, "storage_mb_s": 0.32768}, 0)
    began_s = time.perf_counter()
    trial.train(4, {}, ())
    assert time.perf_counter() - began_s >= 4 * 0.05


@pytest.mark.parametrize("speed", [0.0, -1.0, math.nan])
def test_storage_that_gives_nothing_is_refused(speed):
    with pytest.raises(ConfigError, match=r"storage_mb_s is .*; it must be above 0"):
        Setup(storage_mb_s=speed)
