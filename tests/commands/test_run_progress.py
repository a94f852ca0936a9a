"""What people see of a real run of jobs."""

import io
from dataclasses import replace

import pytest

from rota.commands.run_progress import JobLines, jobs_summed_up, jobs_text
from rota.execution.jobs.status import JobsFrame, JobsStatus


@pytest.fixture
def status():
    """Two jobs, of which the first runs, and somebody beside them."""
    frame = JobsFrame(
        "run", 0, "srtf", ["a", "b"], ["fast", "slow"], [60, 40], [0.0, 1.0], ["here"] * 2, "grows"
    )
    status = JobsStatus(frame)
    status.happened({"at_s": 2.0, "arrived": (0, 2), "finished": []})
    status.decided([((0,), (1,), 0.1)])
    status.opportunistic.done, status.opportunistic.metric = 70, 0.5
    return status


def test_a_line_for_each_job_and_one_for_the_opportunistic_job(status):
    assert [line.split() for line in jobs_text(status).splitlines()[1:]] == [
        ["a", "fast", "running", "1:here", "0/60", "-", "2.0"],
        ["b", "slow", "waiting", "0/40", "-", "1.0"],
        ["opportunistic", "grows", "on", "idle", "slots", "70", "0.5", "2.0"],
    ]


def test_a_failure_is_told_once_with_the_name_and_the_reason_of_its_own_job(status):
    stream = io.StringIO()
    tell = JobLines(stream, 1e9)
    for job, why in (
        (status.jobs[1], "Traceback\nValueError: of b"),
        (status.jobs[0], "of a"),
        (status.jobs[1], ""),
    ):
        job.failures, job.why = job.failures + 1, why
        tell(status)
        tell(status)
    said = [line.split(" s  ")[1] for line in stream.getvalue().splitlines() if "failed:" in line]
    assert said == [
        "an assignment of b failed: ValueError: of b",
        "an assignment of a failed: of a",
        "an assignment of b failed: ?",
    ]


def test_the_opportunistic_job_is_in_the_summary_and_its_failures_are_told_once(status):
    assert jobs_summed_up(status).endswith("0 pauses; opportunistic job grows: 70 iterations, metric 0.5")
    stream = io.StringIO()
    tell = JobLines(stream, 0.0)
    status.opportunistic.failures, status.opportunistic.why = 1, "Traceback\nValueError: too wide"
    tell(status)
    tell(status)
    first, *rest = [line.split(" s  ")[1] for line in stream.getvalue().splitlines()]
    assert first == "an assignment of the opportunistic job failed: ValueError: too wide"
    assert len(rest) == 2
    assert all(line.endswith("grows: 70 iterations, metric 0.5, 1 failures") for line in rest)


def test_without_one_nothing_is_said_about_it(status):
    alone = JobsStatus(replace(status.frame, opportunistic=""))
    assert jobs_summed_up(alone).endswith("0 pauses")
