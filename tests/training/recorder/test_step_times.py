"""Seconds per step: of whole steps, whatever the learning rate."""

import pytest
import torch

from rota.core.errors import InputError
from rota.core.network import NOTHING
from rota.training.clock import StoppedClock
from rota.training.hyper import Hyperparameters
from rota.training.recorder import step_times
from rota.training.setup import Setup

WILD = Setup(
    model="feedforward1",
    data="digits",
    threads=1,
    optimizer="sgd",
    hyper=Hyperparameters(lr=1e30, batch_size=16),
)


def test_steps_that_fail_are_not_taken_for_fast_ones():
    with pytest.raises(InputError, match=r"cannot be measured: the loss is .*; try a smaller lr"):
        step_times.measure([WILD.trainer(StoppedClock(), seed=0)], torch.device("cpu"))


def test_a_learning_rate_at_which_training_fails_does_not_matter():
    (seconds,) = step_times.structure_step_times(WILD, [NOTHING], 1).items()
    fingerprint = WILD.trainer(StoppedClock(), seed=0).structure.fingerprint
    assert seconds[0] == (fingerprint, 16)
    assert seconds[1] > 0
