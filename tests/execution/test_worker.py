"""A worker carries out an assignment: what is trained says how good it is, and that is a number."""

import math
from fractions import Fraction

import numpy as np
import pytest

from rota.execution.assignments import Assignment, Done, FailedAnswer, checkpoint_info
from rota.execution.checkpoints import Checkpoints
from rota.execution.idle import Idle
from rota.execution.worker import Worker


class Says(Idle):
    """As good as it is told to be."""

    def __init__(self, value):
        super().__init__(0.0)
        self.value = value

    def evaluate(self):
        return self.value


@pytest.fixture
def answer(tmp_path):
    """Gives what a worker answers if `evaluate` returns this."""
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.claim("run")

    def carry_out(value, mode="max"):
        assignment = Assignment(checkpoint_info(0, 1, 10, {"lr": 0.5}, (), None, "run"), None, ())
        return Worker(Says(value), checkpoints, mode).carry_out(assignment)

    return carry_out


@pytest.mark.parametrize("value", [0.75, np.float32(0.75), np.array([0.75]).max(), Fraction(3, 4)])
@pytest.mark.parametrize(("mode", "sign"), [("max", 1.0), ("min", -1.0)])
def test_whatever_is_a_number_is_a_float(answer, value, mode, sign):
    found = answer(value, mode)
    assert isinstance(found, Done)
    assert (type(found.metric), found.metric) == (float, sign * 0.75)


def test_nan_is_a_number(answer):
    assert math.isnan(answer(math.nan).metric)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "Says.evaluate returned nothing; it must be a number"),
        ("0.75", "Says.evaluate returned '0.75', a str; it must be a number"),
        ({"loss": 0.75}, "Says.evaluate returned \"{'loss': 0.75}\", a dict; it must be a number"),
        (np.zeros(2), "Says.evaluate returned '[0. 0.]', a ndarray; it must be a number"),
    ],
)
def test_whatever_else_is_an_error_that_names_evaluate(answer, value, said):
    found = answer(value)
    assert isinstance(found, FailedAnswer)
    assert said in found.why
