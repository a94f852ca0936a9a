"""What is written to a journal comes back as it was."""

import json
import math

import pytest

from rota.core.errors import InputError
from rota.core.population.events import (
    Assign,
    Assigned,
    Clone,
    Cloned,
    Continue,
    Idled,
    Interval,
    Joined,
    NodeFailed,
    Reported,
    Retire,
    Retired,
    Stop,
    Stopped,
    TrialFailed,
    TrialFinished,
)
from rota.execution.entries import decision_records, event_records, parse_decisions, parse_events

EVENTS = [
    Joined(0.0, 1),
    Assigned(0.1 + 0.2, 0, 1, 50),
    Reported(1 / 3, 0, 2, 50, 0.1, 1e-300, 5e-324, -0.0),
    TrialFailed(2.0, 1, 3, 'Traceback\n  "quoted" \x00 é'),
    Cloned(2.0, 1, 2, {"lr": 0.1, "name": "a"}, ("deepen 0",)),
    Idled(3.0, 0),
    Stopped(3.0, 1),
    TrialFinished(3.0, 2),
    Retired(4.0, 0),
    NodeFailed(5.0, 1),
]
DECISIONS = [
    Continue(3, reviewed=True),
    Continue(4),
    Clone(1, 2, {"lr": 0.1 + 0.2, "batch_size": 64}, ("deepen 0", "widen 1 64")),
    Stop(5),
    Retire(1),
    Assign(0, [Interval(1, 50), Interval(2, 17), Interval(1, 50)]),
]


def through_json(value):
    return json.loads(json.dumps(value))


def test_events_come_back_as_they_were():
    assert parse_events(through_json(event_records(EVENTS))) == EVENTS


def test_what_was_not_measured_comes_back_as_such():
    (report,) = parse_events(through_json(event_records([Reported(1.0, 0, 2, 50, 0.0, 1.0, 0.0, math.nan)])))
    assert math.isnan(report.metric)


def test_decisions_come_back_as_they_were():
    assert parse_decisions(through_json(decision_records(DECISIONS))) == DECISIONS


def test_decisions_can_be_compared_with_what_was_read_without_parsing_it():
    assert through_json(decision_records(DECISIONS)) == decision_records(DECISIONS)


@pytest.mark.parametrize("records", [[["Exploded", 1.0]], [["Joined"]], [[]], [["Reported", 1.0, 2]]])
def test_what_is_no_event_is_said_to_be_none(records):
    with pytest.raises(InputError, match="cannot be resumed"):
        parse_events(records)
    with pytest.raises(InputError, match="cannot be resumed"):
        parse_decisions(records)
