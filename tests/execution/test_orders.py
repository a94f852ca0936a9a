"""What workers answer, as facts."""

import math

import pytest

from rota.execution.answers import parse_answer
from rota.execution.orders import Done, answer_line


@pytest.mark.parametrize("metric", [math.inf, -math.inf, math.nan])
def test_what_is_infinite_is_not_measured(metric):
    assert math.isnan(parse_answer(answer_line(Done("x", metric))).metric)
