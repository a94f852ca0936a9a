"""What people see of a run, worked out by hand."""

import io
import math
from dataclasses import replace

import pytest

from rota.commands.run_progress import Lines, Pace, live, rich_table, summed_up, table_text
from rota.core.population.events import (
    Assign,
    Clone,
    Interval,
    Joined,
    NodeFailed,
    Reported,
    Retire,
    Stop,
    TrialFailed,
)
from rota.core.population.view import Terms
from rota.execution.status import PopulationFrame, PopulationStatus, parse_frame

FRAME = PopulationFrame(
    "run", 0, [{"lr": 0.1}, {"lr": 0.2}, {"lr": 0.3}], [0, 0, 1], ["a", "b"], Terms(10, 20)
)


@pytest.fixture
def status():
    """Trials 0 and 1 on the two slots of node a, trial 2 on that of node b; trial 0 has reported."""
    found = PopulationStatus(FRAME)
    found.see([Joined(0.0, 0), Joined(0.0, 1)])
    found.decide(
        [
            Assign(0, [Interval(0, 10)]),
            Assign(1, [Interval(1, 10), Interval(1, 10)]),
            Assign(2, [Interval(2, 10)]),
        ]
    )
    found.see([Reported(3.0, 0, 0, 10, 0.0, 3.0, 0.5, 0.7)])
    return found


def statuses(status):
    return [trial.status for trial in status.trials]


def test_a_frame_comes_back_from_the_journal_as_it_was():
    assert parse_frame(FRAME.record()).record() == FRAME.record()


def test_a_trial_that_has_reported_waits_until_it_is_assigned_again(status):
    assert statuses(status) == ["waiting", "running", "running"]
    assert status.unused == 1
    assert (status.trials[0].node, status.trials[2].node) == ("a", "b")
    status.decide([Assign(0, [Interval(0, 10)])])
    assert status.unused == 0
    status.see([Reported(6.0, 0, 0, 10, 3.0, 6.0, 0.0, 0.6)])
    assert status.trials[0].status == "finished"
    assert (status.trials[0].best, status.trials[0].metric, status.trials[0].computing_s) == (
        0.7,
        0.6,
        5.5,
    )


def test_an_assignment_with_several_intervals_of_a_trial_keeps_it_running(status):
    status.see([Reported(4.0, 1, 1, 10, 0.0, 4.0, 0.0, 0.1)])
    assert status.trials[1].status == "running"


def test_clones_stops_losses_and_failures_are_counted(status):
    status.decide([Clone(0, 1, {"lr": 0.5}, ("deepen 0",)), Clone(2, 2, {"lr": 0.4}), Retire(0)])
    assert status.clones == 1  # who is its own donor only explores
    assert status.trials[0].hyper == {"lr": 0.5}
    assert status.unused == 0
    status.see([NodeFailed(5.0, 1)])
    assert statuses(status) == ["waiting", "running", "waiting"]
    status.see([TrialFailed(6.0, 1, 1, "x")] * 3)
    status.decide([Stop(0)])
    assert statuses(status) == ["stopped", "failed", "waiting"]
    assert len(status.failures) == 3


def test_overhead_is_what_slots_did_apart_from_training_and_evaluating_per_report(status):
    # The first training began at 0.5 s: 3 slots × (5 s − 0.5 s) − (2.5 s + 4 s) = 7 s, for two reports.
    status.see([Reported(5.0, 1, 1, 10, 0.0, 4.5, 0.5, math.nan)])
    assert status.overhead_s_per_report == 3.5
    assert PopulationStatus(FRAME).overhead_s_per_report is None


def test_the_best_is_the_first_of_equals_and_none_if_nothing_was_measured(status):
    status.see([Reported(5.0, 1, 1, 10, 0.0, 5.0, 0.0, 0.7)])
    assert status.best == 0
    assert status.record()["best"]["best_metric"] == 0.7
    assert PopulationStatus(FRAME).record()["best"] is None


def test_the_table_has_a_line_per_trial(status):
    header, *lines = table_text(status).splitlines()
    assert header.split("  ")[0] == "trial"
    assert header.endswith("trained [s]")
    assert lines[0].split() == ["0", "a", "waiting", "lr=0.1", "0.7", "0.7", "10", "2.5"]
    assert lines[1].split() == ["1", "a", "running", "lr=0.2", "-", "-", "0", "0.0"]


def test_a_run_is_summed_up_in_a_line(status):
    assert summed_up(status) == (
        "1 reports in 3.0 s, 0 clones, 0 failures, 0 of 3 trials done; best 0.7000 (trial 0)"
    )


def test_lines_come_at_most_so_often_but_what_went_wrong_is_always_said(status):
    stream = io.StringIO()
    lines = Lines(stream, every_s=1000.0)
    report = Reported(3.0, 0, 0, 10, 0.0, 3.0, 0.5, 0.7)
    lines(status, [report, report])
    lines(status, [report, TrialFailed(4.0, 1, 1, "Traceback\nValueError: odd\n"), NodeFailed(5.0, 1)])
    said = stream.getvalue().splitlines()
    assert len(said) == 3
    assert "trial 0 on a: step 10, metric 0.7" in said[0]
    assert said[1].endswith("trial 1 failed: ValueError: odd")
    assert said[2].endswith("node b has left: its slots are not used")


def test_what_is_not_said_costs_nothing(status, monkeypatch):
    looked = []
    monkeypatch.setattr(PopulationStatus, "unused", property(lambda self: looked.append(self) or 1))
    lines = Lines(io.StringIO(), every_s=1000.0)
    for _ in range(50):
        lines(status, [Reported(3.0, 0, 0, 10, 0.0, 3.0, 0.5, 0.7)])
    assert len(looked) == 1


def test_the_pace_is_kept():
    times = iter([0.0, 0.5, 1.0, 1.2, 2.5])
    pace = Pace(1.0, tick=lambda: next(times))
    assert [pace.due() for _ in range(5)] == [True, False, True, False, True]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_there_is_a_table_of_trials_unused_slots_and_clones(status, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with live(stream, 0.0, Lines, rich_table) as watch:
        watch()(status, [])
    shown = stream.getvalue()
    for word in ("hyper-parameters", "lr=0.1", "running", "trained [s]", "1 slots unused", "0 clones"):
        assert word in shown


def test_what_is_reported_after_the_deadline_does_not_count():
    status = PopulationStatus(replace(FRAME, deadline_s=5.0))
    status.see([Joined(0.0, 0)])
    status.decide([Assign(0, [Interval(0, 10)]), Assign(1, [Interval(1, 10)])])
    early, late = Reported(5.0, 0, 0, 10, 0.0, 5.0, 0.0, 0.7), Reported(5.1, 1, 1, 10, 0.0, 5.1, 0.0, 0.9)
    status.see([early, late])
    assert (status.best, status.reports, status.trials[1].steps) == (0, 1, 0)
    assert statuses(status) == ["waiting"] * 3
    assert "0.0 s left until the deadline; best 0.7000 (trial 0)" in summed_up(status)
    status.close()
    assert "left until" not in summed_up(status)
    assert not status.fruitless


def test_a_run_whose_reports_all_came_after_the_deadline_says_so():
    status = PopulationStatus(replace(FRAME, deadline_s=0.3))
    status.decide([Assign(0, [Interval(0, 10)])])
    status.see([Reported(1.0, 0, 0, 10, 0.0, 1.0, 0.0, 0.7)])
    assert status.best is None
    assert status.fruitless.startswith("no trial has reported until the deadline; give more time")
