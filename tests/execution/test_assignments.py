"""What workers answer, as facts."""

import math

import pytest

from rota.execution.assignments import Done, answer_line
from rota.execution.engine import parse_answer


@pytest.mark.parametrize("metric", [math.inf, -math.inf, math.nan])
def test_what_is_infinite_is_not_measured(metric):
    assert math.isnan(parse_answer(answer_line(Done("x", metric))).metric)
