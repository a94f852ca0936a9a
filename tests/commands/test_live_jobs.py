"""What people see of a real run of jobs."""

import io
from dataclasses import replace

import pytest

from rota.commands.live import JobLines, jobs_summed_up, jobs_text
from rota.execution.jobs.status import JobsFrame, JobsStatus


@pytest.fixture
def board():
    """Two jobs, of which the first runs, and somebody beside them."""
    frame = JobsFrame(
        "run", 0, "srtf", ["a", "b"], ["fast", "slow"], [60, 40], [0.0, 1.0], ["here"] * 2, "grows"
    )
    board = JobsStatus(frame)
    board.happened({"at_s": 2.0, "arrived": (0, 2), "finished": []})
    board.decided([((0,), (1,), 0.1)])
    board.resident.done, board.resident.metric = 70, 0.5
    return board


def test_a_line_for_each_job_and_one_for_the_opportunistic_job(board):
    assert [line.split() for line in jobs_text(board).splitlines()[1:]] == [
        ["a", "fast", "running", "1:here", "0/60", "-", "2.0"],
        ["b", "slow", "waiting", "0/40", "-", "1.0"],
        ["resident", "grows", "beside", "70", "0.5", "2.0"],
    ]


def test_a_failure_is_told_once_with_the_name_and_the_reason_of_its_own_job(board):
    stream = io.StringIO()
    tell = JobLines(stream, 1e9)
    for job, why in (
        (board.jobs[1], "Traceback\nValueError: of b"),
        (board.jobs[0], "of a"),
        (board.jobs[1], ""),
    ):
        job.failures, job.why = job.failures + 1, why
        tell(board)
        tell(board)
    said = [line.split(" s  ")[1] for line in stream.getvalue().splitlines() if "failed:" in line]
    assert said == [
        "a slice of b failed: ValueError: of b",
        "a slice of a failed: of a",
        "a slice of b failed: ?",
    ]


def test_the_opportunistic_job_is_in_the_summary_and_its_failures_are_told_once(board):
    assert jobs_summed_up(board).endswith("0 pauses; opportunistic job grows: 70 iterations, metric 0.5")
    stream = io.StringIO()
    tell = JobLines(stream, 0.0)
    board.resident.failures, board.resident.why = 1, "Traceback\nValueError: too wide"
    tell(board)
    tell(board)
    first, *rest = [line.split(" s  ")[1] for line in stream.getvalue().splitlines()]
    assert first == "a slice of the opportunistic job failed: ValueError: too wide"
    assert len(rest) == 2
    assert all(line.endswith("grows: 70 iterations, metric 0.5, 1 failures") for line in rest)


def test_without_one_nothing_is_said_about_it(board):
    alone = JobsStatus(replace(board.frame, resident=""))
    assert jobs_summed_up(alone).endswith("0 pauses")
